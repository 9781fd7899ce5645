import type { StoredPod } from '../../core/kube/builtin.ts';
import { ifThere, isConflict, isForbidden, isInvalid, isNotFound, TransportError } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { ownedBy } from '../../core/resources/kinds.ts';
import { LABEL_POOL } from '../../core/resources/names.ts';
import type { Action } from '../decide/actions.ts';
import { learn } from '../observed/memory.ts';
import { isOurs, isUnclaimed } from '../observed/session-pods.ts';
import { sessionLabels } from '../pod/pod.ts';
import { podEvent } from '../status/events.ts';
import type { ReconcileContext } from './context.ts';
import { linkSession } from './link-session.ts';

/** Writes of others to the pod, such as its kubelet's, after which the claim is tried again in one reconcile. */
const MAX_TRIES = 4;

/**
 * Claims a pod of a pool for the incarnation that the session owns: a write at the version in which no session had it makes
 * the session its owner. Of two claims one fails, and its session touches the pod no more. The memory learns the outcome.
 */
export async function claimPod(
  context: ReconcileContext,
  { podUID, pod: seen }: Extract<Action, { do: 'ClaimPod' }>,
): Promise<void> {
  const { effects, world, memory, signal } = context;
  const { session } = world;
  const { namespace } = session.metadata;
  const name = session.status?.podName ?? '';
  const lose = (why: string) => learn(memory, { fact: 'ClaimLost', podUID, why });
  let pod: StoredPod | undefined = seen;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    pod ??= await ifThere(effects.api.get(pods, { namespace, name }, { signal }));
    if (!pod || pod.metadata.uid !== podUID) return lose('is gone');
    // An earlier try whose answer was lost, or an earlier leader, has made it the session's.
    if (isOurs(pod, session)) return take(context, pod, false);
    if (!isUnclaimed(pod)) return lose('was claimed by another session');
    if (pod.metadata.deletionTimestamp) return lose('is being deleted');
    const { resourceVersion } = pod.metadata;
    const labels = sessionLabels(session, session.status?.incarnation ?? 0);
    const patch = { metadata: { uid: podUID, resourceVersion, labels, ownerReferences: [ownedBy(session)] } };
    // The claim is this leader's own also where the watch shows it before its answer, or its answer is lost.
    const failed = effects.links.claiming(podUID, session.metadata.uid);
    try {
      return take(context, await effects.api.patch(pods, { namespace, name }, patch, { type: 'merge', signal }), true);
    } catch (error) {
      const isRefused = isForbidden(error) || isInvalid(error);
      if (!isRefused && !isConflict(error) && !isNotFound(error)) throw error;
      failed();
      if (isRefused) return lose(`cannot be claimed: ${(error as Error).message}`);
      pod = undefined;
    }
  }
  throw new TransportError(`pod ${name} is written by others again and again; it is claimed later`);
}

/** `isNew`: this very request has claimed the pod, which is counted and reported once. */
function take(context: ReconcileContext, pod: StoredPod, isNew: boolean): void {
  const { effects, key } = context;
  const { uid, name, namespace, labels } = pod.metadata;
  const wasReady = effects.links.get(uid)?.view.phase !== 'Opening';
  effects.links.assign(uid, linkSession(context));
  const pool = labels?.[LABEL_POOL] ?? '';
  const { ownedSince } = context.memory.incarnation;
  const tookMs = ownedSince === undefined ? undefined : effects.clock.monotonic() - ownedSince;
  effects.log.info({ session: key, pod: name, pool, tookMs, wasReady }, 'pod claimed');
  if (!isNew) return;
  if (wasReady) effects.pools.count('claimed', namespace, pool, tookMs);
  else effects.pools.count('missed', namespace, pool);
  effects.notify(context.world.session, podEvent(context.world, name, pool));
}
