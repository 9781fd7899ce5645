import type { Random } from '../runtime.ts';

export interface Backoff {
  /** The first wait, milliseconds; it doubles with every further failure. */
  baseMs: number;
  maxMs: number;
}

/** Wait before attempt `failures` + 1, milliseconds: exponential, with jitter between half and all of it. */
export function backoffMs(failures: number, { baseMs, maxMs }: Backoff, random: Random): number {
  const whole = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 30));
  return whole * (0.5 + random.uniform() / 2);
}
