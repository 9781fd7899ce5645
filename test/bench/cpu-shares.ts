/** CPU that the programs of a cluster take, whose nodes are containers of this machine. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Figure } from './figures.ts';
import { spread } from './table.ts';

/** Programs by their command line; the first that matches counts. */
const PROGRAMS = {
  'API server': /^\S*kube-apiserver /,
  etcd: /^\S*etcd /,
  kubelets: /^\S*kubelet /,
  'containerd and its shims': /^\S*containerd/,
  'the controller': /controller\.mjs|agent-sandbox-controller/,
  runners: /runner\.cjs/,
  'the benchmark itself': /test\/bench\/bench\.ts/,
} as const;
const OTHERS = 'all other programs';

type Share = keyof typeof PROGRAMS | typeof OTHERS;
const SHARES = [...Object.keys(PROGRAMS), OTHERS] as Share[];

/** Milliseconds of CPU by program. */
export type Shares = Record<Share, number>;

interface Spent {
  share: Share;
  ms: number;
}

function shareOf(pid: string): Share {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  const found = Object.entries(PROGRAMS).find(([, pattern]) => pattern.test(command));
  return (found?.[0] ?? OTHERS) as Share;
}

/** Milliseconds of CPU that the threads of a process have taken so far. Throws when the process has ended. */
export function cpuOfProcess(pid: number | string): number {
  const ns = (thread: string) => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // The thread has ended since it was listed.
      return 0;
    }
  };
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ns(thread), 0) / 1e6;
}

/** CPU that every process of the machine has taken so far, by its id. */
function spent(): Map<string, Spent> {
  const all = new Map<string, Spent>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      all.set(pid, { share: shareOf(pid), ms: cpuOfProcess(pid) });
    } catch {
      // The process has ended meanwhile.
    }
  }
  return all;
}

/** Milliseconds that some work took, and the CPU that was taken meanwhile. */
export interface Taken {
  ms: number;
  shares: Shares;
}

/**
 * Does `work` and resolves with its result, the time that it took, and the CPU that every program took meanwhile. The CPU of processes
 * that end before `work` does is left out.
 */
export async function withShares<T>(work: () => Promise<T>): Promise<Taken & { result: T }> {
  const before = spent();
  const started = performance.now();
  const result = await work();
  const took = performance.now() - started;
  const shares = Object.fromEntries(SHARES.map((name) => [name, 0])) as Shares;
  for (const [pid, { share, ms }] of spent()) shares[share] += Math.max(0, ms - (before.get(pid)?.ms ?? 0));
  return { result, ms: took, shares };
}

/** CPU of one of `count` things by program, of samples in which as many were made. */
export function shareFigures(
  what: string,
  samples: readonly Shares[],
  count: number,
  beside?: { what: string; samples: readonly Shares[] },
): Figure[] {
  const of = (all: readonly Shares[], name: Share) => all.map((shares) => shares[name] / count);
  return SHARES.map((name) => {
    const values = of(samples, name);
    const others = beside && of(beside.samples, name);
    return {
      what: `${what}: ${name}`,
      measured: spread(values, 'ms'),
      ...(beside && others ? { beside: `${beside.what}: ${spread(others, 'ms')}` } : {}),
      values: others ? { values, beside: others } : values,
    };
  });
}
