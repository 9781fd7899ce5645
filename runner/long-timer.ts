import type { Clock } from '../core/runtime.ts';

/** A timer of more milliseconds would fire at once: about 24.8 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls back once after `ms` milliseconds, however many these are. Returns what takes that back. */
export function longTimer(clock: Clock, ms: number, fn: () => void): () => void {
  const end = clock.monotonic() + ms;
  let cancel = () => {};
  const wait = () => {
    const left = end - clock.monotonic();
    cancel = left > MAX_TIMER_MS ? clock.setTimer(MAX_TIMER_MS, wait) : clock.setTimer(Math.max(0, left), fn);
  };
  wait();
  return () => cancel();
}
