import { defined } from '../../core/defined.ts';
import { keyOf } from '../../core/kube/cache.ts';
import { Informer } from '../../core/kube/informer.ts';
import { eachPage } from '../../core/kube/pages.ts';
import type { KubeObject, ListOptions } from '../../core/kube/types.ts';
import { type StoredTurn, sessionOwner, type Turn, turns } from '../../core/resources/kinds.ts';
import { isTerminal, LIVE_TURNS } from '../../core/resources/turn-phases.ts';
import type { CachedSession, CachedTurn } from '../observed/world.ts';
import type { SessionCache } from './sessions.ts';
import { slimTurn, unreadableTurn } from './slim.ts';
import type { RequiredTools } from './tools.ts';

export interface TurnLister {
  /** Cached Turns that name the session. */
  turnsNaming(namespace: string, session: string): CachedTurn[];
  turn(namespace: string, name: string): CachedTurn | undefined;
  /** Turns that have not ended; of the others some. */
  allTurns(): CachedTurn[];
  /** Reads all turns that name the session, also ended ones. */
  refreshTurns(namespace: string, session: string, signal: AbortSignal): Promise<void>;
  /** Treats the turn as absent until it changes. */
  leaveOut(turn: Pick<StoredTurn['metadata'], 'namespace' | 'name' | 'uid' | 'resourceVersion'>, session: string): void;
  isLeftOut(turn: Pick<StoredTurn['metadata'], 'uid' | 'resourceVersion'>): boolean;
}

const PAGE = 500;
const OF_SESSION = 'ofSession';

/** The cache of Turns: those that have not ended, and ended ones until their session has counted them. */
export function turnCache(tools: RequiredTools, sessions: SessionCache) {
  const informer = new Informer<Turn, CachedTurn>({
    ...tools,
    resource: turns,
    transform: slimTurn,
    unreadable: (turn, error) => unreadableTurn(turn, (error as Error).message),
    indexes: { [OF_SESSION]: (turn) => [`${turn.metadata.namespace}/${turn.spec.session}`] },
    keep: (turn) => !isDone(turn, sessions.informer.get(turn.metadata.namespace, turn.spec.session)),
  });
  // Drops turns that the session has counted.
  const prune = ({ metadata }: KubeObject) => informer.prune(OF_SESSION, keyOf(metadata));
  sessions.informer.addHandler({ add: prune, update: prune });
  /** UIDs of the turns that are left out, with the version in which they are. */
  const leftOut = new Map<string, string>();
  const takeIn = ({ metadata }: CachedTurn) => leftOut.delete(metadata.uid);
  informer.addHandler({ update: takeIn, delete: takeIn });
  const onTurn = (turn: CachedTurn) =>
    tools.watchers.notify('session', `${turn.metadata.namespace}/${turn.spec.session}`);
  informer.addHandler({ add: onTurn, update: onTurn, delete: onTurn });

  const isLeftOut: TurnLister['isLeftOut'] = ({ uid, resourceVersion }) => leftOut.get(uid) === resourceVersion;
  const notLeftOut = (turn: CachedTurn) => !isLeftOut(turn.metadata);
  const read = (scope: ListOptions) =>
    eachPage(tools.api, turns, { ...scope, limit: PAGE }, ({ items }) => {
      for (const turn of items) informer.apply(turn);
    });
  const lister: TurnLister = {
    turnsNaming: (namespace, session) => informer.byIndex(OF_SESSION, `${namespace}/${session}`).filter(notLeftOut),
    turn: (namespace, name) => {
      const turn = informer.get(namespace, name);
      return turn && notLeftOut(turn) ? turn : undefined;
    },
    allTurns: () => informer.list().filter(notLeftOut),
    refreshTurns: async (namespace, session, signal) => {
      await read({ namespace, fieldSelector: `spec.session=${session}`, signal });
    },
    leaveOut: ({ namespace, name, uid, resourceVersion }, session) => {
      // A turn that is gone would never be cleared from the map.
      if (informer.get(namespace, name)?.metadata.uid === uid) leftOut.set(uid, resourceVersion);
      tools.watchers.notify('session', `${namespace}/${session}`);
    },
    isLeftOut,
  };
  /** Reads the turns of a namespace, or of all, that have not ended. */
  const refreshLive = async (namespace: string | undefined, signal: AbortSignal) => {
    await read({ ...defined({ namespace }), fieldSelector: LIVE_TURNS, signal });
  };
  return { informer, lister, onTurn, refreshLive };
}

export type TurnCache = ReturnType<typeof turnCache>;

/**
 * Reports whether an ended turn can leave the cache: its session's status has counted it, or it ended without an owner
 * and so belongs to no session.
 */
function isDone({ metadata, spec, status }: CachedTurn, session: CachedSession | undefined): boolean {
  if (!isTerminal(status?.phase)) return false;
  const owner = sessionOwner(metadata)?.uid;
  if (owner === undefined) return true;
  const { uid, name } = session?.metadata ?? {};
  return uid === owner && name === spec.session && (status?.index ?? 0) <= (session?.status?.lastTurn?.index ?? 0);
}
