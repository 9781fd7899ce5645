import { storeKey } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { StoredEntry } from '../../core/store/store.ts';
import { isLater, type StateUse, type TurnFacts } from './facts.ts';

/**
 * Minimum age for removal of all but superseded states; younger entries may belong to a write still in progress.
 * Superseded states go sooner: see `counted-states.ts`.
 */
export const MIN_AGE_MS = 3_600_000;
/** Clock skew tolerated between a controller and the API server. */
const SKEW_MS = 5 * 60_000;

/**
 * Reports whether a stored entry is no longer needed, at any age. The turns must be read after the entry was
 * listed, and the status after the turns. An entry of a commit in flight is then either named, or its turn is seen as
 * running.
 */
export function isGarbage(entry: StoredEntry, status: SessionStatus, turns: TurnFacts[]): boolean {
  const asState = isSuperseded(entry, status, turns);
  const asOutput = isForgotten(entry, turns);
  if (entry.kind === undefined) return asState && asOutput;
  return entry.kind === 'State' ? asState : asOutput;
}

/**
 * Reports whether a state is superseded: the session's status has a later one. Until then the state may wait for its
 * commit, or for its copy into the status; afterwards nothing reads it, even where an ended turn still names it.
 */
export function isSuperseded(entry: StoredEntry, status: SessionStatus, turns: StateUse[]): boolean {
  const key = keyOf(entry);
  if (status.state?.ref === key || !isLater(status.state, entry)) return false;
  const counted = status.lastTurn?.index ?? 0;
  return !turns.some((turn) => turn.stateRef === key && (!turn.ended || turn.index > counted));
}

/** Reports whether no turn names an entry that is no state, and no running turn can have stored it. */
function isForgotten(entry: StoredEntry, turns: TurnFacts[]): boolean {
  const key = keyOf(entry);
  return !turns.some((turn) => {
    if (turn.refs.includes(key)) return true;
    const mayHaveBrought = !turn.ended && turn.incarnation === entry.incarnation;
    return mayHaveBrought && entry.createdAt >= (turn.givenAt ?? 0) - SKEW_MS;
  });
}

function keyOf({ sessionUID, incarnation, seq }: StoredEntry): string {
  return storeKey(sessionUID, incarnation, seq);
}
