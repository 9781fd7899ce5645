import { countsFor, fullOf, type Limit, takenOf } from './limits.ts';
import { fullMessage } from './messages.ts';
import type { Queue } from './queue.ts';
import type { Space, Tally } from './tally.ts';

/** Room for one more pod of a pool, or why there is none. */
export type Room =
  | { free: true }
  /** `Unknown`: the leader may not take slots yet, or cannot know. `Waited`: sessions that need the slots wait. */
  | { free: false; why: 'Unknown' | 'Waited' | 'Full'; message: string };

/**
 * Room for one more pod of a pool. A pool takes no slot that a session waits for, neither one of the installation's slots nor
 * one of the class.
 */
export function poolRoom(
  space: Space,
  limits: Limit[],
  { queue, tally, limitsOf }: { queue: Queue; tally: Tally; limitsOf(space: Space): Limit[] | string },
): Room {
  const full = fullOf(limits, space, tally).at(-1);
  if (full) {
    return { free: false, why: 'Full', message: fullMessage(full, space, takenOf(full, space, tally), []) };
  }
  let waits: string | undefined;
  queue.walk((applicant) => {
    const theirs = limitsOf(applicant);
    if (typeof theirs === 'string') return false;
    // A session that a limit of its own holds back could not use the slot.
    const isHeldBack = fullOf(theirs, applicant, tally).some((limit) => !countsFor(limit, applicant, space));
    if (!isHeldBack && limits.some((limit) => countsFor(limit, space, applicant))) waits ??= applicant.key;
    return false;
  });
  if (waits !== undefined) return { free: false, why: 'Waited', message: `Session ${waits} waits for a slot.` };
  return { free: true };
}
