import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { peakMemory } from '../support/processes.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { type Figure, MIB } from './figures.ts';
import { resultOf } from './result.ts';
import { count } from './settings.ts';

const MB = 1e6;
const LIMIT_MS = 600_000;
const RESULT = '{"type":"result","status":"success","output":"hello"}';
const ENVELOPE = `printf '%s${RESULT}%s' "$BERTH_RESULT_START_MARKER" "$BERTH_RESULT_END_MARKER"`;

interface Case {
  what: string;
  megabytes: number;
  /** Prints so many bytes on stdout. */
  print: (bytes: number) => string;
  agent: Partial<AgentSpec>;
  end: string;
}

const CASES: readonly Case[] = [
  {
    what: 'output without a line feed',
    megabytes: count(500, 20),
    print: (bytes) => `head -c ${bytes} /dev/zero`,
    agent: { result: 'Envelope' },
    end: ENVELOPE,
  },
  {
    what: 'output of lines of text, 80 bytes each',
    megabytes: count(200, 20),
    print: (bytes) =>
      `yes ${'A line of what programs say while they work. '.repeat(2).slice(0, 79)} | head -c ${bytes}`,
    agent: { result: 'Envelope' },
    end: ENVELOPE,
  },
  {
    what: 'output of events, a line of JSON with 200 bytes each',
    megabytes: 10,
    print: (bytes) => `yes '${JSON.stringify({ type: 'step', text: 'x'.repeat(174) })}' | head -c ${bytes}`,
    agent: { result: 'JsonLines', jsonLines: { resultWhen: { '/type': 'result' }, output: '/output' } },
    end: `echo '${RESULT}'`,
  },
];

/** Bytes of the program's output in a second, by a reader that throws it away. */
async function alone(script: string, bytes: number): Promise<number> {
  const started = performance.now();
  const child = spawn('bash', ['-c', script], { stdio: ['pipe', 'pipe', 'pipe'] });
  let read = 0;
  child.stderr.resume();
  child.stdout.on('data', (chunk: Buffer) => {
    read += chunk.length;
  });
  await once(child, 'close');
  if (read !== bytes) throw new Error(`${read} bytes were read, not ${bytes}`);
  return (1000 * bytes) / (performance.now() - started);
}

async function measure({ what, megabytes, print, agent, end }: Case, command: string[]): Promise<Figure> {
  const bytes = megabytes * MB;
  const script = print(bytes);
  const bare = await alone(script, bytes);
  await using runner = await RunnerHarness.bound({ agent: { ...agent, args: [`${script}; ${end}`] }, command });
  const bound = peakMemory(runner.pid);
  const started = performance.now();
  const { message: result } = await resultOf(runner, runner.startTurn(null, LIMIT_MS));
  const seconds = (performance.now() - started) / 1000;
  const peak = peakMemory(runner.pid);
  if (result.outcome !== 'Succeeded') throw new Error(JSON.stringify(result));

  const seqs = runner.events.flatMap((event) => (event.type === 'frame' ? [event.frame.seq] : []));
  const lost = seqs.reduce((a, b) => Math.max(a, b), 0) - new Set(seqs).size;
  const rate = bytes / seconds;
  return {
    what,
    measured:
      `${(rate / MB).toFixed(1)} MB/s: ${megabytes} MB in ${seconds.toFixed(1)} s; ${seqs.length} frames, ${lost} lost; ` +
      `runner's peak memory ${(peak / MIB).toFixed(0)} MiB, ${(bound / MIB).toFixed(0)} MiB when bound`,
    beside: `the same output, read and thrown away: ${(bare / MB).toFixed(1)} MB/s`,
    difference: `× ${(rate / bare).toFixed(2)}`,
    values: { bytes, seconds, frames: seqs.length, lost, peak, bound, readText: runner.stderrBytes, bare },
  };
}

/** Measures the agent output that a runner takes per second while all its frames and readable text are read. */
export async function output(command: string[]): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const each of CASES) figures.push(await measure(each, command));
  return figures;
}
