import type { Reason } from '../../core/resources/reasons.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { TurnPhase, TurnStatus } from '../../core/resources/turn.ts';
import type { CachedTurn } from '../world.ts';
import { withCondition } from './conditions.ts';

/** Every status that a Turn can be given, built from the one it has. */

export function queued(turn: CachedTurn, index: number, reason: Reason, now: number, message?: string): TurnStatus {
  const { incarnation: _i, podUID: _p, attempt: _a, startedAt: _s, ...rest } = turn.status;
  let conditions = withCondition(
    rest.conditions,
    'Finished',
    { status: 'False', reason, message: message ?? reasons[reason] },
    now,
  );
  if (turn.status.phase === 'Running') {
    conditions = withCondition(conditions, 'Running', { status: 'False', reason, message: reasons[reason] }, now);
  }
  return { ...rest, index, phase: 'Queued', conditions };
}

export function running(
  turn: CachedTurn,
  facts: { index: number; incarnation: number; podUID: string },
  now: number,
): TurnStatus {
  const value = {
    status: 'True',
    reason: 'Running',
    message: `The turn was given to incarnation ${facts.incarnation}.`,
  } as const;
  return {
    ...turn.status,
    ...facts,
    phase: 'Running',
    attempt: turn.status.attempt ?? 1,
    inputDigest: turn.status.inputDigest ?? turn.input.digest,
    conditions: withCondition(
      withCondition(turn.status.conditions, 'Running', value, now),
      'Finished',
      { ...value, status: 'False' },
      now,
    ),
  };
}

export interface Ending {
  phase: Extract<TurnPhase, 'Succeeded' | 'Failed' | 'Cancelled' | 'TimedOut'>;
  reason: Reason;
  message: string;
  /** Fields beyond phase, conditions, error and finishedAt. */
  fields?: Partial<TurnStatus>;
}

/** A terminal status. Everything but success carries an error. */
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
  return {
    ...turn.status,
    finishedAt: new Date(now).toISOString(),
    ...ending.fields,
    phase: ending.phase,
    conditions,
    ...(ending.phase === 'Succeeded' ? {} : { error: { code: ending.reason, message } }),
  };
}
