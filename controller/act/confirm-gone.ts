import type { StoredPod } from '../../core/kube/builtin.ts';
import { isForbidden, isInvalid, isNotFound, TransportError } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { turns } from '../../core/resources/kinds.ts';
import {
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  podName,
} from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { learn } from '../observed/memory.ts';
import { isFromPool, isSessionPod } from '../observed/session-pods.ts';
import type { ReconcileContext } from './context.ts';

/** A pod counts as gone when a live read says so and no turn was committed since. */
export async function confirmGone(context: ReconcileContext, podUID: string): Promise<void> {
  const { effects, world, memory, signal } = context;
  const { api } = effects;
  const { session } = world;
  const namespace = session.metadata.namespace;
  const ran = world.turns.find(({ status }) => status.podUID === podUID)?.status.incarnation;
  const incarnation = ran ?? session.status?.incarnation ?? 0;
  const { podName: present, podUID: presentUID } = session.status ?? {};
  const isPresent = podUID === presentUID && present !== undefined;
  const name = isPresent ? present : await nameOf(context, podUID, podName(session.metadata.uid, incarnation));
  try {
    const pod = await api.get(pods, { namespace, name }, { signal });
    // A pod of a pool that the session has not claimed, or that another has, is not its to lose.
    if (pod.metadata.uid === podUID && !isOfAnother(pod, session.metadata.uid)) {
      if (!isSessionPod(pod)) await restoreLabels(context, pod, incarnation);
      throw new TransportError(`the cache does not show pod ${name}, which exists; looking again`);
    }
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  for (const turn of world.turns) {
    if (isTerminal(turn.status.phase) || turn.status.podUID !== podUID) continue;
    // The next decision is made upon what the turn says now.
    await api.get(turns, { namespace, name: turn.metadata.name }, { signal });
  }
  learn(memory, { fact: 'GoneConfirmed', podUID });
}

/** Name of the session's pod with this uid, among those that its labels show; else the name that a pod of its own had. */
async function nameOf(
  { effects, world, signal }: ReconcileContext,
  podUID: string,
  otherwise: string,
): Promise<string> {
  const { namespace, uid } = world.session.metadata;
  const { items } = await effects.api.list(pods, { namespace, labelSelector: `${LABEL_SESSION_UID}=${uid}`, signal });
  return items.find(({ metadata }) => metadata.uid === podUID)?.metadata.name ?? otherwise;
}

/** Reports whether the pod was made by a pool, and is owned by it or by another session. */
function isOfAnother({ metadata: { name, ownerReferences = [], labels } }: StoredPod, session: string): boolean {
  if (!isFromPool(name)) return false;
  if (ownerReferences.length === 0) return labels?.[LABEL_SESSION_UID] !== session;
  return !ownerReferences.some(({ kind, uid }) => kind === 'Session' && uid === session);
}

/**
 * Brings the cache up to the pod's present state. A pod that is gone may have run before: nothing is decided about it
 * before the cache shows that it is gone.
 */
export async function readPod({ effects, memory, signal }: ReconcileContext, { metadata }: StoredPod): Promise<void> {
  const { name, uid, namespace } = metadata;
  const live = await effects.api.get(pods, { namespace, name }, { signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    return undefined;
  });
  if (live?.metadata.uid !== uid) throw new TransportError(`the cache shows pod ${name}, which is gone; reading again`);
  learn(memory, { fact: 'PodRead', podUID: uid });
}

/**
 * Restores the labels by which the pod is found, after somebody has changed them. A pod that does not keep them, or may not
 * have them, is deleted.
 */
async function restoreLabels(context: ReconcileContext, pod: StoredPod, incarnation: number): Promise<void> {
  const { effects, world, signal, key } = context;
  const { uid, name, namespace } = pod.metadata;
  const ref = { namespace, name };
  const labels = {
    [LABEL_MANAGED_BY]: MANAGED_BY,
    [LABEL_SESSION]: world.session.metadata.name,
    [LABEL_SESSION_UID]: world.session.metadata.uid,
    [LABEL_INCARNATION]: String(incarnation),
  };
  const patch = { metadata: { uid, labels } };
  const mended = await effects.api.patch(pods, ref, patch, { type: 'merge', signal }).catch((error: unknown) => {
    if (!isForbidden(error) && !isInvalid(error)) throw error;
    effects.log.warn({ session: key, pod: name, err: error }, 'labels of a pod could not be restored');
    return pod;
  });
  const kept = isSessionPod(mended);
  effects.log.warn({ session: key, pod: name, kept }, 'changed labels of a pod restored');
  if (!kept) await effects.api.delete(pods, ref, { uid, signal });
}
