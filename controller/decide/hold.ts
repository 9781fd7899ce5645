import type { Draft } from './draft.ts';

/** Why a session should have no pod, if it should have none. */

/** `spec.suspendRequest` as it stands: not seen yet, to be carried out, or void because a later turn was given. */
export function suspendRequest(draft: Draft): 'None' | 'Unseen' | 'Active' | 'Void' {
  const id = draft.world.session.spec.suspendRequest;
  if (!id) return 'None';
  const handled = draft.world.session.status?.suspendHandled;
  if (handled?.id !== id) return 'Unseen';
  const later = draft.turns.lastIndex > handled.afterTurn || draft.turns.live.some((turn) => !turn.status.index);
  return later ? 'Void' : 'Active';
}

/** Whether the pod is to be given up once nothing runs in it. */
export function wantsSuspension(draft: Draft): boolean {
  return draft.world.session.spec.suspend || suspendRequest(draft) === 'Active';
}

/** A session of one turn that has had it. */
export function isFinished(draft: Draft): boolean {
  const { session } = draft.world;
  if (session.spec.turns !== 'One') return false;
  if (session.status?.lastTurn !== undefined) return true;
  // A later turn is refused while the first one waits or runs: that ends nothing.
  const [ended] = draft.turns.uncounted;
  const [live] = draft.turns.live;
  return ended !== undefined && (!live || (ended.status.index ?? 0) < (live.status.index ?? 1));
}
