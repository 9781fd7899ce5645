import type { Clock } from '../core/runtime.ts';

/**
 * A clock whose timers let everything be read first that has come by the time they are due. A runner that was not let run
 * for a while finds its timers due and the agent's output, its end and the keeper's answer unread: the delay was its own.
 */
export function patient(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer(ms, fn) {
      let due: NodeJS.Immediate | undefined;
      // After the timers Node polls for input, and only then calls back immediates.
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
