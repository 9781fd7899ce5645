import { reasons } from '../../core/resources/reasons.ts';
import type { TurnApproval, TurnStatus } from '../../core/resources/turn.ts';
import type { CachedTurn } from '../observed/world.ts';
import { withCondition } from './conditions.ts';
import { withTurnReason } from './reason.ts';

/** Turn statuses for approvals. */

/** Status of a turn that waits for a decision. `fields`: what is durable beside the request. */
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
  return withTurnReason({
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
  });
}

/** Status of a turn with its decision, about to go on in this pod; the decision is delivered once. */
export function resumed(
  turn: CachedTurn,
  decided: NonNullable<TurnApproval['decided']>,
  { incarnation, podUID }: { incarnation: number; podUID: string },
  now: number,
): TurnStatus {
  const { approval } = turn.status;
  if (!approval) throw new TypeError(`turn ${turn.metadata.name} has asked nothing`);
  const by = decided.by ? ` by ${decided.by}` : '';
  const message = `${decided.decision === 'Approve' ? 'Approved' : 'Denied'}${by}; incarnation ${incarnation} goes on.`;
  const value = { status: 'True', reason: 'Running', message } as const;
  const { usage, ...rest } = turn.status;
  // Usage of a new process starts at zero.
  const goesOn = approval.process === 'Alive' && podUID === turn.status.podUID;
  return withTurnReason({
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
  });
}
