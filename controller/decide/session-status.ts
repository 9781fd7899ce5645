import { defined } from '../../core/defined.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { Condition, StateRef } from '../../core/resources/schema.ts';
import type { SessionPhase, SessionStatus } from '../../core/resources/session.ts';
import { lastActivityToWrite } from '../observed/activity.ts';
import { isParked } from '../observed/approvals.ts';
import { highestState } from '../observed/highest-state.ts';
import { ownContainer, startedContainer } from '../observed/pod-status.ts';
import type { CachedTurn } from '../observed/world.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless, isRunnerlessPod } from '../settings/runnerless.ts';
import { type ConditionValue, withCondition } from '../status/conditions.ts';
import { FORMER_STATE, isOfFormerUid } from '../status/former-state.ts';
import { outdated } from '../status/outdated.ts';
import { protectionConditions } from '../status/protection.ts';
import { withSessionReason } from '../status/reason.ts';
import { secretsHidden } from '../status/secrets-hidden.ts';
import { statePersisted } from '../status/state-persisted.ts';
import { type Draft, problemOf, wake } from './draft.ts';
import { lacksItsTurn } from './missing-turn.ts';
import { queueStatus } from './queue-status.ts';
import { isReady } from './readiness.ts';
import { withFailedStart } from './start-failures.ts';
import {
  hadItsTurn,
  hasNewTurn,
  isFinished,
  suspendRequest,
  suspensionReason,
  whySuspended,
} from './suspend-reason.ts';

/** Milliseconds after which a running turn shows in its session; shorter turns cost no extra write. */
const SHOW_TURN_MS = 1000;

/** Reasons that keep a pod from becoming ready. */
const START_PROBLEMS: ReadonlySet<string> = new Set<Reason>([
  'StartFailed',
  'ImageUnavailable',
  'Unschedulable',
  'PodForbidden',
  'PodConfigError',
  'ProtocolUnsupported',
  'RunnerNotHardened',
  'AgentNotContained',
  'StateKeyUnknown',
  'StateUnavailable',
]);

/** The session's status after this reconcile, from what was observed and decided. */
export function sessionStatus(draft: Draft): SessionStatus {
  const { world } = draft;
  const { session, pod } = world;
  const before = session.status ?? {};
  const next: SessionStatus = { ...before, ...counted(draft), observedGeneration: session.metadata.generation ?? 0 };

  if (draft.released) {
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

  const phase = phaseOf(draft, next);
  next.phase = phase;
  next.conditions = conditionsOf(draft, next, phase);
  return withSessionReason(next);
}

/**
 * Counts ended turns up to the first gap that may still fill: lastTurn.index says which ones are in. An earlier leader may
 * have ended a turn that is not in the cache yet, so nothing is counted before all turns were read.
 */
function counted(draft: Draft): Partial<SessionStatus> {
  const { session, memory } = draft.world;
  if (!memory.knowsTurns) return {};
  const totals = { total: 0, succeeded: 0, failed: 0, ...session.status?.turns };
  let last = session.status?.lastTurn;
  const firstLive = Math.min(...draft.turns.live.map((turn) => turn.status.index ?? Number.MAX_SAFE_INTEGER));
  for (const turn of draft.turns.uncounted) {
    const index = turn.status.index ?? 0;
    if (index > firstLive) break;
    totals.total++;
    if (turn.status.phase === 'Succeeded') totals.succeeded++;
    if (turn.status.phase === 'Failed' || turn.status.phase === 'TimedOut') totals.failed++;
    last = asLast(turn);
  }
  return { turns: totals, ...(last ? { lastTurn: last } : {}) };
}

/** An ended turn as the session's status shows it. */
function asLast({ metadata: { name }, status }: CachedTurn): NonNullable<SessionStatus['lastTurn']> {
  const { index = 0, phase = 'Failed', conditions, output } = status;
  // The cache drops the error of an ended turn, whose code is the condition's reason too.
  const code = conditions?.find(({ type }) => type === 'Finished')?.reason;
  return {
    name,
    index,
    phase,
    ...(code === undefined || phase === 'Succeeded' ? {} : { code }),
    ...defined({ output }),
  };
}

/** The highest state by (incarnation, seq) among the status, the turns that ended since, and a verified suspension. */
function committedState(draft: Draft): StateRef | undefined {
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

function waitingTurn(draft: Draft) {
  return draft.turns.live.find(({ status }) => status.phase === 'AwaitingApproval');
}

function shownTurn(draft: Draft): string | undefined {
  const waiting = waitingTurn(draft);
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

/** Reports whether the present pod has taken a turn: what kept it from starting is over, whether it was ever shown ready or not. */
function hasStarted(
  { world: { pod }, turns: { live, uncounted } }: Draft,
  { podName, podUID }: SessionStatus,
): boolean {
  if (!podName || podUID === undefined) return false;
  // A runnerless pod is given its turn before it starts.
  if (pod && isRunnerlessPod(pod)) return startedContainer(pod);
  const ran = uncounted.filter(({ status }) => status.startedAt !== undefined);
  return [...live, ...ran].some(({ status }) => status.podUID === podUID);
}

function phaseOf(draft: Draft, next: SessionStatus): SessionPhase {
  const { session, pod } = draft.world;
  if (session.metadata.deletionTimestamp) return 'Terminating';
  if (isFinished(draft) && !draft.turns.running) return 'Finished';
  if (next.podName) {
    if (draft.suspending || (suspensionReason(draft) && pod?.metadata.deletionTimestamp)) return 'Suspending';
    // Suspending lasts until the pod is known to be gone, whatever has happened meanwhile.
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

function conditionsOf(draft: Draft, next: SessionStatus, phase: SessionPhase): SessionStatus['conditions'] {
  const { session, now } = draft.world;
  const generation = session.metadata.generation;
  const say = (
    status: ConditionValue['status'],
    reason: Reason,
    message: string = reasons[reason],
  ): ConditionValue => ({
    status,
    reason,
    message,
  });
  let list = session.status?.conditions;
  const set = (type: Parameters<typeof withCondition>[1], value: ConditionValue) => {
    list = withCondition(list, type, value, now, generation);
  };

  const problem = problemOf(draft);
  set('Admitted', admitted());
  set('Ready', ready());
  set('StatePersisted', statePersisted(draft, next));
  const suspended = !next.podName && (phase === 'Suspended' || phase === 'AwaitingApproval');
  set('Suspended', suspended ? suspendedNow() : phase === 'Suspending' ? suspending() : say('False', ready().reason));
  const waiting = waitingTurn(draft);
  if (waiting) set('ApprovalPending', say('True', 'AwaitingApproval', asks(waiting)));
  else if (list?.some(({ type }) => type === 'ApprovalPending')) set('ApprovalPending', say('False', 'NoRequest'));
  const old = outdated(draft, next);
  if (old) set('Outdated', old);
  for (const condition of protectionConditions(draft.world, next)) set(...condition);
  const hidden = secretsHidden(draft);
  if (hidden) set('SecretsHidden', hidden);
  const ends = session.spec.turns === 'One' || phase === 'Finished';
  if (ends) {
    set('Finished', phase === 'Finished' ? { ...finished(), status: 'True' } : say('False', ready().reason));
  }
  return list;

  /** The write that owned the incarnation said more: which pod it is, and why it is not one of a pool. */
  function asBefore(type: Condition['type'], value: ConditionValue): ConditionValue {
    const before = session.status?.conditions?.find((condition) => condition.type === type);
    return before?.status === value.status && before.reason === value.reason
      ? { ...value, message: before.message }
      : value;
  }

  /** The condition keeps the reason of the suspension. */
  function suspendedNow(): ConditionValue {
    const { preemptFor } = draft.world;
    const before = session.status?.conditions?.find(({ type }) => type === 'Suspended');
    const wasPreempted = before?.status === 'True' ? before.reason === 'Preempted' : preemptFor !== undefined;
    const reason = session.spec.suspend ? 'Held' : wasPreempted ? 'Preempted' : 'Suspended';
    if (isOfFormerUid(session, next)) return say('True', reason, `The session has no pod. ${FORMER_STATE}`);
    if (before?.status === 'True' && before.reason === reason) return say('True', reason, before.message);
    if (reason === 'Preempted')
      return say('True', reason, `${reasons.Preempted} It was preempted for ${preemptFor?.for}.`);
    const why = beforeSuspension()?.message.slice(reasons.Suspending.length) ?? '';
    return say('True', reason, `${reasons[reason]}${why}`);
  }

  function asks({ metadata, status }: CachedTurn): string {
    const { id, prompt } = status.approval ?? { id: '', prompt: '' };
    return `Turn ${metadata.name} asks (request ${id}): ${prompt}`;
  }

  /** Used for `Suspended` also while `Ready` says that the pod does not end. */
  function suspending(): ConditionValue {
    const why = whySuspended(draft);
    return say('False', 'Suspending', why ? `${reasons.Suspending} ${why}` : beforeSuspension()?.message);
  }

  function beforeSuspension() {
    return session.status?.conditions?.find(({ type, reason }) => type === 'Suspended' && reason === 'Suspending');
  }

  function admitted(): ConditionValue {
    if (next.podName) return asBefore('Admitted', say('True', 'Admitted'));
    if (isProblem(draft.settings)) return say('False', draft.settings.reason, draft.settings.message);
    if (problem && problem.reason === next.queue?.reason) {
      return say('False', problem.reason, problem.message);
    }
    if (session.spec.suspend) return say('False', 'Held');
    if (next.startFailures) return say('False', next.startFailures.reason as Reason, next.startFailures.message);
    return say('False', 'NotNeeded');
  }

  /** The end of the session: that of its only turn, or of its lifetime. */
  function finished(): ConditionValue {
    if (!hadItsTurn(draft)) return say('False', 'LifetimeExceeded');
    // A turn that is not counted yet has ended all the same.
    const [uncounted] = draft.turns.uncounted;
    const last = next.lastTurn ?? (uncounted && asLast(uncounted));
    if (last?.phase === 'Succeeded') return say('False', 'RunSucceeded');
    // A turn that an earlier release counted has no code.
    const { code = '' } = last ?? {};
    const reason = Object.hasOwn(reasons, code) ? (code as Reason) : 'RunFailed';
    return say('False', reason, `The turn ended ${last?.phase}. ${reasons[reason]}`);
  }

  function ready(): ConditionValue {
    if (phase === 'Terminating') return say('False', 'Terminating');
    if (phase === 'Finished') return finished();
    if (problem?.reason === 'PodStuck') return say('False', problem.reason, problem.message);
    if (phase === 'Suspending') return suspending();
    const asking = isParked(draft) ? waitingTurn(draft) : undefined;
    if (asking) return say(isReady(draft) ? 'True' : 'False', 'AwaitingApproval', asks(asking));
    if (isReady(draft))
      return next.currentTurn ? say('True', 'Running', `Turn ${next.currentTurn} runs.`) : say('True', 'Ready');
    if (problem) return say('False', problem.reason, problem.message);
    if (!next.podName && next.startFailures) {
      return say('False', next.startFailures.reason as Reason, next.startFailures.message);
    }
    // The reason of the last failed start stays until the next start, which begins with owning an incarnation, or until
    // the pod has been given a turn after all.
    const last = session.status?.conditions?.find((condition) => condition.type === 'Ready');
    if (last && START_PROBLEMS.has(last.reason) && !hasStarted(draft, next))
      return say('False', last.reason as Reason, last.message);
    if (next.podName) return asBefore('Ready', say('False', 'Starting'));
    return say('False', session.spec.suspend ? 'Held' : 'Suspended');
  }
}
