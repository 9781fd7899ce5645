import type { Clock } from '../../core/runtime.ts';

/** Longest timer of Node, about 24.8 days; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls back once after any number of milliseconds. Returns a function that cancels the timer. */
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
