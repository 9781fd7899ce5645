import { MAX_PAYLOAD_BYTES } from '../../core/resources/limits.ts';
import type { OwnTurns } from './own-turns.ts';
import type { CachedApproval, CachedTurn, World } from './world.ts';

/** What turns ask of people, and what they are told. */

interface Observed {
  world: World;
  turns: OwnTurns;
}

/** Whether an Approval can count for what the turn asks. */
export function counts(approval: CachedApproval, turn: Pick<CachedTurn, 'metadata' | 'status'>): boolean {
  const { metadata, spec, responseBytes, responseTooDeep } = approval;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Turn')?.uid;
  return (
    spec.turn === turn.metadata.name &&
    spec.requestId === turn.status.approval?.id &&
    (owner === undefined || owner === turn.metadata.uid) &&
    !metadata.deletionTimestamp &&
    // Its rules do not see the response: what was changed since has another generation.
    (metadata.generation ?? 1) === 1 &&
    responseBytes <= MAX_PAYLOAD_BYTES &&
    responseTooDeep === undefined
  );
}

/** The first Approval for what the turn asks. */
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

/** Whether somebody has decided, as far as it is known. */
export function isDecided(world: Pick<World, 'approvals'>, turn: CachedTurn): boolean {
  return turn.status.approval?.decided !== undefined || decisionFor(world.approvals, turn) !== undefined;
}

/** The turn that is next waits for a decision: until then nothing of the session needs a pod. */
export function isParked({ turns, world }: Observed): boolean {
  const [next] = turns.live;
  return next?.status.phase === 'AwaitingApproval' && !isDecided(world, next);
}

/** The turn that waits and whose process is in the pod that is there. */
export function waitingProcess({ turns, world: { pod } }: Observed): CachedTurn | undefined {
  return turns.live.find(
    ({ status }) =>
      status.phase === 'AwaitingApproval' &&
      status.approval?.process === 'Alive' &&
      pod !== undefined &&
      status.podUID === pod.metadata.uid,
  );
}
