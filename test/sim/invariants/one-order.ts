import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import { EMPTY_DIGEST } from '../../../runner/state/archive.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * The succeeded turns of a session have one order, including those that are deleted by now: no two have the same index,
 * and each was begun with the state that was committed last before it.
 */
export const oneOrder: MakeInvariant = (facts) => {
  /** Session → index → the turn that has succeeded with it. */
  const succeeded = new Map<string, Map<number, StoredTurn>>();
  /** Session → the highest index that its status has shown. It counts even when its turn is deleted. */
  const counted = new Map<string, number>();
  /** Session → digests before the present write: of the latest state, and of the latest that no deletion has lost. */
  const states = new Map<string, { highest: string; left: string }>();
  const refused = new Map<string, string>();

  const check = (turn: StoredTurn, session: string) => {
    const { index = 0, podUID, attempt } = turn.status ?? {};
    const { name, uid } = turn.metadata;
    const indices = succeeded.get(session) ?? new Map<number, StoredTurn>();
    const other = indices.get(index);
    if (other && other.metadata.uid !== uid && (facts.isStored(other) || (counted.get(session) ?? 0) >= index))
      facts.fail('one order', `turns ${other.metadata.name} and ${name} both succeeded with index ${index}`);
    succeeded.set(session, indices.set(index, turn));
    const run = facts.runs.get(uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
    // Where an agent changed its state while it waited, an attempt to suspend it may have committed the change.
    const froms = run ? [run.asked.at(-1) ?? run.from, ...run.changed] : [];
    const { highest, left } = states.get(session) ?? { highest: EMPTY_DIGEST, left: EMPTY_DIGEST };
    // A state may be lost with its deleted turn, and a pod goes on from a state that was too large to be committed.
    const allowed = [highest, left, refused.get(podUID ?? '')];
    const isGarbled = facts.kubelets.container(podUID ?? '')?.hasGarbled;
    if (froms[0] !== undefined && !isGarbled && !froms.some((from) => allowed.includes(from)))
      facts.fail(
        'one order',
        `turn ${name} was begun with ${froms[0].slice(0, 8)}, and ${highest.slice(0, 8)} came before it`,
      );
  };

  return {
    runEnded({ podUID, end }, { content }) {
      if (end && end.stateBytes > content.maxBytes) refused.set(podUID, end.to);
    },
    committed({ storage, type, object, previous }) {
      if ((type === 'DELETED' && storage === SESSIONS) || (storage !== TURNS && storage !== SESSIONS)) return;
      const turn = object as unknown as StoredTurn;
      const session = storage === TURNS ? ownerOf(turn) : object.metadata.uid;
      if (!session) return;
      const { lastTurn } = (object as unknown as StoredSession).status ?? {};
      if (storage === SESSIONS && lastTurn) counted.set(session, Math.max(counted.get(session) ?? 0, lastTurn.index));
      const was = (previous as unknown as StoredTurn | undefined)?.status?.phase;
      const ends = storage === TURNS && type !== 'DELETED' && turn.status?.phase === 'Succeeded' && was !== 'Succeeded';
      if (ends) check(turn, session);
      const digest = (state: StateRef | undefined) => state?.digest ?? EMPTY_DIGEST;
      states.set(session, { highest: digest(facts.committed.get(session)), left: digest(facts.left(session)) });
    },
  };
};
