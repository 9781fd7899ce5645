import type { KubeApi } from '../../core/kube/types.ts';
import type { StoredTurn } from '../../core/resources/kinds.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Ledger } from '../capacity/ledger.ts';
import type { Archives } from '../environments/archives.ts';
import type { SessionStore } from '../garbage/session-store.ts';
import type { MasterKeys } from '../link/keys.ts';
import type { Links } from '../link/links.ts';
import type { NetworkPolicies } from '../network/policies.ts';
import type { SessionMemory, World } from '../observed/world.ts';
import type { Pools } from '../pools/pools.ts';
import type { StatusWriter } from '../runtime/status-writer.ts';
import type { Notify } from '../status/events.ts';
import type { LogPlaces } from './log-places.ts';
import type { StatePrefetch } from './state-prefetch.ts';

/** The present leadership. */
export interface Leader {
  /** Drawn at every start of the process. */
  identity: string;
  epoch(): number;
  /**
   * No request of the leader before can take effect any more, and what it did has been read. Before that no turn is given
   * an index and no runner a session, a turn or a decision.
   */
  isReady(): boolean;
}

/** Makes room in the store. */
interface RoomMaker {
  /** Removes from the namespace what may give way, about so many bytes; resolves with whether there was any. */
  makeRoom(namespace: string, bytes: number): Promise<boolean>;
}

/** Dependencies of all effects; the same for all sessions. */
export interface Effects {
  api: KubeApi;
  statuses: StatusWriter;
  caches: Caches;
  store: SessionStore;
  rooms: RoomMaker;
  archives: Archives;
  statePrefetch: StatePrefetch;
  links: Links;
  ledger: Ledger;
  networkPolicies: NetworkPolicies;
  pools: Pick<Pools, 'count'>;
  keys: MasterKeys;
  leader: Leader;
  /** The API server's time, for comparisons with timestamps. */
  clock: Clock;
  /** Time by this machine's clock, milliseconds since the epoch: for a comparison with another time of this machine. */
  ownTime(): number;
  random: Random;
  log: Logger;
  /** Limits how many logs of ended containers are in memory. */
  logPlaces: LogPlaces;
  /** Waits for a store without keeping other sessions from being reconciled. */
  withoutWorker<R>(work: () => Promise<R>): Promise<R>;
  /** Logs that the turn has ended, or waits for a decision; `statuses` does so for its own writes. */
  logCommit(turn: StoredTurn): void;
  notify: Notify;
}

/** Context of one reconcile of one session. */
export interface ReconcileContext {
  effects: Effects;
  key: string;
  world: World;
  memory: SessionMemory;
  /** Aborts when the controller stops or no longer leads. */
  signal: AbortSignal;
}
