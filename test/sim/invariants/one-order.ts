import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { EMPTY_DIGEST } from '../../../runner/state/archive.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * The turns of a session that succeeded stand in one order, also when some of them are deleted by now: no two have one
 * index, and each was begun with the state that was committed last before it.
 */
export const oneOrder: MakeInvariant = (facts) => {
  /** Session → index → the turn that has succeeded with it. */
  const succeeded = new Map<string, Map<number, StoredTurn>>();
  /** Session → digest of the highest state before the present write. */
  const states = new Map<string, string>();
  const refused = new Map<string, string>();

  const check = (turn: StoredTurn, session: string) => {
    const { index = 0, podUID, attempt } = turn.status ?? {};
    const { name, uid } = turn.metadata;
    const indices = succeeded.get(session) ?? new Map<number, StoredTurn>();
    const other = indices.get(index);
    if (other && other.metadata.uid !== uid)
      facts.fail('one order', `turns ${other.metadata.name} and ${name} both succeeded with index ${index}`);
    succeeded.set(session, indices.set(index, turn));
    const run = facts.runs.get(uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
    const from = run?.asked.at(-1) ?? run?.from;
    const before = states.get(session) ?? EMPTY_DIGEST;
    // What somebody deleted with its turn is gone, and a pod goes on from a state that was too large to be committed.
    const allowed = [before, facts.left(session)?.digest ?? EMPTY_DIGEST, refused.get(podUID ?? '')];
    if (from !== undefined && !allowed.includes(from))
      facts.fail(
        'one order',
        `turn ${name} was begun with ${from.slice(0, 8)}, and ${before.slice(0, 8)} came before it`,
      );
  };

  return {
    runEnded({ podUID, end }, { content }) {
      if (end && end.stateBytes > content.maxBytes) refused.set(podUID, end.to);
    },
    committed({ storage, type, object, previous }) {
      if (type === 'DELETED' || (storage !== TURNS && storage !== SESSIONS)) return;
      const turn = object as unknown as StoredTurn;
      const session = storage === TURNS ? ownerOf(turn) : object.metadata.uid;
      if (!session) return;
      const was = (previous as unknown as StoredTurn | undefined)?.status?.phase;
      const ends = storage === TURNS && turn.status?.phase === 'Succeeded' && was !== 'Succeeded';
      if (ends) check(turn, session);
      const highest = facts.committed.get(session);
      if (highest) states.set(session, highest.digest);
    },
  };
};
