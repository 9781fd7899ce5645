import type { Policy } from '../draft.ts';

/**
 * Waits for a pod whose deletion was requested but does not show in the cache. Whether or not the request arrived, it
 * must not be undone: a turn could be given to a runner that is about to be killed.
 */
export const deletionPending: Policy = (draft) => {
  const { pod, memory, session } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || memory.incarnation.deletionPending?.podUID !== pod.metadata.uid)
    return undefined;
  draft.suspending = session.status?.phase === 'Suspending';
  const { podUID: _, accepted, ...asked } = memory.incarnation.deletionPending;
  if (!accepted) draft.actions.push({ do: 'DeletePod', pod, ...asked });
  return 'Stop';
};
