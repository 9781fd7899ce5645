import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Focus } from './focus.ts';
import type { Outcome } from './simulation.ts';

/** The outcome of a seed with its cost. */
export interface Result extends Outcome {
  /** Milliseconds of CPU. */
  cpuMs: number;
}

/**
 * Seeds that a worker runs before it is replaced. A world leaks about 2 MB: Node keeps every signal of
 * `AbortSignal.any` that has a listener until it is aborted, and the signals of a killed process never are. The end of
 * the thread frees them.
 */
const SEEDS_PER_WORKER = 100;

/** Milliseconds of real time after which a seed is given up: something in it runs without end. Most seeds take some seconds. */
const HANG_MS = 10 * 60_000;

export interface SeedRange {
  from: number;
  count: number;
  /** Names of invariants; the first seed that violates one of them ends the run. */
  until?: readonly string[];
  focus?: Focus;
  workers?: number;
  /** Results carry the digests of their traces. */
  digest?: boolean;
  onResult?: (result: Result) => void;
}

/** Runs many seeds on all cores; resolves with the results in the order of their seeds. */
export async function runSeeds({ from, count, until, focus, workers, digest, onResult }: SeedRange): Promise<Result[]> {
  const results: Result[] = [];
  let next = from;
  let over = false;
  const isLeft = () => !over && next < from + count;
  const someSeeds = async () => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { focus, digest } });
    try {
      for (let left = SEEDS_PER_WORKER; left > 0 && isLeft(); left--) {
        const seed = next++;
        const found = await resultOf(worker, seed, HANG_MS);
        const result = found ?? hung(seed);
        results.push(result);
        onResult?.(result);
        if (result.failure && until?.includes(invariantOf(result.failure))) over = true;
        if (!found) break;
      }
    } finally {
      await worker.terminate();
    }
  };
  const work = async () => {
    while (isLeft()) await someSeeds();
  };
  await Promise.all(Array.from({ length: Math.min(count, workers ?? availableParallelism()) }, work));
  return results.sort((a, b) => a.seed - b.seed);
}

/** Resolves with the result of the seed, or with undefined where the worker has given none within `ms` of real time. */
export async function resultOf(worker: Worker, seed: number, ms: number): Promise<Result | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Result | undefined>();
  const hang = setTimeout(() => resolve(undefined), ms);
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.postMessage(seed);
  return promise.finally(() => {
    clearTimeout(hang);
    worker.removeAllListeners('message').removeAllListeners('error');
  });
}

function hung(seed: number): Result {
  const failure = `ends: something runs without end, and has for ${HANG_MS / 1000} s of real time`;
  return { seed, failure, at: 0, steps: 0, commits: 0, turns: 0, digest: undefined, cpuMs: HANG_MS };
}

/** Returns the name of the invariant in a failure message. */
export function invariantOf(failure: string): string {
  return failure.slice(0, failure.indexOf(':'));
}

/** Describes a failure and the command that replays it. */
export function howToReplay({ seed, failure, at }: Outcome): string {
  return `seed ${seed} fails at ${(at / 1000).toFixed(3)} s: ${failure}\n  replay: make sim SEED=${seed} TRACE=1`;
}

export function summary(results: readonly Result[], wallMs: number): Record<string, number> {
  const sum = (of: (result: Result) => number) => results.reduce((total, result) => total + of(result), 0);
  const each = (of: (result: Result) => number) => Math.round(sum(of) / Math.max(1, results.length));
  return {
    seeds: results.length,
    failed: results.filter(({ failure }) => failure !== undefined).length,
    seedsPerMinute: Math.round((results.length / wallMs) * 60_000),
    stepsPerSeed: each(({ steps }) => steps),
    writesPerSeed: each(({ commits }) => commits),
    turnsPerSeed: each(({ turns }) => turns),
    virtualSecondsPerSeed: each(({ at }) => at / 1000),
    cpuMsPerSeed: each(({ cpuMs }) => cpuMs),
  };
}
