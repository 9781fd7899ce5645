import type { Random } from '../runtime.ts';

export interface Backoff {
  /** The first wait, milliseconds; doubled with every further failure. */
  baseMs: number;
  maxMs: number;
}

/** The wait before attempt `failures` + 1, milliseconds: exponential, and jittered between a half and the whole of it. */
export function backoffMs(failures: number, { baseMs, maxMs }: Backoff, random: Random): number {
  const whole = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return whole * (0.5 + random.uniform() / 2);
}
