import type { Reason } from '../../core/resources/reasons.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { Condition } from '../../core/resources/schema.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { TurnPhase } from '../../core/resources/turn-phases.ts';
import { isGiven } from '../observed/own-turns.ts';
import { inClusterTime } from '../observed/runner-time.ts';
import type { CachedTurn } from '../observed/world.ts';
import { withCondition } from './conditions.ts';
import { withTurnReason } from './reason.ts';

/** Builds each status of a Turn from the one before. */

/**
 * Status of a queued turn. A turn that was given to a pod and that no runner received goes back to its earlier attempt
 * count.
 */
export function queued(turn: CachedTurn, index: number, reason: Reason, now: number, message?: string): TurnStatus {
  const {
    incarnation: _i,
    podUID: _p,
    attempt = 0,
    startedAt: _s,
    usage: _u,
    redactions: _r,
    approval: _a,
    concurrencyGroup: _c,
    granted,
    ...rest
  } = turn.status;
  const begun = isGiven(turn) ? attempt - 1 : attempt;
  const kept = begun > 0 ? { attempt: begun, ...(granted ? { granted } : {}) } : {};
  const conditions = waiting(turn, reason, now, message);
  return withTurnReason({ ...rest, ...kept, index, phase: 'Queued', conditions });
}

/** Status of a turn that was given to a pod which has not started yet. The pod may still start and run it. */
export function unstarted(turn: CachedTurn, reason: Reason, now: number, message: string): TurnStatus {
  return withTurnReason({ ...turn.status, phase: 'Queued', conditions: waiting(turn, reason, now, message) });
}

/** Conditions of a turn that waits. `Running` is left out where the turn waits for nothing but its turn. */
function waiting(turn: CachedTurn, reason: Reason, now: number, message: string = reasons[reason]): Condition[] {
  const value = { status: 'False', reason, message } as const;
  const conditions = withCondition(turn.status.conditions, 'Finished', value, now);
  const hasRun = conditions.some(({ type }) => type === 'Running');
  return hasRun || reason !== 'Queued' ? withCondition(conditions, 'Running', value, now) : conditions;
}

/** Status of a turn whose attempt was lost and that may be retried: it keeps its index and its granted timeouts. */
export function lostAttempt(turn: CachedTurn, cause: { reason: Reason; message: string }, now: number): TurnStatus {
  const {
    incarnation: _i,
    podUID: _p,
    startedAt: _s,
    usage: _u,
    redactions: _r,
    approval: _a,
    concurrencyGroup: _c,
    ...rest
  } = turn.status;
  const value = { status: 'False', message: cause.message } as const;
  const conditions = withCondition(rest.conditions, 'Running', { ...value, reason: cause.reason }, now);
  return withTurnReason({
    ...rest,
    phase: 'Queued',
    conditions: withCondition(conditions, 'Finished', { ...value, reason: 'Retrying' }, now),
  });
}

const RETRY_BACKOFF_MS = 1_000;
const MAX_RETRY_BACKOFF_MS = 60_000;

/**
 * Earliest time of the next attempt at a queued turn, milliseconds since the epoch; 0 for a turn that was never begun.
 */
export function nextAttemptAt(turn: CachedTurn): number {
  const { attempt = 0, phase, conditions } = turn.status;
  if (attempt === 0 || phase !== 'Queued' || isGiven(turn)) return 0;
  const lostAt = conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  if (!lostAt) return 0;
  return Date.parse(lostAt) + Math.min(RETRY_BACKOFF_MS * 2 ** (attempt - 1), MAX_RETRY_BACKOFF_MS);
}

/** Status of a turn that a pod runs. `facts` are those of its beginning; a turn that has begun keeps its group. */
export function running(
  turn: CachedTurn,
  facts: Required<Pick<TurnStatus, 'index' | 'incarnation' | 'podUID' | 'granted'>> &
    Pick<TurnStatus, 'concurrencyGroup'>,
  now: number,
): TurnStatus {
  const value = {
    status: 'True',
    reason: 'Running',
    message: `The turn was given to incarnation ${facts.incarnation}.`,
  } as const;
  return withTurnReason({
    ...turn.status,
    ...facts,
    phase: 'Running',
    attempt: isGiven(turn) ? (turn.status.attempt ?? 1) : (turn.status.attempt ?? 0) + 1,
    inputDigest: turn.status.inputDigest ?? turn.input.digest,
    conditions: withCondition(
      withCondition(turn.status.conditions, 'Running', value, now),
      'Finished',
      { ...value, status: 'False' },
      now,
    ),
  });
}

export interface Ending {
  phase: Extract<TurnPhase, 'Succeeded' | 'Failed' | 'Cancelled' | 'TimedOut'>;
  reason: Reason;
  message: string;
  /** Fields beyond phase, conditions, error and finishedAt. */
  fields?: Partial<TurnStatus>;
}

export const internalError = (why: string): Ending => ({
  phase: 'Failed',
  reason: 'InternalError',
  message: `The controller fails at this turn by an error of its own: ${why}. Its log has the stack; report it, and give the turn again in another form.`,
});

/** Terminal status of a turn; all but Succeeded carry an error. */
export function ended(turn: CachedTurn, ending: Ending, now: number): TurnStatus {
  const message = ending.message.slice(0, 4096);
  let conditions = withCondition(
    turn.status.conditions,
    'Finished',
    { status: 'True', reason: ending.reason, message },
    now,
  );
  if (conditions.some((condition) => condition.type === 'Running')) {
    conditions = withCondition(conditions, 'Running', { status: 'False', reason: ending.reason, message }, now);
  }
  return withTurnReason({
    ...turn.status,
    finishedAt: new Date(now).toISOString(),
    ...inClusterTime(turn, ending.fields ?? {}, now),
    phase: ending.phase,
    conditions,
    ...(ending.phase === 'Succeeded' ? {} : { error: { code: ending.reason, message } }),
  });
}
