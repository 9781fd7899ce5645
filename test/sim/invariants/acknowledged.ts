import { type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { KeptFrame, SimContainer } from '../cluster/container.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * A result or a request is acknowledged to the runner only after its state is stored, and after it is committed itself,
 * unless it belongs to no current attempt.
 */
export const committedFirst: MakeInvariant = (facts) => {
  /** Session uid → digests of its committed states. */
  const states = new Map<string, Set<string>>();
  const note = (session: string | undefined, digest: string | undefined) => {
    if (session && digest) states.set(session, (states.get(session) ?? new Set()).add(digest));
  };

  const isStateKept = ({ run, state }: KeptFrame, { content }: SimContainer) =>
    state === run.from || content.bytes > content.maxBytes || states.get(run.sessionUID)?.has(state) === true;

  return {
    committed({ storage, type, object }) {
      if (type === 'DELETED') return;
      const { status } = object as unknown as StoredTurn;
      if (storage === TURNS) note(ownerOf(object as unknown as StoredTurn), status?.state?.digest);
      if (storage === SESSIONS) note(object.metadata.uid, status?.state?.digest);
    },
    acknowledged(frame, container) {
      const { kind, run } = frame;
      const turn = facts.turns.get(run.turn);
      const name = turn?.metadata.name ?? run.turn;
      const fail = (why: string) => facts.fail('committed first', `the ${kind} of turn ${name} is acknowledged ${why}`);
      if (!isStateKept(frame, container)) fail('before its state is stored');
      const { phase, podUID, attempt } = turn?.status ?? {};
      if (!turn || isTerminal(phase) || podUID !== run.podUID || attempt !== run.attempt) return;
      if (!facts.server.get(turns, turn.metadata.namespace, turn.metadata.name)) return;
      if (kind === 'approval' && isRequestCommitted(turn, frame)) return;
      fail(`while that is ${phase}`);
    },
  };
};

/** Reports whether the request, or a later one of the turn, is in the turn's status. */
function isRequestCommitted({ status }: StoredTurn, { incarnation, seq }: KeptFrame): boolean {
  const known = status?.approval;
  return known !== undefined && known.incarnation === incarnation && known.seq >= seq;
}
