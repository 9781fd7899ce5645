import type { EnvironmentStatus } from '../../core/resources/environment.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { Condition } from '../../core/resources/schema.ts';
import { type SessionStatus, sessionPhase } from '../../core/resources/session.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { TURN_PHASES } from '../../core/resources/turn-phases.ts';

/**
 * `status.reason`, which `kubectl get` shows beside the phase: that of a condition, absent where the phase says as much. It
 * follows from the rest of the status, so that it costs no write of its own.
 */

/** Reasons that repeat a phase: the object's own, or that of its last turn. */
const REPEATS: ReadonlySet<string> = new Set<string>([
  ...sessionPhase.options,
  ...TURN_PHASES,
  'Building' satisfies Reason,
  'RunSucceeded' satisfies Reason,
]);

export function withSessionReason(status: SessionStatus): SessionStatus {
  const { conditions } = status;
  const suspended = conditionOf(conditions, 'Suspended');
  const persisted = conditionOf(conditions, 'StatePersisted');
  const reasons = [
    conditionOf(conditions, 'Ready')?.reason,
    suspended?.status === 'True' ? suspended.reason : undefined,
    // A state that cannot be stored keeps the session from being suspended.
    persisted?.status === 'False' && persisted.reason !== 'PersistenceOff' ? persisted.reason : undefined,
  ];
  return withReason(status, reasons.find(isNew));
}

export function withTurnReason(status: TurnStatus): TurnStatus {
  return withReason(status, conditionOf(status.conditions, 'Finished')?.reason);
}

export function withEnvironmentReason(status: EnvironmentStatus): EnvironmentStatus {
  return withReason(status, conditionOf(status.conditions, 'Ready')?.reason);
}

/** The status with the time since when it has its phase. */
export function withPhaseSince(status: SessionStatus, before: SessionStatus | undefined, now: number): SessionStatus {
  return status.phase === before?.phase ? status : { ...status, phaseSince: new Date(now).toISOString() };
}

function withReason<S extends { reason?: string | undefined }>(status: S, reason: string | undefined): S {
  const { reason: _, ...rest } = status;
  return (isNew(reason) ? { ...rest, reason } : rest) as S;
}

const isNew = (reason: string | undefined) => reason !== undefined && !REPEATS.has(reason);

const conditionOf = (conditions: Condition[] | undefined, name: string) =>
  conditions?.find(({ type }) => type === name);
