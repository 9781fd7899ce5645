import type { StoredTurn } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { highestState } from '../world/highest-state.ts';
import type { World } from '../world/world.ts';
import type { ReconcileContext } from './context.ts';

/** Context of a commit; without a world where the turn names a session that does not exist. */
type Committer = Pick<ReconcileContext, 'effects' | 'key'> &
  Partial<Pick<ReconcileContext, 'memory'>> & { world?: Pick<World, 'session'> };

/**
 * Logs a commit: a status write that has ended a turn, or made it wait for a decision. The fields say which controller and
 * which runner made it and from which state, so that two histories of one session can be told apart afterwards.
 */
export function logCommit({ effects, world, memory, key }: Committer, { metadata, status = {} }: StoredTurn): void {
  const { phase, index, attempt, incarnation, podUID, state, approval, error } = status;
  if (!isTerminal(phase) && phase !== 'AwaitingApproval') return;
  const position = (ref: typeof state) => (ref ? { incarnation: ref.incarnation, seq: ref.seq } : null);
  const facts = {
    session: key,
    uid: world?.session.metadata.uid,
    turn: metadata.name,
    turnUID: metadata.uid,
    index,
    attempt,
    phase,
    ...(error ? { code: error.code } : {}),
    ...(phase === 'AwaitingApproval' ? { request: approval?.id } : {}),
    holder: effects.leader.identity,
    epoch: effects.leader.epoch(),
    boot: effects.links.get(podUID)?.boot,
    incarnation,
    base: position(highestState([world?.session.status?.state, memory?.committed])),
    state: position(state),
    version: metadata.resourceVersion,
  };
  effects.log.info(facts, 'turn committed');
}
