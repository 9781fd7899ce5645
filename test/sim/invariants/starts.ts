import type { StoredPod } from '../../../core/kube/builtin.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { ownerOf, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Pods of a session whose container could not be started, before its turns fail. */
const ATTEMPTS = 3;

/** Reason with which a container runtime reports a container that it could not start. */
const REASON = 'StartError';

/** A turn fails for a container that could not be started only after three pods of its session had one. */
export const triedAgain: MakeInvariant = (facts) => {
  /** Session uid → its pods whose container could not be started. */
  const failed = new Map<string, Set<string>>();
  return {
    committed({ storage, object, previous }) {
      const { uid = '', labels } = object.metadata;
      if (storage === 'pods') {
        const { status } = object as unknown as StoredPod;
        const session = labels?.[LABEL_SESSION_UID];
        const couldNotStart = status?.containerStatuses?.some(({ state }) => state?.terminated?.reason === REASON);
        if (session && couldNotStart) failed.set(session, (failed.get(session) ?? new Set()).add(uid));
      }
      if (storage !== TURNS || isTerminal((previous as unknown as StoredTurn | undefined)?.status?.phase)) return;
      const turn = object as unknown as StoredTurn;
      const { code, message } = turn.status?.error ?? {};
      if (code !== 'StartFailed' || !message?.includes(REASON)) return;
      const pods = failed.get(ownerOf(turn) ?? '')?.size ?? 0;
      if (pods < ATTEMPTS)
        facts.fail(
          'tried again',
          `turn ${turn.metadata.name} fails for ${pods} pods whose container could not be started`,
        );
    },
  };
};
