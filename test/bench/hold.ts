/** What a turn costs more because the session's processes stand still while its state is read. */
import { join } from 'node:path';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { NODE_FLAGS } from '../../core/program/node-flags.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { compared, type Figure } from './figures.ts';
import { resultOf } from './result.ts';
import { TAIL_SAMPLES } from './settings.ts';

const SAMPLES = Math.min(TAIL_SAMPLES, 100);
const MAIN = join(import.meta.dirname, '..', '..', 'runner', 'main.ts');
const HOLDING = [process.execPath, ...NODE_FLAGS, MAIN];
const NOT_HOLDING = [process.execPath, ...NODE_FLAGS, '--import', join(import.meta.dirname, 'without-hold.ts'), MAIN];
/** Writes its state; leaves a process behind where its input says so. */
const AGENT: Partial<AgentSpec> = {
  command: ['/bin/sh', '-c'],
  args: [
    'read input; [ "$input" = stay ] && (sleep 3600 >/dev/null 2>&1 </dev/null &); date +%N > "$BERTH_STATE_DIR/n"; echo done',
  ],
  input: 'Text',
  result: 'Text',
};

async function turn(runner: RunnerHarness, input: string): Promise<number> {
  const started = performance.now();
  const { message } = await resultOf(runner, runner.startTurn(input));
  const ms = performance.now() - started;
  if (message.outcome !== 'Succeeded' || message.leftRunning.length !== (input === 'stay\n' ? 1 : 0)) {
    throw new Error(JSON.stringify(message));
  }
  return ms;
}

async function compare(what: string, first: string): Promise<Figure> {
  await using holding = await RunnerHarness.bound({ agent: AGENT, command: HOLDING });
  await using notHolding = await RunnerHarness.bound({ agent: AGENT, command: NOT_HOLDING });
  const values: number[] = [];
  const beside: number[] = [];
  // The first turns warm the runners.
  for (const runner of [holding, notHolding]) for (const input of [first, 'go\n', 'go\n']) await turn(runner, input);
  for (let i = 0; i < SAMPLES; i++) {
    const pair = [
      async () => values.push(await turn(holding, 'go\n')),
      async () => beside.push(await turn(notHolding, 'go\n')),
    ];
    // Neither always follows the other.
    for (const sample of i % 2 === 0 ? pair : pair.reverse()) await sample();
  }
  return compared(what, values, { what: 'the same turn, whose processes go on', values: beside });
}

export async function holds(): Promise<Figure[]> {
  return [
    await compare('turn in the runner alone, no process left running', 'go\n'),
    await compare('turn in the runner alone, beside a process that an earlier turn left', 'stay\n'),
  ];
}
