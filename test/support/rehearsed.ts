import { readdirSync, statSync } from 'node:fs';
import { QUIET_MS } from '../../runner/rehearsal/rehearsal.ts';
import { eventually } from './eventually.ts';
import type { RunnerHarness } from './runner-harness.ts';

/**
 * Waits until an unbound runner has rehearsed. The only trace is the time at which its folder was changed last: the
 * rehearsal's own folder was made there, and removed, long after the runner made all of its folders at its start.
 */
export async function rehearsed(runner: RunnerHarness): Promise<void> {
  const changed = (name: 'run' | 'work') => statSync(runner.directory(name)).mtimeMs;
  const isOver = () =>
    changed('run') - changed('work') > QUIET_MS / 2 && readdirSync(runner.directory('run')).length === 0;
  await eventually(isOver, { what: 'the end of the rehearsal' });
}
