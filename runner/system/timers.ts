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

/**
 * Returns a clock whose timers let all input be read first that has arrived by the time they are due. After a pause a
 * runner finds its timers due, and the agent's output, its end and the keeper's answer still unread: the delay was the
 * runner's own.
 */
export function inputFirst(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer(ms, fn) {
      let due: NodeJS.Immediate | undefined;
      // Node polls for input after its timers, and then runs immediates.
      const cancel = clock.setTimer(ms, () => {
        due = setImmediate(fn);
      });
      return () => {
        cancel();
        clearImmediate(due);
      };
    },
  };
}
