import { once } from 'node:events';
import { ASK_READY } from '../../core/frames/encode.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { spawned } from './drivers.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';

const ONE_CPU = ['taskset', '-c', '0'];

/** Start of a runner until it says that it is ready, beside an empty program of the same Node, both on one CPU. */
export async function starts(command: string[]): Promise<Outcome> {
  const [node = ''] = command;
  const values: number[] = [];
  const empty: number[] = [];
  // The first of each warms the page cache.
  for (let i = -1; i < SAMPLES; i++) {
    const alone = await spawned({ command: [...ONE_CPU, node, '-e', '0'], stdin: '' });
    const own = await started([...ONE_CPU, ...command]);
    if (i < 0) continue;
    empty.push(alone);
    values.push(own);
  }
  return { rows: [{ id: 'runner-start', values, floors: { 'node -e 0 at one CPU': empty } }] };
}

async function started(command: string[]): Promise<number> {
  const began = performance.now();
  await using runner = new RunnerHarness({ command });
  runner.write(ASK_READY);
  while (runner.readies.length === 0) await once(runner.child.stdout as NodeJS.ReadableStream, 'data');
  return performance.now() - began;
}
