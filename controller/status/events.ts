import type { SessionStatus } from '../../core/resources/session.ts';

export interface EventFacts {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** Reasons of False conditions that a user has to act on. */
const WARNINGS = new Set([
  'ClassNotFound',
  'ClassInvalid',
  'NotAllowed',
  'InvalidSpec',
  'InputTooDeep',
  'TurnExists',
  'TurnQuotaExceeded',
  'StartFailed',
  'ImageUnavailable',
  'Unschedulable',
  'PodForbidden',
  'PodConfigError',
  'PodStuck',
  'QuotaExceeded',
  'SecretTooShort',
  'RunnerNotHardened',
  'AgentNotContained',
  'StateNotStored',
  'StateTooLarge',
  'StateKeyUnknown',
  'StateUnavailable',
  'OOMKilled',
  'DiskFull',
  'StoreFull',
  'ProtocolUnsupported',
]);
/** Milestones that help to follow a session; a turn that merely succeeds is not one. */
const MILESTONES = new Set(['AtCapacity', 'Preempted', 'Suspended', 'Held', 'SessionChanged']);

/** Events for a change of status. */
export function noteworthy(before: SessionStatus | undefined, after: SessionStatus): EventFacts[] {
  const events: EventFacts[] = [];
  const seen = new Set<string>();
  for (const condition of after.conditions ?? []) {
    const old = before?.conditions?.find(({ type }) => type === condition.type);
    if (old?.reason === condition.reason || seen.has(condition.reason)) continue;
    // A finished session shows the end of its turn, which had an event of its own where it needs attention.
    if (after.phase === 'Finished' && condition.type !== 'StatePersisted') continue;
    const { reason, message } = condition;
    if (condition.status === 'False' && WARNINGS.has(reason)) events.push({ type: 'Warning', reason, message });
    else if (MILESTONES.has(reason) && (condition.status === 'True' || reason === 'AtCapacity')) {
      events.push({ type: 'Normal', reason, message });
    } else continue;
    seen.add(reason);
  }
  return events;
}
