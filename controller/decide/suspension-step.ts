import type { StateRef } from '../../core/resources/schema.ts';
import type { LinkView } from '../observed/link-view.ts';
import type { World } from '../observed/world.ts';
import { keepsState } from '../settings/persistence.ts';
import { timeoutMs } from '../settings/timeouts.ts';

/**
 * Step of a suspension. It is kept nowhere. Each reconcile derives it from the session's status, the link to the pod's
 * runner and the memory of the incarnation, so that a new leader goes on where these say.
 */
export type SuspensionStep =
  | { step: 'NotWanted' }
  /** The runner was asked, and nobody wants it any more. */
  | { step: 'Undone' }
  | { step: 'Waiting' }
  /** `againAt`: milliseconds since the epoch. */
  | { step: 'BackedOff'; againAt: number }
  | { step: 'NeverBound' }
  | { step: 'Requested' }
  /** `deadline`: milliseconds since the epoch. */
  | { step: 'RunnerAsked'; deadline: number }
  | { step: 'StateReceived' }
  | { step: 'Verified' }
  | { step: 'StatusWritten' }
  | { step: 'Failed'; message: string };

type Name = SuspensionStep['step'];

/** Meaning of each step, for the documentation; in the order in which a suspension goes through them. */
export const STEPS: Record<Name, string> = {
  NotWanted: 'Nothing asks for a suspension.',
  Waiting: 'The last result is not in the status yet, or the runner has not answered.',
  NeverBound: 'The pod has no state to store: it is deleted.',
  Requested: 'The runner is about to be asked to refuse turns and to hand over its state.',
  RunnerAsked: 'The runner was asked, and has until `timeouts.persist`.',
  StateReceived: 'The runner refuses turns and has handed over its state: it is stored, then everything is read live.',
  Verified: 'The state can be read from the store, and nothing has come in between: the status gets the state.',
  StatusWritten: 'The status has the state: the pod is deleted.',
  Undone: 'Something needs the session again: the runner takes turns again.',
  Failed: 'The state did not come in time: the runner takes turns again, and a back-off begins.',
  BackedOff: 'The next attempt waits for the back-off, or for an edit of the session.',
};

/** Every way from one step to another, and its cause. */
export const TRANSITIONS: readonly { from: Name; to: Name; by: string }[] = [
  { from: 'NotWanted', to: 'Waiting', by: 'a suspension is asked for before the result is in the status' },
  { from: 'NotWanted', to: 'Requested', by: 'a suspension is asked for' },
  { from: 'Waiting', to: 'NeverBound', by: 'the runner says that it was never bound' },
  { from: 'Waiting', to: 'Requested', by: 'the status has the result, and the runner has answered' },
  { from: 'Requested', to: 'RunnerAsked', by: 'the request is sent' },
  { from: 'RunnerAsked', to: 'StateReceived', by: 'the runner confirms and hands over its state' },
  { from: 'RunnerAsked', to: 'Failed', by: 'the runner cannot pack its state' },
  { from: 'RunnerAsked', to: 'Failed', by: 'timeouts.persist is over' },
  { from: 'StateReceived', to: 'Verified', by: 'the state is stored and the live read finds nothing new' },
  { from: 'StateReceived', to: 'NotWanted', by: 'the live read finds something new' },
  { from: 'StateReceived', to: 'BackedOff', by: 'the state cannot be stored' },
  { from: 'Verified', to: 'StatusWritten', by: 'the status is written' },
  { from: 'RunnerAsked', to: 'Undone', by: 'a turn comes, or the request is taken back' },
  { from: 'Undone', to: 'NotWanted', by: 'the runner has the request to take turns' },
  { from: 'Failed', to: 'BackedOff', by: 'the failure is noted' },
  { from: 'BackedOff', to: 'Requested', by: 'the back-off is over' },
  { from: 'BackedOff', to: 'Requested', by: 'the session is edited' },
  { from: 'RunnerAsked', to: 'Requested', by: 'another leader takes over' },
];

/** Facts from which a step is derived. */
export interface SuspensionFacts {
  world: Pick<World, 'session' | 'class' | 'link' | 'memory' | 'now'>;
  podUID: string;
  /** A suspension is requested, and no turn has to end first. */
  isWanted: boolean;
  /** The status has the last committed state. */
  isStateWritten: boolean;
}

/** Derives the step; pure. */
export function suspensionStep({ world, podUID, isWanted, isStateWritten }: SuspensionFacts): SuspensionStep {
  const { session, link, memory, now } = world;
  if (!isWanted) {
    const wasAsked = link?.phase === 'Bound' && (link.suspendSent || link.suspended);
    return { step: wasAsked ? 'Undone' : 'NotWanted' };
  }
  if (!isStateWritten) return { step: 'Waiting' };
  const { suspension, suspensionFailed: failed } = memory.incarnation;
  if (failed && failed.generation === session.metadata.generation && now < failed.againAt)
    return { step: 'BackedOff', againAt: failed.againAt };
  if (isUnbound(link)) return { step: 'NeverBound' };
  if (link?.phase !== 'Bound' && link?.phase !== 'Foreign') return { step: 'Waiting' };
  const asked = suspension?.podUID === podUID ? suspension : undefined;
  if (!link.suspendSent || !asked) return { step: 'Requested' };
  if (link.refused?.code === 'SnapshotFailed') return { step: 'Failed', message: link.refused.message };
  if (asked.verified) return { step: isStored(world, asked.verified) ? 'StatusWritten' : 'Verified' };
  // The runner reports its activity together with its confirmation that it takes no turns.
  if (link.suspended && (link.snapshot || !keepsState(session.spec, world.class))) return { step: 'StateReceived' };
  const deadline = asked.askedAt + timeoutMs('persist', session.spec, world.class);
  if (now < deadline) return { step: 'RunnerAsked', deadline };
  return { step: 'Failed', message: 'The runner did not hand over its state within timeouts.persist.' };
}

/** Reports whether no leader has bound the runner. A pod made by this leader can have been bound by no other. */
function isUnbound(link: LinkView | undefined): boolean {
  return link?.phase === 'Unbound' || (link?.phase === 'Opening' && link.fresh);
}

/** Reports whether the status has the verified state. */
function isStored({ session }: SuspensionFacts['world'], verified: StateRef | 'Unchanged'): boolean {
  if (verified === 'Unchanged') return true;
  const committed = session.status?.state;
  return committed?.incarnation === verified.incarnation && committed.seq === verified.seq;
}
