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
  /** Absent of a machine's own clock. */
  readonly remote?: RemoteClock;
}

/** The clock of another machine, carried on between its answers. A machine that sleeps carries nothing on. */
export interface RemoteClock {
  /** Whether no answer is needed first: this machine's clock has not parted from monotonic time since the last one. */
  isSure(): boolean;
  /** How often the time has been found to be another than expected: what was decided before was decided by another time. */
  readonly jumps: number;
  /** The time, or a later one where this machine's clock says that it slept: what begins now did not begin before. */
  latest(): number;
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
