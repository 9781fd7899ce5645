import { formatDuration } from '../../../core/resources/duration.ts';
import { decisionFor, isDecided, waitingProcess } from '../../observed/approvals.ts';
import { isLeaving, isOver } from '../../observed/pod-status.ts';
import { limitsOf } from '../../settings/granted.ts';
import { ended } from '../../status/turn-status.ts';
import { type Policy, wake } from '../draft.ts';
import { isFinished } from '../suspend-reason.ts';
import { takesTurns } from './start.ts';

/** Approvals of a turn: its request, the decision, and the end of the wait. */

/** Commits a request once; one that was committed before, or that belongs to no turn, is only acknowledged. */
export const question: Policy = (draft) => {
  const { link, session } = draft.world;
  const asking = link?.asking;
  if (!asking) return undefined;
  const { turn: uid, attempt } = asking.request.message;
  const turn = draft.turns.live.find(({ metadata }) => metadata.uid === uid);
  const { status } = turn ?? {};
  const known = status?.approval;
  // Requests of an incarnation share the sequence of its frames: a lower number is the known request or an earlier one.
  const isOld = known?.incarnation === session.status?.incarnation && (known?.seq ?? 0) >= asking.request.seq;
  const asks = status?.phase === 'Running' || status?.phase === 'AwaitingApproval';
  if (turn && asks && !isOld && status?.attempt === attempt && status.podUID === link.podUID) {
    draft.actions.push({ do: 'CommitRequest', turn, asking });
    return 'Stop';
  }
  if (isLeaving(draft.world)) return undefined;
  draft.actions.push({ do: 'AcknowledgeRequest', asking });
  return 'Stop';
};

/**
 * Makes the turn the owner of Approvals that kubectl created, and records an Event for one that does not count, once.
 */
export const adoptApprovals: Policy = (draft) => {
  for (const approval of draft.world.approvals) {
    const turn = draft.world.turns.find(({ metadata }) => metadata.name === approval.spec.turn);
    if (!turn || approval.metadata.ownerReferences?.length || approval.metadata.deletionTimestamp) continue;
    draft.actions.push({ do: 'AdoptApproval', approval, turn });
  }
  return undefined;
};

/** Cancels a turn that waits for an approval at once, unless its process has to be stopped: `cancel` does that. */
export const cancelWaiting: Policy = (draft) => {
  const { now } = draft.world;
  const alive = waitingProcess(draft);
  for (const turn of draft.turns.live) {
    if (turn.status.phase !== 'AwaitingApproval' || !turn.spec.cancel || turn === alive) continue;
    const message = 'The turn was cancelled while it waited for a decision.';
    draft.actions.push({
      do: 'WriteTurn',
      turn,
      status: ended(turn, { phase: 'Cancelled', reason: 'Cancelled', message }, now),
    });
    return 'Stop';
  }
  return undefined;
};

/**
 * Ends a turn whose request is not decided in time. A decision counts even if it is observed late, so it is read live
 * first: a write of the turn would not conflict with it.
 */
export const unanswered: Policy = (draft) => {
  const { world } = draft;
  const { now } = world;
  for (const turn of draft.turns.live) {
    const { approval, phase } = turn.status;
    if (phase !== 'AwaitingApproval' || !approval || isDecided(world, turn)) continue;
    const { approvalMs } = limitsOf(turn, world);
    const deadline = Date.parse(approval.since) + approvalMs;
    if (now < deadline) {
      wake(draft, deadline);
      continue;
    }
    if (world.memory.approvalsReadFor !== approval.id) {
      draft.actions.push({ do: 'ReadApprovals', turn, request: approval.id });
      return 'Stop';
    }
    const message = `Nobody decided within timeouts.approval (${formatDuration(approvalMs)}) on: ${approval.prompt}`;
    draft.actions.push({
      do: 'WriteTurn',
      turn,
      status: ended(turn, { phase: 'Failed', reason: 'ApprovalTimeout', message }, now),
    });
    return 'Stop';
  }
  return undefined;
};

/**
 * Writes a decision together with the pod that gets it: the winner of this write delivers it, once. `dispatch` delivers
 * it when it finds the turn Running.
 */
export const consume: Policy = (draft) => {
  const { world } = draft;
  const { pod, session, leaderIsReady } = world;
  const [turn] = draft.turns.live;
  if (!leaderIsReady) return undefined;
  if (!pod || pod.metadata.deletionTimestamp || isOver(pod) || isFinished(draft)) return undefined;
  if (turn?.status.phase !== 'AwaitingApproval' || turn.spec.cancel || session.spec.suspend) return undefined;
  if (!takesTurns(draft, pod.metadata.uid)) return undefined;
  const approval = decisionFor(world.approvals, turn);
  if (!approval && !turn.status.approval?.decided) return undefined;
  const incarnation = session.status?.incarnation ?? 0;
  draft.actions.push({ do: 'Consume', turn, approval, incarnation, podUID: pod.metadata.uid });
  return 'Stop';
};
