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

/** CPU that every process of the machine has taken so far, by its id. */
function spent(): Map<string, Spent> {
  const all = new Map<string, Spent>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const ns = (thread: string) =>
        Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
      const ms = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ns(thread), 0) / 1e6;
      all.set(pid, { share: shareOf(pid), ms });
    } catch {
      // The process has ended meanwhile.
    }
  }
  return all;
}

/** Time that some work took in milliseconds, and the CPU that was taken meanwhile, except by processes that had ended by then. */
export interface Taken {
  ms: number;
  shares: Shares;
}

export async function withShares<T>(work: () => Promise<T>): Promise<Taken & { result: T }> {
  const before = spent();
  const started = performance.now();
  const result = await work();
  const took = performance.now() - started;
  const names = [...Object.keys(PROGRAMS), OTHERS] as Share[];
  const shares = Object.fromEntries(names.map((name) => [name, 0])) as Shares;
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
  return [...Object.keys(PROGRAMS), OTHERS].map((name) => {
    const values = of(samples, name as Share);
    const others = beside && of(beside.samples, name as Share);
    return {
      what: `${what}: ${name}`,
      measured: spread(values, 'ms'),
      ...(beside && others ? { beside: `${beside.what}: ${spread(others, 'ms')}` } : {}),
      values: others ? { values, beside: others } : values,
    };
  });
}
