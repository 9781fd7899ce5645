import type { StoredPod } from '../../../core/kube/builtin.ts';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Failed starts of a session one after the other, before its turns fail. */
const ATTEMPTS = 3;

/** Reason with which a container runtime reports a container that it could not start. */
const REASON = 'StartError';

/**
 * A turn fails for a container that could not be started only with the third failed start one after the other. A pod that the
 * controller itself has shown as ready was none, however it ended; of one that was bound it may never have heard.
 */
export const triedAgain: MakeInvariant = (facts) => {
  /** Session uid → its pods that have ended since one of them was last shown as ready. */
  const ended = new Map<string, Set<string>>();
  /** Pod uid and process of a controller that has shown it as ready. */
  const shown = new Set<string>();
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      const { uid = '', labels } = object.metadata;
      const process = facts.callBehind(change)?.process;
      if (storage === 'pods') {
        const { phase = '' } = (object as unknown as StoredPod).status ?? {};
        const session = labels?.[LABEL_SESSION_UID];
        const isOver = type === 'DELETED' || phase === 'Failed' || phase === 'Succeeded';
        if (session && isOver) ended.set(session, (ended.get(session) ?? new Set()).add(uid));
      }
      if (storage === SESSIONS) {
        const { podUID, conditions } = (object as unknown as StoredSession).status ?? {};
        if (!podUID || !conditions?.some((one) => one.type === 'Ready' && one.status === 'True')) return;
        if (!shown.has(`${podUID} ${process}`)) ended.delete(uid);
        shown.add(`${podUID} ${process}`);
      }
      if (storage !== TURNS || isTerminal((previous as unknown as StoredTurn | undefined)?.status?.phase)) return;
      const turn = object as unknown as StoredTurn;
      const { code, message } = turn.status?.error ?? {};
      if (code !== 'StartFailed' || !message?.includes(REASON)) return;
      const pods = [...(ended.get(ownerOf(turn) ?? '') ?? [])].filter((pod) => !shown.has(`${pod} ${process}`));
      if (pods.length < ATTEMPTS)
        facts.fail('tried again', `turn ${turn.metadata.name} fails after ${pods.length} failed starts`);
    },
  };
};
