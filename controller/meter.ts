import type { DecoderCounters } from '../core/frames/decode.ts';
import type { StoredPod } from '../core/kube/builtin.ts';
import type { KubeApi, Resource } from '../core/kube/types.ts';
import { type StoredSessionClass, type StoredTurn, turns } from '../core/resources/kinds.ts';
import { isTerminal } from '../core/resources/turn.ts';
import type { Tally } from './capacity/tally.ts';
import type { CachedSession } from './world/world.ts';

/** Told of what the controller does, as it does it. */
export interface Meter {
  /** This process's write has ended the turn. `sessionClass` is empty where there is no such class. */
  turnEnded(turn: StoredTurn, sessionClass: string): void;
  /** One look at a session, which took so many seconds. */
  reconciled(result: ReconcileResult, seconds: number, error?: unknown): void;
  /** What the decoders of all links have refused. */
  readonly refused: DecoderCounters;
}

/** As controller-runtime calls them; `stopped`: cut off, as the controller stops or leads no more. */
export type ReconcileResult = 'success' | 'requeue_after' | 'error' | 'stopped';

/** What a leader has before it. */
export interface Inventory {
  sessions: readonly CachedSession[];
  pods: readonly StoredPod[];
  /** Places that are taken. */
  tally: Tally;
  /** Of the installation; absent: no limit. */
  maxRunning: number | undefined;
  class(name: string): StoredSessionClass | undefined;
}

/** Tells of every turn that a write through `api` has ended. A write whose answer is lost is not known to have. */
export function meteredApi(api: KubeApi, onTurnEnded: (turn: StoredTurn) => void): KubeApi {
  return {
    ...api,
    replace: async (resource, object, options) => {
      const written = await api.replace(resource, object, options);
      // Written at the version at which it had not ended, so this is the one write that has ended it.
      if ((resource as Resource) === turns && options?.subresource === 'status') {
        const turn = written as unknown as StoredTurn;
        if (isTerminal(turn.status?.phase)) onTurnEnded(turn);
      }
      return written;
    },
  };
}
