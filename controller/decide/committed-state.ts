import type { StateRef } from '../../core/resources/schema.ts';
import { highestState } from '../observed/highest-state.ts';
import type { Draft } from './draft.ts';

/** The highest state by (incarnation, seq) among the status, the turns that ended since, and a verified suspension. */
export function committedState(draft: Draft): StateRef | undefined {
  const verified = draft.world.memory.incarnation.suspension?.verified;
  return highestState([stateOfTurns(draft), verified === 'Unchanged' ? undefined : verified]);
}

/** The highest state that turns have committed and the status knows. */
function stateOfTurns({ world, turns: { live, uncounted } }: Draft): StateRef | undefined {
  // A turn that waits for an approval has committed its state too.
  const states = [...live, ...uncounted].map(({ status }) => status.state);
  return highestState([world.session.status?.state, world.memory.committed, ...states]);
}

/** Reports whether the status has the last committed state: required before any bind and any end of a pod. */
export function stateIsWritten(draft: Draft): boolean {
  const last = stateOfTurns(draft);
  const written = draft.world.session.status?.state;
  return last?.incarnation === written?.incarnation && last?.seq === written?.seq;
}
