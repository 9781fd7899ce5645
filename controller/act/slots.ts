import type { StoredPod } from '../../core/kube/builtin.ts';
import { isConflict, isRefusal } from '../../core/kube/errors.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { podName } from '../../core/resources/names.ts';
import { admittedStatus } from '../decide/admission.ts';
import { learn } from '../observed/memory.ts';
import type { World } from '../observed/world.ts';
import type { ReconcileContext } from './context.ts';
import { writingSession } from './too-large.ts';

/**
 * Takes a slot, then writes the next incarnation and its pod's name at the version decided upon. Whoever wins this write
 * owns the incarnation; the loser's slot is released.
 */
export async function ownIncarnation(
  { effects, world, key, signal, memory }: ReconcileContext,
  decided: StoredPod | undefined,
): Promise<void> {
  const { api, statuses, ledger, log } = effects;
  const { session } = world;
  const { namespace, name } = session.metadata;
  // Sessions that come at once decide upon the same pod, and have created their turns since.
  const isSpare = ({ metadata }: StoredPod) => ledger.isSpare(namespace, metadata.name);
  const claim = decided && (world.warm?.pods.find(isSpare) ?? decided);
  const incarnation = (session.status?.incarnation ?? 0) + 1;
  const pod = claim?.metadata.name ?? podName(session.metadata.uid, incarnation);
  if (!ledger.reserve(world.applicant, pod)) {
    ledger.wait(world.applicant);
    return;
  }
  prefetchState(effects, world, signal);
  try {
    const status = admittedStatus(world, { incarnation, pod, claim });
    const write = () => statuses.write(sessions, session.metadata, status, signal);
    await writingSession(effects, session, write);
    learn(memory, { fact: 'IncarnationOwned', since: world.monotonic });
    log.info({ session: key, uid: session.metadata.uid, incarnation }, 'session admitted');
    if (!claim && world.warm?.fits) effects.pools.count('missed', namespace, world.warm.pool);
  } catch (error) {
    if (isRefusal(error)) ledger.refused(namespace, pod);
    // The slot stays taken until it is known whether this write, or an earlier one of ours, took effect.
    ledger.failed(namespace, pod, error);
    if (isConflict(error)) {
      // No write of this version can take effect any more: a live read shows which one has.
      await api.get(sessions, { namespace, name }, { signal });
      // The session keeps its position in the queue: no other gets the slot that is released.
      ledger.wait(world.applicant);
      ledger.confirm(namespace, pod);
    }
    throw error;
  }
  ledger.confirm(namespace, pod);
}

/** Begins to read the state that the runner will be given, while the session gets its pod. */
function prefetchState({ statePrefetch, store }: ReconcileContext['effects'], { session }: World, signal: AbortSignal) {
  const { state } = session.status ?? {};
  if (state?.ref === undefined) return;
  const { namespace, uid: sessionUID } = session.metadata;
  const { incarnation, seq, bytes } = state;
  const key = { namespace, sessionUID, incarnation, seq, kind: 'State' as const };
  statePrefetch.begin(sessionUID, state, () => store.get(key, signal, bytes));
}

/**
 * Creates the pod while its slot is reserved. The session may be gone by the time the pod exists: both count. Where it is
 * gone already, another session may have the slot.
 */
export async function withSlotHeld(
  { effects, world, key }: ReconcileContext,
  pod: string,
  make: () => Promise<void>,
): Promise<void> {
  const { ledger } = effects;
  const { namespace } = world.session.metadata;
  if (!ledger.hasSlot(namespace, pod)) return;
  ledger.hold({ key, namespace, class: world.session.spec.class }, pod);
  try {
    await make();
  } catch (error) {
    ledger.failed(namespace, pod, error);
    throw error;
  }
  ledger.confirm(namespace, pod);
}
