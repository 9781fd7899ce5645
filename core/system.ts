import { randomBytes } from 'node:crypto';
import type { Clock, Logger, Random } from './runtime.ts';

/**
 * The machine's own clock. Timers are unreferenced: code that must keep the process alive holds a socket or a child.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(ms, fn) {
    // Node warns about a time in the past.
    const timer = setTimeout(fn, Math.max(ms, 0));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

export const systemRandom: Random = {
  uniform: () => Math.random(),
  bytes: (length) => randomBytes(length),
};

/** Logger that discards everything. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};
