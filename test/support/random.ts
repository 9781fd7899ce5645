import type { Random } from '../../core/runtime.ts';

/** Pseudo-random numbers that are equal for the same seed (mulberry32). */
export function seededRandom(seed = 1): Random {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return { uniform, bytes: (length) => Buffer.from(Array.from({ length }, () => Math.floor(uniform() * 256))) };
}
