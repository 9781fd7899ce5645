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
  /** The clock of another machine that this one follows; absent for a machine's own clock. */
  readonly remote?: RemoteClock;
}

/** Clock of another machine, continued with monotonic time between its answers. Monotonic time stops during sleep. */
export interface RemoteClock {
  /**
   * Reports whether the time is known: this machine's clock has not parted from monotonic time since the last answer.
   */
  isSure(): boolean;
  /** Number of times that the time was found to be wrong. Decisions from before a jump were based on the wrong time. */
  readonly jumps: number;
  /**
   * Returns an upper bound of the time: later than `now` when the machine may have slept. A new start is so never dated
   * too early.
   */
  latest(): number;
  /** The last jumps forward, the oldest first. */
  readonly clockJumps: readonly ClockJump[];
}

/** A jump of a clock forward, over time in which this machine did nothing: it slept, or the clock was set. */
export interface ClockJump {
  /** Times up to this one are from before the jump; milliseconds since the epoch. */
  until: number;
  ms: number;
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

/** The time of something that begins now: it must not look as if it had begun before the machine slept. */
export function latestTime(clock: Clock): number {
  return clock.remote?.latest() ?? clock.now();
}

/** Returns the jumps of the clock that this one follows; a machine’s own clock knows of none. */
export function clockJumpsOf(clock: Clock): readonly ClockJump[] {
  return clock.remote?.clockJumps ?? [];
}

/** Milliseconds until the time `at` that was decided upon at `then`; a clock that was set back since puts nothing off. */
export function msUntil(clock: Clock, at: number, then: number): number {
  return at - Math.max(then, clock.now());
}

/** Waits as `delay` does: resolves with true when the time has passed, with false when the signal aborts first. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return delay(clock, ms, signal).then(
    () => true,
    () => false,
  );
}
