/**
 * Surroundings of a program: clock, randomness and logger. They are passed in everywhere, so that a test or the
 * simulator can replace them.
 */

/** Time source: `now` is milliseconds since the epoch and may jump, `monotonic` is milliseconds and never goes back. */
export interface Clock {
  now(): number;
  monotonic(): number;
  /**
   * Calls `fn` once after `ms` milliseconds; the returned function cancels it. A timer does not keep the process alive.
   */
  setTimer(ms: number, fn: () => void): () => void;
}

/** Source of randomness: uniform in [0, 1), and unpredictable bytes. */
export interface Random {
  uniform(): number;
  bytes(length: number): Buffer;
}

/** The part of pino that is used: constant messages, with facts as fields. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Resolves after `ms` milliseconds of `clock`; rejects with the signal's reason when it aborts first. */
export function delay(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.setTimer(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
