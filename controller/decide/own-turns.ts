import { isTerminal } from '../../core/resources/turn.ts';
import type { CachedSession, CachedTurn } from '../world.ts';

/** The Turns of one session, told apart once for all policies. */
export interface OwnTurns {
  /** Not ended, in the order in which they run. */
  live: CachedTurn[];
  /** The one that runs. */
  running: CachedTurn | undefined;
  /** Ended, but not yet counted in the session's status, by index. */
  uncounted: CachedTurn[];
  /** Without any owner, in order of creation. */
  ownerless: CachedTurn[];
  /** The highest index ever given. */
  lastIndex: number;
}

const owner = (turn: CachedTurn) => turn.metadata.ownerReferences?.find((reference) => reference.kind === 'Session');

/** A turn belongs to a session by the owner's uid alone, never by name. */
export function ownTurns(session: CachedSession, turns: CachedTurn[]): OwnTurns {
  const own = turns.filter((turn) => owner(turn)?.uid === session.metadata.uid);
  const counted = session.status?.lastTurn?.index ?? 0;
  const live = own.filter((turn) => !isTerminal(turn.status.phase) && !turn.metadata.deletionTimestamp).sort(byOrder);
  return {
    live,
    running: live.find((turn) => turn.status.phase === 'Running'),
    uncounted: own.filter((turn) => isTerminal(turn.status.phase) && (turn.status.index ?? 0) > counted).sort(byOrder),
    ownerless: turns.filter((turn) => !owner(turn) && !isTerminal(turn.status.phase)).sort(byOrder),
    lastIndex: Math.max(counted, ...own.map((turn) => turn.status.index ?? 0)),
  };
}

/** Indexed turns by index, then the others as they were created: several share a second, their versions tell them apart. */
function byOrder(a: CachedTurn, b: CachedTurn): number {
  const index = (turn: CachedTurn) => turn.status.index ?? Number.MAX_SAFE_INTEGER;
  const version = (turn: CachedTurn) => Number(turn.metadata.resourceVersion);
  return (
    index(a) - index(b) ||
    Date.parse(a.metadata.creationTimestamp) - Date.parse(b.metadata.creationTimestamp) ||
    version(a) - version(b) ||
    (a.metadata.name < b.metadata.name ? -1 : 1)
  );
}
