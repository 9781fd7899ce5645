import { defined } from '../../core/defined.ts';
import { ifThere } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import { storeKey } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { StoredEntry } from '../../core/store/store.ts';
import type { CachedSession } from '../observed/world.ts';
import { type HistoryLimits, retention } from '../settings/retention.ts';
import { type GarbageTools, MAX_REMOVALS, surelyNow } from './context.ts';
import { isLater, type StatePosition, type TurnFacts, turnFacts } from './facts.ts';
import type { HistorySize } from './pace.ts';
import { removeTurns } from './remove-turns.ts';
import { isGarbage, MIN_AGE_MS } from './stored.ts';

/** Turns per page; they come with their bodies, so pages are small. */
const PAGE = 50;
/** Time until turns with stored data are looked for again: no event comes for the deletion of one that has ended. */
const LOOK_AGAIN_MS = 6 * 3_600_000;

export interface Swept {
  /** Milliseconds until the next sweep, if something is to be removed later or may be. */
  againMs?: number;
  /** True if states that are superseded stay for a while. */
  leavesStates?: boolean;
  /** History that is left; undefined for a session that is gone. */
  left?: HistorySize;
  /** Limits of the history; undefined where it was not read. */
  limits?: HistoryLimits;
}

/**
 * Removes one session's history beyond its limits, and its stored data that is no longer needed. After an interruption
 * the next sweep finds the rest: no turn names what a removed turn had stored. `known`: the history where it is known
 * to be within its limits; it is read again only if something is stored. `countedState`: a state whose count is a minute old.
 */
export async function sweepSession(
  tools: GarbageTools,
  session: CachedSession,
  countedState: StatePosition | undefined,
  signal: AbortSignal,
  known?: HistorySize,
): Promise<Swept> {
  const { api, caches, store } = tools;
  const { name, uid } = session.metadata;
  const namespace = session.metadata.namespace;
  // The order of the reads matters: see `isGarbage`.
  const stored = await store.list({ namespace, sessionUID: uid }, signal);
  if (known && stored.length === 0) return { left: known };
  const facts = await turnsOf(tools, session, signal);
  const live = await ifThere(api.get(sessions, { namespace, name }, { signal }));
  if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp) return {};
  const status = live.status ?? {};

  const { history } = retention(session, caches.class(session.spec.class));
  const over = overHistory(facts, status, history);
  const removed = await removeTurns(tools, session, over.slice(0, MAX_REMOVALS), signal);
  const present = facts.filter((turn) => !removed.has(turn));
  const garbage = stored.filter((entry) => isGarbage(entry, status, present));
  // What a removed turn had stored goes with it: the turn had ended, so no commit brings it again.
  const orphaned = new Set([...removed].flatMap(({ refs }) => refs));
  const later = await removeStored(tools, session, { stored, garbage, countedState, orphaned }, signal);
  const againMs = over.length > MAX_REMOVALS ? 1 : later;
  const leavesStates = garbage.some((entry) => entry.kind === 'State' && !isLater(countedState, entry));
  // A turn that ended between the two reads is in the later status but not in the facts; the earlier one counts.
  const counted = session.status?.turns?.total ?? 0;
  return {
    left: leftOf(present, counted),
    limits: history,
    leavesStates,
    ...defined({ againMs }),
  };
}

function leftOf(facts: TurnFacts[], counted: number): HistorySize {
  const ended = facts.filter((turn) => turn.ended);
  const bytes = ended.reduce((sum, turn) => sum + turn.bytes, 0);
  const stored = ended.reduce((sum, turn) => sum + turn.stored, 0);
  return { turns: ended.length, bytes, stored, counted };
}

/** The turns that the session owns, read live. */
export async function turnsOf(
  { api }: GarbageTools,
  session: CachedSession,
  signal: AbortSignal,
): Promise<TurnFacts[]> {
  const { name, uid } = session.metadata;
  const scope = { namespace: session.metadata.namespace, fieldSelector: `spec.session=${name}`, limit: PAGE };
  const facts: TurnFacts[] = [];
  await eachPage(api, turns, { ...scope, signal }, ({ items }) => {
    for (const turn of items) {
      if (turn.metadata.ownerReferences?.some((owner) => owner.uid === uid)) facts.push(turnFacts(turn));
    }
  });
  return facts;
}

interface Removable {
  stored: StoredEntry[];
  garbage: StoredEntry[];
  /** A state whose count is a minute old. */
  countedState: StatePosition | undefined;
  /** Keys of what turns had stored that were removed now. */
  orphaned: ReadonlySet<string>;
}

/** Resolves with the milliseconds until something else is to be removed, without superseded states. */
async function removeStored(
  tools: GarbageTools,
  session: CachedSession,
  { stored, garbage, countedState, orphaned }: Removable,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { store, log } = tools;
  const now = surelyNow(tools);
  const old = garbage.filter((entry) =>
    entry.kind === 'State'
      ? isLater(countedState, entry)
      : orphaned.has(storeKey(entry.sessionUID, entry.incarnation, entry.seq)) || entry.createdAt + MIN_AGE_MS <= now,
  );
  for (const entry of old.slice(0, MAX_REMOVALS)) {
    signal.throwIfAborted();
    await store.delete({ ...entry, kind: entry.kind ?? 'State' }, tools.removals);
  }
  const { metadata } = session;
  if (old.length > 0) log.info({ session: metadata.name, uid: metadata.uid, blobs: old.length }, 'blobs removed');
  if (old.length > MAX_REMOVALS) return 1;
  const others = garbage.filter(({ kind }) => kind !== 'State');
  const young = others.filter((entry) => !old.includes(entry)).map(({ createdAt }) => createdAt + MIN_AGE_MS - now);
  if (young.length > 0) return Math.max(1, Math.min(...young));
  const ofTurns = stored.filter(({ kind }) => kind !== 'State').length;
  return ofTurns > others.length ? LOOK_AGAIN_MS : undefined;
}

/**
 * Ended turns beyond the limits, the oldest first. A turn may go only once the session's status counts it and has its
 * state; the last turn stays, even if it is too large.
 */
export function overHistory(turns: TurnFacts[], status: SessionStatus, limits: HistoryLimits): TurnFacts[] {
  // Turns without an index were refused as SessionFinished or QueueFull.
  const ended = turns.filter((turn) => turn.ended).sort((a, b) => b.index - a.index || b.endedAt - a.endedAt);
  const counted = status.lastTurn?.index ?? 0;
  const over: TurnFacts[] = [];
  let kept = 0;
  let bytes = 0;
  let stored = 0;
  for (const turn of ended) {
    bytes += turn.bytes;
    stored += turn.stored;
    const fits = kept === 0 || (kept < limits.turns && bytes <= limits.bytes && stored <= limits.stored);
    const copied = turn.index <= counted && !isLater(turn.state, status.state);
    if (fits) kept++;
    else if (copied) over.unshift(turn);
  }
  return over;
}
