import { decisionCounts } from '../../core/resources/decided.ts';
import { MAX_PAYLOAD_BYTES } from '../../core/resources/limits.ts';
import type { OwnTurns } from './own-turns.ts';
import type { CachedApproval, CachedTurn, World } from './world.ts';

/** Requests for approval and the decisions on them. */

interface Observed {
  world: World;
  turns: OwnTurns;
}

/** Reports whether an Approval is valid for the turn's current request. */
export function counts(approval: CachedApproval, turn: Pick<CachedTurn, 'metadata' | 'status'>): boolean {
  const { metadata, spec, responseBytes, responseTooDeep } = approval;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Turn')?.uid;
  return (
    spec.turn === turn.metadata.name &&
    spec.requestId === turn.status.approval?.id &&
    (owner === undefined || owner === turn.metadata.uid) &&
    !metadata.deletionTimestamp &&
    // The CEL rules do not check the response; a generation above 1 shows that the Approval was changed.
    (metadata.generation ?? 1) === 1 &&
    responseBytes <= MAX_PAYLOAD_BYTES &&
    responseTooDeep === undefined &&
    decisionCounts(spec.requester, turn.status)
  );
}

/** The oldest Approval that is valid for the turn's current request. */
export function decisionFor(
  approvals: readonly CachedApproval[],
  turn: Pick<CachedTurn, 'metadata' | 'status'>,
): CachedApproval | undefined {
  return approvals
    .filter((approval) => counts(approval, turn))
    .sort(
      (a, b) =>
        Date.parse(a.metadata.creationTimestamp) - Date.parse(b.metadata.creationTimestamp) ||
        (a.metadata.name < b.metadata.name ? -1 : 1),
    )[0];
}

/** Reports whether the request is decided, as far as the caches show. */
export function isDecided(world: Pick<World, 'approvals'>, turn: CachedTurn): boolean {
  return turn.status.approval?.decided !== undefined || decisionFor(world.approvals, turn) !== undefined;
}

/** Reports whether the next turn waits for a decision: until then the session needs no pod. */
export function isParked({ turns, world }: Observed): boolean {
  const [next] = turns.live;
  return next?.status.phase === 'AwaitingApproval' && !isDecided(world, next);
}

/** The turn that waits for a decision; there may be one already. */
export function waitingTurn({ live }: OwnTurns): CachedTurn | undefined {
  return live.find(({ status }) => status.phase === 'AwaitingApproval');
}

/** The turn awaiting approval whose process is alive in the present pod. */
export function waitingProcess({ turns, world: { pod } }: Observed): CachedTurn | undefined {
  return turns.live.find(
    ({ status }) =>
      status.phase === 'AwaitingApproval' &&
      status.approval?.process === 'Alive' &&
      pod !== undefined &&
      status.podUID === pod.metadata.uid,
  );
}
