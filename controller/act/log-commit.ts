import type { StoredTurn } from '../../core/resources/kinds.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Logger } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Links } from '../link/links.ts';
import { highestState } from '../observed/highest-state.ts';
import type { Leader } from './context.ts';

export interface CommitLogOptions {
  caches: Pick<Caches, 'session'>;
  links: Pick<Links, 'get'>;
  leader: Pick<Leader, 'identity' | 'epoch'>;
  log: Logger;
  /** Last state of the session that this leader has committed; undefined: none. */
  committed(key: string): StateRef | undefined;
}

/**
 * Logs a commit: a status write that has ended a turn, or made it wait for a decision. The fields say which controller and
 * which runner made it and from which state, so that two histories of one session can be distinguished afterwards. A turn that
 * names a session that does not exist has neither uid nor base.
 */
export function logCommit(options: CommitLogOptions, { metadata, spec, status = {} }: StoredTurn): void {
  const { phase, index, attempt, incarnation, podUID, state, approval, error } = status;
  if (!isTerminal(phase) && phase !== 'AwaitingApproval') return;
  const { caches, links, leader, log, committed } = options;
  const key = `${metadata.namespace}/${spec.session}`;
  const session = caches.session(metadata.namespace, spec.session);
  const position = (ref: StateRef | undefined) => (ref ? { incarnation: ref.incarnation, seq: ref.seq } : null);
  const facts = {
    session: key,
    uid: session?.metadata.uid,
    turn: metadata.name,
    turnUID: metadata.uid,
    index,
    attempt,
    phase,
    ...(error ? { code: error.code } : {}),
    ...(phase === 'AwaitingApproval' ? { request: approval?.id } : {}),
    holder: leader.identity,
    epoch: leader.epoch(),
    boot: links.get(podUID)?.boot,
    incarnation,
    base: position(highestState([session?.status?.state, session && committed(key)])),
    state: position(state),
    version: metadata.resourceVersion,
  };
  log.info(facts, 'turn committed');
}
