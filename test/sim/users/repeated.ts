import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

/** Parts of a world that its users act on, with dice of their own. */
export interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  trace: Trace;
  dice: Dice;
}

/**
 * Calls `act` again and again, each time after between 0 and twice `everyMs`, until the returned function is called. `who` names
 * the event in the trace.
 */
export function repeated(
  { scheduler, dice }: Pick<Surroundings, 'scheduler' | 'dice'>,
  who: string,
  everyMs: number,
  act: () => void,
): () => void {
  let isOver = false;
  const next = () =>
    scheduler.after(everyMs * 2 * dice.uniform(), undefined, who, () => {
      if (isOver) return;
      act();
      next();
    });
  next();
  return () => {
    isOver = true;
  };
}
