import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { RunnerHarness } from '../support/runner-harness.ts';
import { type Figure, MIB } from './figures.ts';
import { count } from './settings.ts';
import { median } from './statistics.ts';

const SAMPLES = count(7, 3);
/** Time that a runner is left alone, milliseconds. */
const IDLE_MS = count(20_000, 5000);
/** Ticks of a second in /proc/<pid>/stat (USER_HZ). */
const TICKS = 100;

interface Idle {
  /** Resident memory at the end, bytes. */
  memory: number;
  /** CPU time meanwhile, milliseconds. */
  cpuMs: number;
}

const memoryOf = (pid: number) =>
  1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

/** A runner that was bound and is left alone. Without the listener: its socket's name is taken by this process. */
async function idle(command: string[], listens: boolean): Promise<Idle> {
  const runner = new RunnerHarness({ command });
  const taken = createServer();
  try {
    if (!listens) {
      taken.listen(`\0berth/${runner.podUID}`);
      await once(taken, 'listening');
    }
    await runner.ready();
    runner.bind();
    await runner.frame('bound');
    await setTimeout(IDLE_MS / 4);
    const before = cpuMsOf(runner.pid);
    await setTimeout(IDLE_MS);
    return { memory: memoryOf(runner.pid), cpuMs: cpuMsOf(runner.pid) - before };
  } finally {
    if (!listens) taken.close();
    await runner[Symbol.asyncDispose]();
  }
}

/** What it costs a runner that clients may work inside its session, while none does. */
export async function enterIdle(command: string[]): Promise<Figure[]> {
  const series: Record<'with' | 'without', Idle[]> = { with: [], without: [] };
  for (let i = 0; i < SAMPLES; i++) {
    series.without.push(await idle(command, false));
    series.with.push(await idle(command, true));
  }
  const middle = (of: readonly Idle[]) => ({
    memory: median(of.map(({ memory }) => memory)) / MIB,
    cpu: median(of.map(({ cpuMs }) => cpuMs)) / (IDLE_MS / 1000),
  });
  const [own, other] = [middle(series.with), middle(series.without)];
  const text = ({ memory, cpu }: typeof own) => `${memory.toFixed(1)} MiB, ${cpu.toFixed(2)} ms of CPU a second`;
  return [
    {
      what: `idle runner that listens for helpers: medians of ${SAMPLES}`,
      measured: text(own),
      beside: `without the listener: ${text(other)}`,
      difference: `${(own.memory - other.memory).toFixed(1)} MiB, ${(own.cpu - other.cpu).toFixed(2)} ms a second`,
      values: series,
    },
  ];
}
