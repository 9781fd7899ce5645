import type { SessionPhase, SessionStatus } from '../../core/resources/session.ts';
import { lastActivityToWrite } from '../observed/activity.ts';
import { isParked, waitingTurn } from '../observed/approvals.ts';
import { ownContainer } from '../observed/pod-status.ts';
import { isRunnerless, isRunnerlessPod } from '../settings/runnerless.ts';
import { withSessionReason } from '../status/reason.ts';
import { admissionFields } from './admission.ts';
import { committedState } from './committed-state.ts';
import { sessionConditions } from './conditions/conditions.ts';
import { countFields } from './counted-turns.ts';
import { type Draft, wake } from './draft.ts';
import { lacksItsTurn } from './missing-turn.ts';
import { queueStatus } from './queue-status.ts';
import { isReady } from './readiness.ts';
import { withFailedStart } from './start-failures.ts';
import { hasNewTurn, isFinished, suspendRequest, suspensionReason } from './suspend-reason.ts';

/** Milliseconds after which a running turn shows in its session; shorter turns cost no extra write. */
const SHOW_TURN_MS = 1000;

/** The session's status after this reconcile, from what was observed and decided. */
export function sessionStatus(draft: Draft): SessionStatus {
  const { world } = draft;
  const { session, pod } = world;
  const before = session.status ?? {};
  const next: SessionStatus = {
    ...before,
    ...countFields(draft),
    observedGeneration: session.metadata.generation ?? 0,
  };

  if (draft.admission) {
    delete next.podUID;
    delete next.agentFiles;
    delete next.environment;
    Object.assign(next, admissionFields(world, draft.admission));
  } else if (draft.released) {
    delete next.podName;
    delete next.podUID;
    delete next.classGeneration;
    delete next.settingsDigest;
    delete next.restartRequest;
    delete next.agentFiles;
  } else if (pod) {
    next.podUID = pod.metadata.uid;
  } else {
    // A counted turn leaves the cache, and with it the record that its incarnation had a pod.
    const ran = draft.turns.uncounted.find(({ status }) => status.podUID && status.incarnation === next.incarnation);
    if (ran && next.podName) next.podUID ??= ran.status.podUID as string;
  }
  if (world.link?.runnerVersion && next.podName) next.runnerVersion = world.link.runnerVersion;

  const failures = withFailedStart(draft);
  if (failures) next.startFailures = failures;
  else delete next.startFailures;

  const shown = shownTurn(draft);
  if (shown) next.currentTurn = shown;
  else delete next.currentTurn;

  const committed = committedState(draft);
  if (committed) next.state = committed;

  next.lastActiveAt = lastActivityToWrite(world);

  const handled = suspendHandled(draft, next);
  if (handled) next.suspendHandled = handled;

  const queue = queueStatus(draft, failures);
  if (queue) next.queue = queue;
  else delete next.queue;

  next.phase = phaseOf(draft, next);
  next.conditions = sessionConditions(draft, next);
  return withSessionReason(next);
}

/**
 * Progress of a suspension request: noted when it is first observed, and done with the write that says that the pod is
 * gone.
 */
function suspendHandled(draft: Draft, next: SessionStatus): SessionStatus['suspendHandled'] {
  const { spec, status } = draft.world.session;
  const request = suspendRequest(draft);
  const isSeen = request === 'Unseen' && !hasNewTurn(draft);
  const handled = isSeen
    ? { id: spec.suspendRequest as string, afterTurn: draft.turns.lastIndex }
    : status?.suspendHandled;
  if (!handled || !(isSeen || request === 'Active') || next.podName) return handled;
  const [first] = draft.turns.live;
  // The decision may have come while the pod was terminating.
  const wentAsking = status?.phase === 'Suspending' && first?.status.phase === 'AwaitingApproval';
  return !first || isParked(draft) || wentAsking ? { ...handled, done: true } : handled;
}

function shownTurn(draft: Draft): string | undefined {
  const waiting = waitingTurn(draft.turns);
  if (waiting) return waiting.metadata.name;
  const turn = draft.turns.running;
  const { link, now, session, pod } = draft.world;
  if (!turn) return undefined;
  if (session.status?.currentTurn === turn.metadata.name) return turn.metadata.name;
  const alone = pod && isRunnerlessPod(pod) ? ownContainer(pod)?.state?.running?.startedAt : undefined;
  const startedAt = link?.started?.turn === turn.metadata.uid ? link.started.at : alone;
  if (!startedAt) return undefined;
  const at = Date.parse(startedAt) + SHOW_TURN_MS;
  if (now >= at) return turn.metadata.name;
  wake(draft, at);
  return undefined;
}

function phaseOf(draft: Draft, next: SessionStatus): SessionPhase {
  const { session, pod } = draft.world;
  if (session.metadata.deletionTimestamp) return 'Terminating';
  if (isFinished(draft) && !draft.turns.running) return 'Finished';
  if (next.podName) {
    if (draft.suspending || (suspensionReason(draft) && pod?.metadata.deletionTimestamp)) return 'Suspending';
    // Suspending lasts until the pod is known to be gone, even if a turn or a request comes before.
    if (session.status?.phase === 'Suspending' && (!pod || pod.metadata.deletionTimestamp)) return 'Suspending';
    if (isParked(draft)) return 'AwaitingApproval';
    if (next.currentTurn) return 'Running';
    return isReady(draft) ? 'Ready' : 'Starting';
  }
  if (session.spec.suspend) return 'Suspended';
  if (isParked(draft)) return 'AwaitingApproval';
  const { id, done } = next.suspendHandled ?? {};
  const isSuspended = done && id === session.spec.suspendRequest && suspendRequest(draft) !== 'Void';
  if (isSuspended && draft.turns.live.length === 0) return 'Suspended';
  const rests = (isRunnerless(draft) && draft.turns.live.length === 0) || lacksItsTurn(draft);
  if (next.queue || ((next.incarnation ?? 0) === 0 && !rests)) return 'Queued';
  return 'Suspended';
}
