import { reasons } from '../../core/resources/reasons.ts';
import type { TurnApproval, TurnStatus } from '../../core/resources/turn.ts';
import type { CachedTurn } from '../world/world.ts';
import { withCondition } from './conditions.ts';

/** Statuses of a turn that asks a person. */

/** It waits for a decision. `fields`: what is durable by now beside the request. */
export function awaiting(
  turn: CachedTurn,
  approval: TurnApproval,
  fields: Partial<TurnStatus>,
  now: number,
): TurnStatus {
  const value = {
    status: 'False',
    reason: 'AwaitingApproval',
    message: approval.decided ? 'Decided; the turn waits for its pod.' : approval.prompt,
  } as const;
  return {
    ...turn.status,
    ...fields,
    phase: 'AwaitingApproval',
    approval,
    conditions: withCondition(
      withCondition(turn.status.conditions, 'Running', value, now),
      'Finished',
      { ...value, message: approval.prompt || reasons.AwaitingApproval },
      now,
    ),
  };
}

/** The decision is written, and the turn goes on in this pod: it is told once. */
export function resumed(
  turn: CachedTurn,
  decided: NonNullable<TurnApproval['decided']>,
  { incarnation, podUID }: { incarnation: number; podUID: string },
  now: number,
): TurnStatus {
  const { approval } = turn.status;
  if (!approval) throw new Error(`turn ${turn.metadata.name} has asked nothing`);
  const by = decided.by ? ` by ${decided.by}` : '';
  const message = `${decided.decision === 'Approve' ? 'Approved' : 'Denied'}${by}; incarnation ${incarnation} goes on.`;
  const value = { status: 'True', reason: 'Running', message } as const;
  const { usage, ...rest } = turn.status;
  // A new process is measured from its own beginning.
  const goesOn = approval.process === 'Alive' && podUID === turn.status.podUID;
  return {
    ...rest,
    ...(usage && goesOn ? { usage } : {}),
    incarnation,
    podUID,
    phase: 'Running',
    approval: { ...approval, decided },
    conditions: withCondition(
      withCondition(turn.status.conditions, 'Running', value, now),
      'Finished',
      { ...value, status: 'False' },
      now,
    ),
  };
}
