import { isNotFound } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { type StoredSession, sessions, turns } from '../../core/resources/kinds.ts';
import { parseStoreKey } from '../../core/resources/names.ts';
import type { CachedSession } from '../world/world.ts';
import { type GarbageTools, MAX_REMOVALS } from './context.ts';
import { isLater, type TurnFacts, turnFacts } from './facts.ts';
import { removeTurns } from './remove-turns.ts';
import { sweepStates } from './sweep-states.ts';

/** Turns per page; they come with their bodies, so pages are small. */
const PAGE = 50;
/** Bytes in the store, as base64, for each byte stored. */
const BASE64 = 4 / 3;

/**
 * Removes the superseded states of the namespace's sessions at once, however short a time ago they were superseded.
 * Resolves with whether there were any.
 */
export async function clearStates(tools: GarbageTools, namespace: string, signal: AbortSignal): Promise<boolean> {
  const { caches, store } = tools;
  const stored = await store.list({ namespace }, signal);
  let cleared = false;
  for (const session of caches.allSessions()) {
    const { metadata, status } = session;
    const state = status?.state;
    if (metadata.namespace !== namespace || !state) continue;
    const isOld = stored.some(
      (entry) => entry.sessionUID === metadata.uid && entry.kind === 'State' && isLater(state, entry),
    );
    if (!isOld) continue;
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
  const owned = await storedHistory(tools, namespace, signal);
  const oldest = [...owned].flatMap(([session, all]) => withoutLast(all).map((turn) => ({ session, turn })));
  oldest.sort((a, b) => a.turn.endedAt - b.turn.endedAt);
  const chosen = new Map<CachedSession, TurnFacts[]>();
  let freed = 0;
  for (const { session, turn } of oldest.slice(0, MAX_REMOVALS)) {
    if (freed >= bytes) break;
    freed += turn.stored * BASE64;
    chosen.set(session, [...(chosen.get(session) ?? []), turn]);
  }
  let removedAny = false;
  for (const [session, over] of chosen) {
    const { name, uid } = session.metadata;
    const live = await api.get(sessions, { namespace, name }, { signal }).catch((error) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp) continue;
    const removable = over.filter((turn) => isCopied(turn, live));
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

/** Ended turns with stored outputs, logs or artifacts, by their session, and each session's last turn. */
async function storedHistory(
  { api, caches }: GarbageTools,
  namespace: string,
  signal: AbortSignal,
): Promise<Map<CachedSession, TurnFacts[]>> {
  // Nothing is removed while the class is gone: it may be replaced, and may keep for longer.
  const known = new Map(
    caches
      .allSessions()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && caches.class(spec.class))
      .map((session) => [session.metadata.uid, session]),
  );
  const owned = new Map<CachedSession, TurnFacts[]>();
  await eachPage(api, turns, { namespace, limit: PAGE, signal }, ({ items }) => {
    for (const turn of items) {
      const session = turn.metadata.ownerReferences?.map(({ uid }) => known.get(uid)).find(Boolean);
      const facts = turnFacts(turn);
      if (session && facts.ended) owned.set(session, [...(owned.get(session) ?? []), facts]);
    }
  });
  return owned;
}

function withoutLast(ended: TurnFacts[]): TurnFacts[] {
  const last = Math.max(...ended.map(({ index }) => index));
  return ended.filter(({ index, refs }) => index !== last && refs.length > 0);
}

/** Reports whether the session's status counts the turn and has its state. */
function isCopied(turn: TurnFacts, { status = {} }: StoredSession): boolean {
  return turn.index <= (status.lastTurn?.index ?? 0) && !isLater(turn.state, status.state);
}
