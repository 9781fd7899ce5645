import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { compared } from './figures.ts';
import { resultOf } from './result.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';

const SAMPLES = count(100, 20);
/** Samples that are not counted: the first turns of a process are slower. */
const FIRST = 5;

/** Answers each request with a line, and starts nothing for it. */
const SERVER = `while read -r line; do
  id=\${line#*'"id":"'} at=\${line#*'"timestamp":"'}
  printf '{"type":"response","id":"%s","timestamp":"%s","result":"hello"}\\n' "\${id%%'"'*}" "\${at%%'"'*}"
done`;
const REQUEST = '{"type":"request","id":"1","timestamp":"2026-01-01T12:00:00Z","input":"hello"}\n';
const TOOL = { name: 'cat', description: 'says it again', parameters: {}, command: ['cat'], timeoutMs: 30_000 };

/** A program as node:child_process starts it, and what is written to it. */
export interface Bare {
  command: string[];
  stdin: string;
}

interface Case {
  what: string;
  agent: Partial<AgentSpec>;
  input: unknown;
  beside: Bare & { what: string; stays?: boolean };
}

const CASES: readonly Case[] = [
  {
    what: 'turn, driver Command, cat',
    agent: { command: ['cat'], args: [], input: 'Text', result: 'Text' },
    input: 'hello',
    beside: { what: 'spawn of cat', command: ['cat'], stdin: 'hello' },
  },
  {
    what: 'turn, driver Shell, echo hello',
    agent: { driver: 'Shell', command: [], args: [], shell: { rewriteBackground: true } },
    input: { command: 'echo hello' },
    beside: { what: 'spawn of bash -c', command: ['bash', '-c', 'echo hello'], stdin: '' },
  },
  {
    what: 'turn, driver Tools, one call of cat',
    agent: { driver: 'Tools', command: [], args: [], result: 'Text', tools: [TOOL] },
    input: { tool: 'cat', args: { say: 'hello' } },
    beside: { what: 'spawn of cat', command: ['cat'], stdin: REQUEST },
  },
  {
    what: 'turn, driver Server, a loop in sh',
    agent: { driver: 'Server', command: ['sh', '-c'], args: [SERVER] },
    input: 'hello',
    beside: { what: 'spawn of the loop for one request', command: ['sh', '-c', SERVER], stdin: REQUEST },
  },
  {
    what: 'turn, driver Server, a loop in sh',
    agent: { driver: 'Server', command: ['sh', '-c'], args: [SERVER] },
    input: 'hello',
    beside: {
      what: 'a request to the loop, already spawned',
      command: ['sh', '-c', SERVER],
      stdin: REQUEST,
      stays: true,
    },
  },
];

/** Milliseconds from before the spawn until the program has ended and its output is read. Rejects unless it ends with 0. */
export async function spawned({ command: [file = '', ...args], stdin }: Bare): Promise<number> {
  const started = performance.now();
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdout.resume();
  child.stderr.resume();
  // A program need not read its input.
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
  return performance.now() - started;
}

/** Keeps the program, and asks it again and again: milliseconds from a request to its answer. */
function living({ command: [file = '', ...args], stdin }: Bare) {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  return {
    sample: async () => {
      const started = performance.now();
      child.stdin.write(stdin);
      await once(child.stdout, 'data');
      return performance.now() - started;
    },
    end: () => child.kill('SIGKILL'),
  };
}

/** Milliseconds from before the turn's control line is sealed until its result is opened. */
export async function turn(runner: RunnerHarness, input: unknown): Promise<number> {
  const started = performance.now();
  const { seq, message } = await resultOf(runner, runner.startTurn(input));
  const ms = performance.now() - started;
  if (!JSON.stringify(message.output ?? null).includes('hello')) throw new Error(JSON.stringify(message));
  runner.send('ack', { through: seq });
  return ms;
}

async function compare({ what, agent, input, beside }: Case, command: string[]) {
  await using runner = await RunnerHarness.bound({ agent, command });
  const bare = beside.stays ? living(beside) : { sample: () => spawned(beside), end: () => {} };
  const values: number[] = [];
  const alone: number[] = [];
  try {
    // Samples alternate, so that other load of the machine weighs equally on both.
    for (let i = -FIRST; i < SAMPLES; i++) {
      const [other, own] = [await bare.sample(), await turn(runner, input)];
      if (i < 0) continue;
      alone.push(other);
      values.push(own);
    }
  } finally {
    bare.end();
  }
  return compared(what, values, { what: beside.what, values: alone });
}

/** A turn of each driver on a ready runner with its keeper, beside its program alone. */
export async function drivers(command: string[]): Promise<Outcome> {
  const figures: Awaited<ReturnType<typeof compare>>[] = [];
  for (const each of CASES) figures.push(await compare(each, command));
  const [plain] = figures;
  const request = figures.at(-1);
  if (!plain || !request) throw new Error('there are no drivers');
  const floors = { 'the process’s own answer': request.values.beside, 'driver Command': plain.values.values };
  return { rows: [{ id: 'server', values: request.values.values, floors }], figures };
}
