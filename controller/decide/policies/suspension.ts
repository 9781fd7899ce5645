import type { StateRef } from '../../../core/resources/schema.ts';
import { type Policy, wake } from '../draft.ts';
import { isFinished, wantsSuspension } from '../hold.ts';
import { stateIsWritten } from '../session-status.ts';

/** Giving up the pod: because the session has had its only turn, or because it is suspended. */

/** The pod of a finished session is not needed any more; its last state went with the turn. */
export const finish: Policy = (draft) => {
  if (!isFinished(draft)) return undefined;
  const { pod } = draft.world;
  if (!draft.world.session.status?.lastTurn) return undefined; // first let the status say how it ended
  if (pod && !pod.metadata.deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: 'session finished' });
  return 'Stop';
};

/**
 * Suspending: the runner refuses turns and hands over its state; it is stored; a second, live look finds nothing new; the
 * status has the state; then the pod is deleted. Anything that comes in between undoes it.
 */
export const suspend: Policy = (draft) => {
  const { world, turns } = draft;
  const { pod, link } = world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  if (!wantsSuspension(draft)) {
    if (link?.phase === 'Bound' && (link.suspendSent || link.suspended)) draft.actions.push({ do: 'ResumeRunner' });
    return undefined;
  }
  const heldBack = world.session.spec.suspend;
  if (turns.running || (!heldBack && turns.live.length > 0) || !stateIsWritten(draft)) return undefined;
  const again = world.memory.suspendAgainAt;
  if (again !== undefined && world.now < again) {
    wake(draft, again);
    return undefined;
  }

  if (!link || link.phase === 'Opening' || link.phase === 'Binding' || link.phase === 'Ended') return undefined;
  draft.suspending = true;
  if (link.phase === 'Unbound') {
    // Nothing ever ran in it: there is no state to save.
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'suspended before it was bound' });
    return 'Stop';
  }
  if (!link.suspendSent) {
    draft.actions.push({ do: 'SuspendRunner' });
    return 'Stop';
  }
  if (link.refused?.code === 'SnapshotFailed') {
    draft.actions.push({ do: 'AbortSuspension', message: link.refused.message });
    return 'Stop';
  }
  const verified = world.memory.suspension?.podUID === pod.metadata.uid ? world.memory.suspension.verified : undefined;
  if (!verified) {
    if (link.snapshot) draft.actions.push({ do: 'VerifySuspension' });
    return 'Stop';
  }
  if (verified === 'Unchanged' || isCommitted(verified, world.session.status?.state)) {
    draft.actions.push({ do: 'DeletePod', pod, why: 'suspended' });
  }
  return 'Stop';
};

function isCommitted(state: StateRef, committed: StateRef | undefined): boolean {
  return committed?.incarnation === state.incarnation && committed.seq === state.seq;
}
