import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunnerHarness } from '../support/runner-harness.ts';
import { resultOf } from './result.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';
import { median } from './statistics.ts';

const FILES = 20_000;
const CHANGED = 10;
const FOLDERS = 100;
const AGENT = { command: ['cat'], args: [], input: 'Text' as const, result: 'Text' as const };

/** Writes the first `count` files of a state with a content of their own. */
function change(state: string, count: number, content: string): void {
  for (let i = 0; i < count; i++) writeFileSync(join(state, `${i % FOLDERS}`, `${i}.txt`), `${i} ${content}\n`);
}

/** Milliseconds of a turn of an agent that writes nothing. */
async function turn(runner: RunnerHarness): Promise<number> {
  const started = performance.now();
  const { message } = await resultOf(runner, runner.startTurn('x'));
  const ms = performance.now() - started;
  if (message.outcome !== 'Succeeded') throw new Error(JSON.stringify(message));
  return ms;
}

/** Time that a snapshot adds to a turn: files are changed before the turn, and a turn without any state is subtracted. */
export async function snapshots(command: string[]): Promise<Outcome> {
  await using without = await RunnerHarness.bound({ agent: AGENT, command });
  await using runner = await RunnerHarness.bound({ agent: AGENT, command });
  const state = runner.directory('state');
  for (let i = 0; i < FOLDERS; i++) mkdirSync(join(state, `${i}`), { recursive: true });
  const turns: Record<'few' | 'all' | 'none', number[]> = { few: [], all: [], none: [] };
  // The first turn of each warms its runner.
  for (let i = -1; i < SAMPLES; i++) {
    const none = await turn(without);
    change(state, FILES, `all ${i}`);
    const all = await turn(runner);
    change(state, CHANGED, `few ${i}`);
    const few = await turn(runner);
    if (i < 0) continue;
    turns.none.push(none);
    turns.all.push(all);
    turns.few.push(few);
  }
  const base = median(turns.none);
  const cost = (values: readonly number[]) => values.map((value) => value - base);
  return {
    rows: [{ id: 'snapshot', values: cost(turns.few), floors: { 'all changed': cost(turns.all) } }],
  };
}
