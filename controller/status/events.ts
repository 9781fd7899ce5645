import type { Reason } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { CachedTurn, World } from '../observed/world.ts';

export interface EventFacts {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** Tells people by a Kubernetes Event on an object of Berth, a session unless said otherwise. */
export type Notify = (
  object: { metadata: Pick<CachedTurn['metadata'], 'namespace' | 'name' | 'uid'> },
  event: EventFacts,
  kind?: 'Session' | 'Turn' | 'SessionPool' | 'Environment',
) => void;

/** Reasons of False conditions for which a user has to act. */
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
  'SocketTaken',
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

/** Reasons of events in the life of every session. */
export const OF_EVERY_LIFE: ReadonlySet<string> = new Set<Reason>(['PodCreated', 'PodClaimed', 'Finished']);

/** Event for the pod that an incarnation gets; of `pool`, or made for it. */
export function podEvent({ session, turns }: Pick<World, 'session' | 'turns'>, pod: string, pool?: string): EventFacts {
  const [next] = ownTurns(session, turns).live;
  const incarnation = `incarnation ${session.status?.incarnation ?? 1}${next ? `, for turn ${next.metadata.name}` : ''}`;
  return pool === undefined
    ? { type: 'Normal', reason: 'PodCreated', message: `Created pod ${pod}: ${incarnation}.` }
    : { type: 'Normal', reason: 'PodClaimed', message: `Claimed pod ${pod} of pool "${pool}": ${incarnation}.` };
}

/** Events for a change of status. */
export function noteworthy(before: SessionStatus | undefined, after: SessionStatus): EventFacts[] {
  const events: EventFacts[] = [];
  if (after.phase === 'Finished' && before?.phase !== 'Finished') events.push(finished(after));
  const seen = new Set<string>();
  for (const condition of after.conditions ?? []) {
    const old = before?.conditions?.find(({ type }) => type === condition.type);
    if (old?.reason === condition.reason || seen.has(condition.reason)) continue;
    // A finished session shows the end of its turn in all its conditions.
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

/** Event for the end of a session. One for an end that needs attention is written when its turn ends. */
function finished({ conditions }: SessionStatus): EventFacts {
  const { reason = '', message = '' } = conditions?.find(({ type }) => type === 'Finished') ?? {};
  const isExpected = reason === 'RunSucceeded' || reason === 'LifetimeExceeded';
  return { type: 'Normal', reason: 'Finished', message: isExpected ? message : `${reason}: ${message}` };
}
