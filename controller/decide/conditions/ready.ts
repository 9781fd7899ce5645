import type { Reason } from '../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { isParked, waitingTurn } from '../../observed/approvals.ts';
import { startedContainer } from '../../observed/pod-status.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { isRunnerlessPod } from '../../settings/runnerless.ts';
import { type ConditionValue, conditionValue } from '../../status/conditions.ts';
import { startMessage } from '../admission.ts';
import { type Draft, problemOf } from '../draft.ts';
import { isReady } from '../readiness.ts';
import { howEnded } from './finished.ts';
import { suspending } from './suspended.ts';

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

/** Condition `Ready`: the session's pod can be given turns, or the one reason that helps people most. */
export function ready(draft: Draft, next: SessionStatus): ConditionValue {
  const { session } = draft.world;
  const { phase, podName, startFailures, currentTurn } = next;
  if (draft.admission) return conditionValue('False', 'Starting', startMessage(draft.world, draft.admission));
  const problem = problemOf(draft);
  if (phase === 'Terminating') return conditionValue('False', 'Terminating');
  if (phase === 'Finished') return conditionValue('False', ...howEnded(draft, next));
  if (problem?.reason === 'PodStuck') return conditionValue('False', problem.reason, problem.message);
  if (phase === 'Suspending') return suspending(draft);
  const asking = isParked(draft) ? waitingTurn(draft.turns) : undefined;
  if (asking) return conditionValue(isReady(draft) ? 'True' : 'False', 'AwaitingApproval', asks(asking));
  if (isReady(draft)) {
    return currentTurn
      ? conditionValue('True', 'Running', `Turn ${currentTurn} runs.`)
      : conditionValue('True', 'Ready');
  }
  if (problem) return conditionValue('False', problem.reason, problem.message);
  if (!podName && startFailures) return conditionValue('False', startFailures.reason as Reason, startFailures.message);
  // The reason of the last failed start stays until the next start, which begins with the admission, or until the pod has
  // been given a turn after all.
  const last = session.status?.conditions?.find(({ type }) => type === 'Ready');
  if (last && START_PROBLEMS.has(last.reason) && !hasStarted(draft, next))
    return conditionValue('False', last.reason as Reason, last.message);
  if (podName) {
    // The admission said more: which pod it is, and why it is not one of a pool.
    const isStarting = last?.status === 'False' && last.reason === 'Starting';
    return conditionValue('False', 'Starting', isStarting ? last.message : undefined);
  }
  return conditionValue('False', session.spec.suspend ? 'Held' : 'Suspended');
}

/** What the turn waits for, as people read it. */
export function asks({ metadata, status }: CachedTurn): string {
  const { id, prompt } = status.approval ?? { id: '', prompt: '' };
  return `Turn ${metadata.name} asks (request ${id}): ${prompt}`;
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
