import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Store } from '../../core/store/store.ts';
import type { Caches } from '../caches.ts';
import type { EventFacts } from '../decide/events.ts';
import type { Ledger } from '../ledger.ts';
import type { MasterKeys } from '../link/keys.ts';
import type { Links } from '../link/links.ts';
import type { CachedSession, Memory, World } from '../world.ts';

/** Everything that effects are made with; the same for all sessions. */
export interface Effects {
  api: KubeApi;
  caches: Caches;
  store: Store;
  links: Links;
  ledger: Ledger;
  keys: MasterKeys;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Tells people by a Kubernetes Event on the session. */
  notify(session: CachedSession, event: EventFacts): void;
}

/** One pass over one session. */
export interface Pass {
  effects: Effects;
  key: string;
  world: World;
  memory: SessionMemory;
  /** Aborts when the controller stops or no longer leads. */
  signal: AbortSignal;
}

/** What the leader keeps of a session between passes; see `Memory` for what decisions see of it. */
export interface SessionMemory extends Memory {
  /** Inputs of turns that are written Running and not yet sent, by uid. */
  inputs: Map<string, unknown>;
}
