import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { QUIET_MS } from '../../runner/warm-up/warm-up.ts';
import { stagedCommand, stageImage } from '../support/contained-runner.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { warmedUp } from '../support/warmed-up.ts';
import { cpuOfProcess } from './cpu-shares.ts';
import { spawned, turn } from './drivers.ts';
import { compared, type Figure } from './figures.ts';
import { SAMPLES } from './settings.ts';

const AGENT: Partial<AgentSpec> & { command: string[] } = { command: ['cat'], args: [], input: 'Text', result: 'Text' };
/** Turns after the first that are not counted. */
const NOT_COUNTED = 5;

interface Sample {
  /** Milliseconds of the bind and the first turn. */
  first: number;
  /** Milliseconds of CPU that the runner itself has taken for them. */
  cpu: number;
  /** Milliseconds of a later turn. */
  later: number;
}

async function sample(command: string[], waits: (runner: RunnerHarness) => Promise<void>): Promise<Sample> {
  await using runner = new RunnerHarness({ command, agent: AGENT });
  await runner.ready();
  await waits(runner);
  const [cpuBefore, began] = [cpuOfProcess(runner.pid), performance.now()];
  runner.bind();
  while (runner.frames('bound').length === 0) await once(runner.child.stdout as NodeJS.ReadableStream, 'data');
  await turn(runner, 'hello');
  const first = performance.now() - began;
  const cpu = cpuOfProcess(runner.pid) - cpuBefore;
  for (let i = 0; i < NOT_COUNTED; i++) await turn(runner, 'hello');
  return { first, cpu, later: await turn(runner, 'hello') };
}

/** Waits as long as a runner that warms up does. */
async function waited(): Promise<void> {
  await setTimeout(2 * QUIET_MS);
}

/**
 * The bind and the first turn of a runner that has warmed up, beside later turns, and beside a runner that has waited without
 * a warm-up, as there is no program for it.
 */
export async function firstTurns(image: string): Promise<Figure[]> {
  const plainImage = await stageImage();
  rmSync(join(plainImage, 'bin'), { recursive: true });
  try {
    return await compare(stagedCommand(image), stagedCommand(plainImage));
  } finally {
    rmSync(plainImage, { recursive: true, force: true });
  }
}

async function compare(warm: string[], plain: string[]): Promise<Figure[]> {
  const bare: number[] = [];
  const first: Sample[] = [];
  const warmFirst: Sample[] = [];
  // The first of each warms the page cache. Samples alternate, so that other load of the machine weighs equally on all.
  for (let i = -1; i < SAMPLES; i++) {
    const alone = await spawned({ command: AGENT.command, stdin: 'hello' });
    const without = await sample(plain, waited);
    const own = await sample(warm, warmedUp);
    if (i < 0) continue;
    bare.push(alone);
    first.push(without);
    warmFirst.push(own);
  }
  const of = (samples: Sample[], what: keyof Sample) => samples.map((each) => each[what]);
  const spawn = { what: 'spawn of cat', values: bare };
  const without = { what: 'without a warm-up', values: of(first, 'first') };
  const later = { what: 'a later turn', values: [...first, ...warmFirst].map((each) => each.later) };
  const values = of(warmFirst, 'first');
  return [
    compared('a later turn, cat', later.values, spawn),
    compared('bind and first turn without a warm-up, cat', without.values, later),
    compared('bind and first turn after a warm-up, cat', values, later),
    compared('bind and first turn after a warm-up, cat', values, without),
    compared('CPU of the runner for bind and first turn after a warm-up', of(warmFirst, 'cpu'), {
      what: 'without a warm-up',
      values: of(first, 'cpu'),
    }),
  ];
}
