import { isParked } from '../../observed/approvals.ts';
import { keepsState } from '../../settings/persistence.ts';
import type { SuspensionReason } from '../actions.ts';
import { stateIsWritten } from '../committed-state.ts';
import { type Policy, wake } from '../draft.ts';
import { isFinished, replacesPod, suspensionReason } from '../suspend-reason.ts';
import { type SuspensionStep, suspensionStep } from '../suspension-step.ts';
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
 * Suspends the session. The runner refuses turns, reports its last activity and hands over its state. The state is
 * stored, a live check finds nothing new, and the status gets the state. Then the pod is deleted. Any change in between
 * undoes it.
 *
 * The pod is not given up before the leader has settled: until then, a request of the former leader can still give the
 * pod a turn after the live check.
 */
export const suspend: Policy = (draft) => {
  const { world, turns } = draft;
  const { pod } = world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const reason = suspensionReason(draft);
  // A decided turn that was given before the request ends first.
  const runs = turns.running || (reason === 'Requested' && turns.live.length > 0 && !isParked(draft));
  const wanted = runs ? undefined : reason;
  const isStateWritten = wanted !== undefined && stateIsWritten(draft);
  const now = suspensionStep({ world, podUID: pod.metadata.uid, isWanted: wanted !== undefined, isStateWritten });
  if (SUSPENDING.has(now.step)) draft.suspending = true;
  switch (now.step) {
    case 'NotWanted':
      return undefined;
    case 'Waiting':
      // The next turn is for another pod, and between two turns of a long queue the status is always about to be written.
      return wanted && replacesPod(wanted) ? 'Stop' : undefined;
    case 'Undone':
      draft.actions.push({ do: 'ResumeRunner' });
      return undefined;
    case 'BackedOff':
      wake(draft, now.againAt);
      return undefined;
    case 'NeverBound':
      if (!world.leaderIsReady) return 'Stop';
      draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'suspended before it was bound' });
      return 'Stop';
    case 'Requested':
      draft.actions.push({ do: 'SuspendRunner', snapshot: keepsState(world.session.spec, world.class) });
      return 'Stop';
    case 'RunnerAsked':
      wake(draft, now.deadline);
      return 'Stop';
    case 'StateReceived':
      if (!world.leaderIsReady) return 'Stop';
      draft.actions.push({ do: 'VerifySuspension', reason: wanted as SuspensionReason });
      return 'Stop';
    case 'Verified':
      return 'Stop';
    case 'StatusWritten':
      draft.actions.push({ do: 'DeletePod', pod, why: `suspended: ${wanted}` });
      return 'Stop';
    case 'Failed':
      draft.actions.push({ do: 'AbortSuspension', message: now.message });
      return 'Stop';
  }
};

/** Steps at which the session is Suspending. */
const SUSPENDING: ReadonlySet<SuspensionStep['step']> = new Set([
  'NeverBound',
  'Requested',
  'RunnerAsked',
  'StateReceived',
  'Verified',
  'StatusWritten',
  'Failed',
] as const);
