import { sessionOwner } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { CachedSession, CachedTurn } from './world.ts';

/** The Turns that name one session, sorted by what policies do with them. */
export interface OwnTurns {
  /** Turns of this session that have not ended, in the order in which they run. */
  live: CachedTurn[];
  /** The turn that a pod runs, or may begin to run at any time. */
  running: CachedTurn | undefined;
  /** Ended turns that the session's status does not count yet, by index. */
  uncounted: CachedTurn[];
  /** Turns without an owner, in order of creation. */
  ownerless: CachedTurn[];
  /** Turns that have not ended and belong to another session of this name. */
  replaced: CachedTurn[];
  /** The highest index known to have been given. */
  lastIndex: number;
}

type Owned = Pick<CachedTurn, 'metadata'>;
const owner = (turn: Owned) => sessionOwner(turn.metadata);

/**
 * Reports whether the turn was given to a pod. A runnerless pod may begin it at any time from then on, also while the turn
 * is shown as Queued because the pod has not started.
 */
export function isGiven({ status }: { status?: Pick<TurnStatus, 'phase' | 'podUID'> | undefined }): boolean {
  return status?.phase === 'Running' || (status?.phase === 'Queued' && status.podUID !== undefined);
}

/** A turn belongs to a session by the owner's uid alone, never by name. */
export function isOwn(session: CachedSession, turn: Owned): boolean {
  return owner(turn)?.uid === session.metadata.uid;
}

/**
 * Reports whether the turn is owned by another session of this name: a former one, or one that the cache does not show
 * yet.
 */
export function isOthers(session: CachedSession, turn: Owned): boolean {
  return owner(turn) !== undefined && !isOwn(session, turn);
}

/** An ownerless turn is the session's own unless it is older, or has had an index: then it was meant for a former one. */
export function isToAdopt(session: CachedSession, { metadata, status }: CachedTurn): boolean {
  const older = Date.parse(metadata.creationTimestamp) < Date.parse(session.metadata.creationTimestamp);
  return !older && status.index === undefined;
}

export function ownTurns(session: CachedSession, turns: readonly CachedTurn[]): OwnTurns {
  const own = turns.filter((turn) => isOwn(session, turn));
  const counted = session.status?.lastTurn?.index ?? 0;
  const live = own.filter((turn) => !isTerminal(turn.status.phase) && !turn.metadata.deletionTimestamp).sort(byOrder);
  return {
    live,
    running: live.find(isGiven),
    uncounted: own.filter((turn) => isTerminal(turn.status.phase) && (turn.status.index ?? 0) > counted).sort(byOrder),
    replaced: turns.filter((turn) => isOthers(session, turn) && !isTerminal(turn.status.phase)),
    ownerless: turns.filter((turn) => !owner(turn) && !isTerminal(turn.status.phase)).sort(byOrder),
    // A turn can be deleted before it is counted: a request to suspend after it knows its index all the same.
    lastIndex: Math.max(
      counted,
      session.status?.suspendHandled?.afterTurn ?? 0,
      ...own.map((turn) => turn.status.index ?? 0),
    ),
  };
}

/**
 * Orders indexed turns by index, then the others by creation. Creation times are whole seconds, so resource versions
 * order turns of the same second.
 */
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

/** Reasons for which a turn waits although its session may have a slot. */
const BESIDE_SLOT: ReadonlySet<string | undefined> = new Set(['GroupLimit', 'StoreShareUsed']);

/**
 * Reports whether the turn is shown to wait for its concurrency group or for room in the store, so that its session cannot use
 * its slot. Only the next turn of a session is.
 */
export function cannotUseSlot({ status }: { status?: Pick<TurnStatus, 'phase' | 'conditions'> | undefined }): boolean {
  const shown = status?.conditions?.find(({ type }) => type === 'Finished');
  return status?.phase === 'Queued' && BESIDE_SLOT.has(shown?.reason);
}
