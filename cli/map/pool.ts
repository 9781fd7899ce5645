import { anySignal } from '../../core/abort.ts';
export interface PoolOptions {
  /** Maximum number of items that are processed at the same time. */
  max: number;
  /** True to hand over results in the order of the items, false as they come. */
  isOrdered: boolean;
  signal: AbortSignal;
}

/**
 * Calls `run` for every item and `take` for every result, one at a time. The first error ends the others by their signal
 * and, once all have ended, rejects.
 */
export async function runAll<T, R>(
  items: readonly T[],
  { max, isOrdered, signal }: PoolOptions,
  run: (item: T, signal: AbortSignal) => Promise<R>,
  take: (result: R) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const either = anySignal(signal, failed.signal);
  const done = new Map<number, R>();
  let next = 0;
  let taken = 0;
  let taking = Promise.resolve();
  const takeDone = async () => {
    for (let result = done.get(taken); done.has(taken); result = done.get(taken)) {
      done.delete(taken++);
      await take(result as R);
    }
  };
  const worker = async () => {
    while (next < items.length) {
      either.throwIfAborted();
      const index = next++;
      const result = await run(items[index] as T, either);
      if (isOrdered) done.set(index, result);
      taking = taking.then(isOrdered ? takeDone : () => take(result));
      await taking;
    }
  };
  const workers = Array.from({ length: Math.min(max, items.length) }, worker);
  try {
    await Promise.all(workers);
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(workers);
    throw signal.aborted ? signal.reason : error;
  }
}
