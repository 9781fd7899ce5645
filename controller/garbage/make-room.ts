import { ifThere } from '../../core/kube/errors.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { parseStoreKey } from '../../core/resources/names.ts';
import type { StoredEntry } from '../../core/store/store.ts';
import type { CachedSession } from '../observed/world.ts';
import { type GarbageTools, MAX_REMOVALS } from './context.ts';
import { isLater, type TurnFacts } from './facts.ts';
import { removeTurns } from './remove-turns.ts';
import { turnsOf } from './sweep-session.ts';
import { sweepStates } from './sweep-states.ts';

/** Bytes in the store, as base64, for each byte stored. */
const BASE64 = 4 / 3;

/** A session with what is stored of it. */
interface Owned {
  session: CachedSession;
  entries: StoredEntry[];
}

interface Candidate {
  session: CachedSession;
  turn: TurnFacts;
}

/**
 * Removes the superseded states of the namespace's sessions at once, also those that were superseded just now.
 * Resolves with whether there were any.
 */
export async function clearStates(tools: GarbageTools, namespace: string, signal: AbortSignal): Promise<boolean> {
  let cleared = false;
  for (const { session, entries } of await ownedIn(tools, namespace, signal)) {
    const state = session.status?.state;
    if (!state || !entries.some((entry) => entry.kind === 'State' && isLater(state, entry))) continue;
    const { removed } = await sweepStates(tools, session, state, signal);
    cleared ||= removed > 0;
  }
  return cleared;
}

/**
 * Removes ended turns of the namespace with what they have stored, the oldest first, until about `bytes` of the store are
 * free. The last turn of each session stays. Resolves with whether any turn was removed.
 */
export async function giveWay(
  tools: GarbageTools,
  namespace: string,
  bytes: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { api, store } = tools;
  const chosen = Map.groupBy(await oldest(tools, namespace, bytes, signal), ({ session }) => session);
  let removedAny = false;
  for (const [session, over] of chosen) {
    const { name, uid } = session.metadata;
    const live = await ifThere(api.get(sessions, { namespace, name }, { signal }));
    if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp) continue;
    const removable = over.map(({ turn }) => turn).filter((turn) => isCopied(turn, live));
    for (const { refs } of await removeTurns(tools, session, removable, signal)) {
      removedAny = true;
      for (const ref of new Set(refs)) {
        const key = parseStoreKey(ref);
        if (key?.sessionUID === uid) await store.delete({ namespace, ...key, kind: 'Output' }, tools.removals);
      }
    }
  }
  return removedAny;
}

/** The oldest turns that may give way and hold about `bytes` together. */
async function oldest(
  tools: GarbageTools,
  namespace: string,
  bytes: number,
  signal: AbortSignal,
): Promise<Candidate[]> {
  const owned = (await ownedIn(tools, namespace, signal))
    // Nothing is removed while the class is gone: it may be replaced, and may keep for longer.
    .filter(({ session }) => tools.caches.class(session.spec.class))
    .map(({ session, entries }) => ({ session, since: oldestHistory(entries) }))
    .filter(({ since }) => Number.isFinite(since))
    .sort((a, b) => a.since - b.since);
  const found: Candidate[] = [];
  for (const { session, since } of owned) {
    // Turns come with their bodies: those of sessions whose history is younger need not be read.
    if (bytesOf(found.filter(({ turn }) => turn.endedAt < since)) >= bytes) break;
    const ended = (await turnsOf(tools, session, signal)).filter((turn) => turn.ended);
    found.push(...withoutLast(ended).map((turn) => ({ session, turn })));
  }
  found.sort((a, b) => a.turn.endedAt - b.turn.endedAt);
  const chosen: Candidate[] = [];
  for (let at = 0, freed = 0; at < found.length && freed < bytes && at < MAX_REMOVALS; at++) {
    const candidate = found[at] as Candidate;
    chosen.push(candidate);
    freed += candidate.turn.stored * BASE64;
  }
  return chosen;
}

/** The sessions of the namespace that have something stored. */
async function ownedIn({ caches, store }: GarbageTools, namespace: string, signal: AbortSignal): Promise<Owned[]> {
  const stored = Map.groupBy(await store.list({ namespace }, signal), ({ sessionUID }) => sessionUID);
  return caches.allSessions().flatMap((session) => {
    const entries = session.metadata.namespace === namespace ? stored.get(session.metadata.uid) : undefined;
    return entries ? [{ session, entries }] : [];
  });
}

const oldestHistory = (entries: StoredEntry[]) =>
  Math.min(...entries.filter(({ kind }) => kind !== 'State').map(({ createdAt }) => createdAt));

const bytesOf = (candidates: Candidate[]) => candidates.reduce((sum, { turn }) => sum + turn.stored * BASE64, 0);

function withoutLast(ended: TurnFacts[]): TurnFacts[] {
  const last = Math.max(...ended.map(({ index }) => index));
  return ended.filter(({ index, refs }) => index !== last && refs.length > 0);
}

/** Reports whether the session's status counts the turn and has its state. */
function isCopied(turn: TurnFacts, { status = {} }: StoredSession): boolean {
  return turn.index <= (status.lastTurn?.index ?? 0) && !isLater(turn.state, status.state);
}
