import type { Clock } from '../../core/runtime.ts';

/**
 * Returns a clock whose timers let all input be read first that has arrived by the time they are due. After a pause a
 * runner finds its timers due, and the agent's output, its end and the keeper's answer still unread: the delay was the
 * runner's own.
 */
export function patient(clock: Clock): Clock {
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
