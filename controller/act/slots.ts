import { isConflict, isRefusal } from '../../core/kube/errors.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { Admission } from '../decide/draft.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';

/** Running slots: reserved before the write that needs them, and confirmed once the outcome of that write is known. */

/**
 * Takes the slot of the decision, then has `write` write `status`, which admits the session, at the version of the decision.
 * Whoever wins this write owns the incarnation; the loser's slot is released. Where the slot or the pod of a pool has gone to
 * another session since the decision, which may have had turns to write first, nothing is written: there is another decision.
 */
export async function admitSession(
  context: ReconcileContext,
  { incarnation, pod, claim }: Admission,
  status: SessionStatus,
  write: () => Promise<unknown>,
): Promise<void> {
  const { effects, world, key, signal, memory } = context;
  const { api, ledger, log } = effects;
  const { session } = world;
  const { namespace, name } = session.metadata;
  if (!ledger.reserve(world.applicant, pod)) {
    // The ledger has the session decided again at once where the pod of a pool is gone. Otherwise the queue does, in its turn.
    if (!claim || ledger.isAvailable(namespace, pod)) ledger.wait(world.applicant);
    return;
  }
  prefetchState(context, status);
  try {
    await write();
    learn(memory, { fact: 'IncarnationOwned', since: world.monotonic });
    log.info({ session: key, uid: session.metadata.uid, incarnation }, 'session admitted');
    if (!claim && world.warm?.fits) effects.pools.count('missed', namespace, world.warm.pool);
  } catch (error) {
    if (isRefusal(error)) ledger.reservations.refused(namespace, pod);
    // The slot stays taken until it is known whether this write, or an earlier one of ours, took effect.
    ledger.reservations.failed(namespace, pod, error);
    if (isConflict(error)) {
      // No write of this version can take effect any more: a live read shows which one has.
      await api.get(sessions, { namespace, name }, { signal });
      // The session keeps its position in the queue: no other gets the slot that is released.
      ledger.wait(world.applicant);
      ledger.reservations.confirm(namespace, pod);
    }
    throw error;
  }
  ledger.reservations.confirm(namespace, pod);
}

/** Begins to read the state that the runner will be given, while the session gets its pod. */
function prefetchState(
  { effects: { statePrefetch, store }, world: { session }, signal }: ReconcileContext,
  { state }: SessionStatus,
): void {
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
  ledger.reservations.hold({ key, namespace, class: world.session.spec.class }, pod);
  try {
    await make();
  } catch (error) {
    ledger.reservations.failed(namespace, pod, error);
    throw error;
  }
  ledger.reservations.confirm(namespace, pod);
}
