import { readdirSync, statSync } from 'node:fs';
import { QUIET_MS } from '../../runner/warm-up/warm-up.ts';
import { eventually } from './eventually.ts';
import type { RunnerHarness } from './runner-harness.ts';

/**
 * Waits until an unbound runner has warmed up. The only trace is the time at which its folder was changed last: the
 * warm-up's own folder was made there, and removed, long after the runner made all of its folders at its start.
 */
export async function warmedUp(runner: RunnerHarness): Promise<void> {
  const changed = (name: 'run' | 'work') => statSync(runner.directory(name)).mtimeMs;
  const isOver = () =>
    changed('run') - changed('work') > QUIET_MS / 2 && readdirSync(runner.directory('run')).length === 0;
  await eventually(isOver, { what: 'the end of the warm-up' });
}
