import { pods } from '../../../core/kube/resources.ts';
import { type StoredSession, sessions } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID, poolOfPod } from '../../../core/resources/names.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { SESSIONS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { knewLimits, Slots } from './slots.ts';

/**
 * Pods that are not gone and sessions that were admitted never exceed a limit. A slot is judged by the highest limit
 * that has held since the controller that asked for it was last shown limits: a limit that is lowered later drains.
 */
export const capacity: MakeInvariant = (facts, limits) => {
  const slots = new Slots(facts, limits);
  /** Pod → the time up to which the controller that admitted its session knew the limits. */
  const admitted = new Map<string, number>();
  /** Pod of a pool → the time at which it was gone, virtual milliseconds. */
  const goneAt = new Map<string, number>();
  const { server } = facts;

  /** Returns the pod whose slot the change takes, unless the slot was taken already. */
  const takes = (change: Change): string | undefined => {
    const { storage, type, object, previous } = change;
    const { namespace, name, labels } = object.metadata;
    if (storage === 'pods' && type === 'ADDED' && labels?.[LABEL_SESSION_UID] !== undefined) {
      const creation = facts.callBehind(change);
      goneAt.delete(`${namespace}/${name}`);
      if (labels[LABEL_SESSION_UID] === '' && creation)
        admitted.set(`${namespace}/${name}`, knewLimits(facts, creation));
      const isOwned = server.list(sessions).some(({ metadata, status }) => {
        return metadata.namespace === namespace && status?.podName === name;
      });
      return isOwned ? undefined : `${namespace}/${name}`;
    }
    if (storage === 'pods' && type === 'DELETED' && poolOfPod(name) !== undefined)
      goneAt.set(`${namespace}/${name}`, facts.kubelets.now);
    if (storage !== SESSIONS || type === 'DELETED') return undefined;
    const podName = (object as unknown as StoredSession).status?.podName;
    if (!podName || podName === (previous as unknown as StoredSession | undefined)?.status?.podName) return undefined;
    const pod = `${namespace}/${podName}`;
    const call = facts.callBehind(change);
    const request = call && (slots.asked(call.process, pod) ?? call);
    // The pod of a pool has had its slot since it was made; it may be gone without the controller's having been shown that.
    const hasSlot =
      poolOfPod(podName) !== undefined &&
      request !== undefined &&
      (goneAt.get(pod) ?? Number.POSITIVE_INFINITY) >= facts.knewUntil(request, ['pods']);
    if (request && !hasSlot) admitted.set(pod, knewLimits(facts, request));
    return server.get(pods, namespace, podName) ? undefined : pod;
  };

  return {
    sent: slots.sent,
    committed(change) {
      slots.committed(change);
      const pod = takes(change);
      if (pod === undefined) return;
      const taken = slots.taken();
      for (const what of taken.get(pod) ?? []) {
        const count = [...taken.values()].filter((scopes) => scopes.includes(what)).length;
        const limit = Math.max(...slots.limits(what, admitted.get(pod) ?? facts.kubelets.now));
        if (count > limit) facts.fail('capacity', `${count} running slots of ${what} are taken, the limit is ${limit}`);
      }
    },
  };
};
