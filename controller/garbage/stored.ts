import { storeKey } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { StoredEntry } from '../../core/store/store.ts';
import { isLater, type TurnFacts } from './facts.ts';

/** What is younger may belong to a write that is still under way. */
export const MIN_AGE_MS = 3_600_000;
/** How far a time written by a controller and one written by the API server may be apart. */
const SKEW_MS = 5 * 60_000;

/**
 * Whether nobody needs a stored thing any more, however old it is. The turns are to be read after it was listed, and the
 * status after the turns: what a commit in flight has stored is then seen either as named, or its turn as still running.
 */
export function isGarbage(entry: StoredEntry, status: SessionStatus, turns: TurnFacts[]): boolean {
  const asState = isSuperseded(entry, status, turns);
  const asOutput = isForgotten(entry, turns);
  if (entry.kind === undefined) return asState && asOutput;
  return entry.kind === 'State' ? asState : asOutput;
}

/**
 * A state counts as superseded when the session's status has a later one. Until then it may be waiting for its commit, or
 * for its copy into the status; afterwards nothing reads it, not even where an ended turn still names it.
 */
function isSuperseded(entry: StoredEntry, status: SessionStatus, turns: TurnFacts[]): boolean {
  const key = keyOf(entry);
  if (status.state?.ref === key || !isLater(status.state, entry)) return false;
  const counted = status.lastTurn?.index ?? 0;
  return !turns.some((turn) => turn.stateRef === key && (!turn.ended || turn.index > counted));
}

/** An output or log that no turn names, and that no turn that still runs can have brought. */
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
