import type { StateRef } from '../../../core/resources/schema.ts';
import { keepsState } from '../../settings/persistence.ts';
import { timeoutMs } from '../../settings/timeouts.ts';
import { isParked } from '../../world/approvals.ts';
import { type Draft, type Policy, wake } from '../draft.ts';
import { stateIsWritten } from '../session-status.ts';
import { isFinished, suspensionReason } from '../suspend-reason.ts';
import { knownPodUID } from './pod.ts';

/** Removal of the pod, because the session is finished or suspended. */

/** Deletes the pod of a finished session; its last state was committed with the turn. */
export const finish: Policy = (draft) => {
  if (!isFinished(draft) || draft.turns.running) return undefined;
  const { pod, session } = draft.world;
  // The status records first how the session ended.
  if (!session.status?.lastTurn && session.status?.phase !== 'Finished') return 'Stop';
  if (pod && !pod.metadata.deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: 'session finished' });
  // The incarnation is owned but has no pod: its slot is released.
  if (!pod && session.status.podName && !knownPodUID(draft)) draft.released = true;
  return 'Stop';
};

/**
 * Suspends the session: the runner refuses turns, reports its last activity and hands over its state; the state is
 * stored; a live check finds nothing new; the status gets the state; then the pod is deleted. Any change in between
 * undoes it.
 */
export const suspend: Policy = (draft) => {
  const { world, turns } = draft;
  const { pod, link, memory, now } = world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const reason = suspensionReason(draft);
  // A decided turn that was given before the request ends first.
  const runs = turns.running || (reason === 'Requested' && turns.live.length > 0 && !isParked(draft));
  if (!reason || runs) {
    if (link?.phase === 'Bound' && (link.suspendSent || link.suspended)) draft.actions.push({ do: 'ResumeRunner' });
    return undefined;
  }
  if (!stateIsWritten(draft)) return undefined;
  const failed = memory.incarnation.suspensionFailed;
  if (failed && failed.generation === world.session.metadata.generation && now < failed.againAt) {
    wake(draft, failed.againAt);
    return undefined;
  }

  // A pod made by this leader can have been bound by no other.
  const isUnbound = link?.phase === 'Unbound' || (link?.phase === 'Opening' && link.fresh);
  if (!link || (link.phase === 'Opening' && !isUnbound) || link.phase === 'Binding' || link.phase === 'Ended')
    return undefined;
  draft.suspending = true;
  if (isUnbound) {
    // A pod that was never bound has no state to store.
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'suspended before it was bound' });
    return 'Stop';
  }
  const { suspension } = memory.incarnation;
  const asked = suspension?.podUID === pod.metadata.uid ? suspension : undefined;
  const snapshot = keepsState(world.session.spec, world.class);
  if (!link.suspendSent || !asked) {
    draft.actions.push({ do: 'SuspendRunner', snapshot });
    return 'Stop';
  }
  if (link.refused?.code === 'SnapshotFailed') {
    draft.actions.push({ do: 'AbortSuspension', message: link.refused.message });
    return 'Stop';
  }
  const { verified } = asked;
  if (verified) {
    if (isStored(draft, verified)) draft.actions.push({ do: 'DeletePod', pod, why: `suspended: ${reason}` });
    return 'Stop';
  }
  // The runner reports its activity together with its confirmation that it takes no turns.
  if (link.suspended && (link.snapshot || !snapshot)) {
    draft.actions.push({ do: 'VerifySuspension', reason });
    return 'Stop';
  }
  const deadline = asked.askedAt + timeoutMs('persist', world.session.spec, world.class);
  const message = 'The runner did not hand over its state within timeouts.persist.';
  if (now < deadline) wake(draft, deadline);
  else draft.actions.push({ do: 'AbortSuspension', message });
  return 'Stop';
};

/** Reports whether the status has the verified state. */
function isStored(draft: Draft, verified: StateRef | 'Unchanged'): boolean {
  if (verified === 'Unchanged') return true;
  const committed = draft.world.session.status?.state;
  return committed?.incarnation === verified.incarnation && committed.seq === verified.seq;
}
