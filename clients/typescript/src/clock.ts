import { onAbort } from './abort.ts';

/** Source of time; an option of the client for programs that have their own. */
export interface Clock {
  /** Milliseconds since any fixed moment. */
  monotonic(): number;
  /** Calls `fn` once after `ms` milliseconds; the returned function cancels it. */
  setTimer(ms: number, fn: () => void): () => void;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  setTimer(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. Leaves no timer and no listener. */
export function wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.setTimer(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      cancel();
      reject(signal?.reason);
    });
  });
}

/** Waits between tries: exponential, with jitter between half and all of it. */
export interface Backoff {
  /** The first wait, milliseconds; it doubles with every further failure. */
  baseMs: number;
  /** The longest wait, milliseconds. */
  maxMs: number;
}

/** Milliseconds to wait after `failures` failures in a row, which is 1 or more. */
export function backoffMs({ baseMs, maxMs }: Backoff, failures: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30)) * (0.5 + Math.random() / 2);
}
