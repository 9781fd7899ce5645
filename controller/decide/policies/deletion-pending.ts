import type { Policy } from '../draft.ts';

/**
 * A pod whose deletion was asked for, although the cache does not show it yet: whether the request arrived or not, there is
 * no way back, or a turn could be given to a runner that is about to be killed.
 */
export const deletionPending: Policy = (draft) => {
  const { pod, memory, session } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || memory.deletionPending?.podUID !== pod.metadata.uid) return undefined;
  draft.suspending = session.status?.phase === 'Suspending';
  if (!memory.deletionPending.accepted) draft.actions.push({ do: 'DeletePod', pod, why: memory.deletionPending.why });
  return 'Stop';
};
