import type { SessionStatus } from '../../core/resources/session.ts';
import { isLater, type StatePosition } from './facts.ts';

/**
 * Time for which a superseded state is kept after its session's status was seen with a later one, milliseconds. No start
 * from that status reads the superseded state, whichever controller leads: states only move forward. The minute is for
 * what had begun before: a write of the store carries a deadline of seconds, and a read that comes too late is repeated
 * with the later state.
 */
const SUPERSEDED_MS = 60_000;
/** Counts within this time share one mark, so that a busy session has few. */
const MARK_MS = 10_000;

/** A state that was seen in the session's status. */
interface Mark {
  state: StatePosition;
  /** Monotonic milliseconds of the first and the last count that share the mark. */
  opened: number;
  at: number;
}

interface Counted {
  uid: string;
  /** The last state seen, and whether the store has it. */
  state: StatePosition | undefined;
  isStored: boolean;
  marks: Mark[];
  /** A stored state was superseded since the last removal. */
  leavesStored: boolean;
}

/**
 * When the states of sessions were counted, in this controller's memory and by its own monotonic clock, so that no two
 * clocks are compared. A new leader begins to count anew: a superseded state stays for a minute longer then.
 */
export class CountedStates {
  readonly #sessions = new Map<string, Counted>();

  /** Notes the state that the session's status has at the monotonic time `now`. */
  saw(key: string, uid: string, { state }: Pick<SessionStatus, 'state'>, now: number): void {
    let counted = this.#sessions.get(key);
    if (counted?.uid !== uid) {
      counted = { uid, state: undefined, isStored: false, marks: [], leavesStored: false };
      this.#sessions.set(key, counted);
    }
    if (!state || !isLater(state, counted.state)) return;
    if (counted.isStored) counted.leavesStored = true;
    const position = { incarnation: state.incarnation, seq: state.seq };
    Object.assign(counted, { state: position, isStored: state.ref !== undefined });
    const last = counted.marks.at(-1);
    if (last && now - last.opened < MARK_MS) Object.assign(last, { state: position, at: now });
    else counted.marks.push({ state: position, opened: now, at: now });
  }

  forget(key: string): void {
    this.#sessions.delete(key);
  }

  /** The latest state that was counted a minute ago: what it superseded may go. */
  settled(key: string, now: number): StatePosition | undefined {
    const counted = this.#sessions.get(key);
    if (!counted) return undefined;
    const old = counted.marks.filter(({ at }) => at + SUPERSEDED_MS <= now);
    // One old mark stays, for sweeps that come later.
    counted.marks.splice(0, Math.max(0, old.length - 1));
    return old.at(-1)?.state;
  }

  /** Milliseconds until superseded states that are stored may go; undefined where there are none. */
  dueIn(key: string, now: number): number | undefined {
    const counted = this.#sessions.get(key);
    if (!counted?.leavesStored) return undefined;
    return this.nextIn(key, now) ?? 0;
  }

  /** Milliseconds until the next state has been counted for a minute; undefined if the last one has. */
  nextIn(key: string, now: number): number | undefined {
    const young = this.#sessions.get(key)?.marks.find(({ at }) => at + SUPERSEDED_MS > now);
    return young && young.at + SUPERSEDED_MS - now;
  }

  /** Notes that superseded states are stored. */
  leaves(key: string): void {
    const counted = this.#sessions.get(key);
    if (counted) counted.leavesStored = true;
  }

  /** Notes that what was superseded by `settled` is removed. */
  removed(key: string, settled: StatePosition | undefined): void {
    const counted = this.#sessions.get(key);
    if (counted && !isLater(counted.state, settled)) counted.leavesStored = false;
  }
}
