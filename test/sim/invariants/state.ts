import { createHash } from 'node:crypto';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { parseQuantity } from '../../../core/resources/quantity.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { EMPTY_DIGEST } from '../../../runner/state/archive.ts';
import { isTorn } from '../cluster/state-content.ts';
import { type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { isLater } from './states.ts';

/** A session's state only moves forward, and can be read from the moment at which a status names it. */
export const forward: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (type === 'DELETED') return;
    if (storage === TURNS) {
      const turn = object as unknown as StoredTurn;
      const state = turn.status?.state;
      const was = (previous as unknown as StoredTurn | undefined)?.status?.state;
      const owner = ownerOf(turn);
      if (state && owner && state.digest !== was?.digest) retrievable(facts, turn.metadata.namespace, owner, state);
    }
    if (storage !== SESSIONS) return;
    const session = object as unknown as StoredSession;
    const was = (previous as unknown as StoredSession | undefined)?.status?.state;
    const state = session.status?.state;
    const { namespace, name, uid } = session.metadata;
    const same = state?.incarnation === was?.incarnation && state?.seq === was?.seq;
    if (same) {
      if (state?.digest !== was?.digest) facts.fail('forward', `the state of session ${name} changed in place`);
    } else if (!state || !isLater(state, was)) facts.fail('forward', `the state of session ${name} went back`);
    else retrievable(facts, namespace, uid, state);
  },
});

/** A state that is committed existed at one moment: no process of the session wrote while it was packed. */
export const ofOneMoment: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (type === 'DELETED' || (storage !== TURNS && storage !== SESSIONS)) return;
    const { metadata, status } = object as unknown as StoredSession | StoredTurn;
    const state = status?.state;
    const was = (previous as unknown as StoredSession | StoredTurn | undefined)?.status?.state;
    const owner = storage === SESSIONS ? metadata.uid : ownerOf(object as unknown as StoredTurn);
    if (!state || !owner || state.digest === was?.digest) return;
    const archive = facts.archive(metadata.namespace ?? '', owner, state);
    if ('data' in archive && isTorn(archive.data)) {
      facts.fail('of one moment', `the state of ${storage} ${metadata.name} was written to while it was packed`);
    }
  },
});

function retrievable(facts: Facts, namespace: string, sessionUID: string, state: StateRef): void {
  const archive = facts.archive(namespace, sessionUID, state);
  const name = `state ${state.incarnation}/${state.seq} of session ${sessionUID}`;
  if ('problem' in archive) facts.fail('forward', `${name} cannot be had: ${archive.problem}`);
  else if (createHash('sha256').update(archive.data).digest('hex') !== state.digest)
    facts.fail('forward', `${name} is not what its digest says`);
}

/**
 * Every run begins with the session's last committed state, in any pod. In the same pod it may begin with the state of
 * the run before it, when that was too large to be committed.
 */
export const goesOn: MakeInvariant = (facts) => {
  const refused = new Map<string, string>();
  return {
    runEnded({ podUID, end }, { content }) {
      if (end && end.stateBytes > content.maxBytes) refused.set(podUID, end.to);
    },
    runStarted(run) {
      if (!facts.session(run.sessionUID)) return;
      // A pod that keeps a result back goes on from a state that nobody has got: the loss is its own session's.
      if (facts.kubelets.container(run.podUID)?.hasGarbled) return;
      // The pod that made a state goes on from it even when the state was deleted with its turn.
      const states = [facts.committed.get(run.sessionUID), facts.left(run.sessionUID)];
      const [committed = '', left] = states.map((state) => state?.digest ?? EMPTY_DIGEST);
      if ([committed, left, refused.get(run.podUID)].includes(run.from)) return;
      facts.fail(
        'goes on',
        `turn ${run.turn} begins in pod ${run.podUID} with state ${run.from.slice(0, 8)}, committed is ${committed.slice(0, 8)}`,
      );
    },
  };
};

/** A state carries the incarnation of the pod whose run left it. Another incarnation would change its order. */
export const labelled: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const { state, podUID, incarnation } = turn.status ?? {};
    const was = (previous as unknown as StoredTurn | undefined)?.status?.state;
    if (!state || (state.incarnation === was?.incarnation && state.seq === was.seq)) return;
    const made = facts.bindings.get(podUID ?? '');
    if (made === state.incarnation && made === incarnation) return;
    const { name } = turn.metadata;
    facts.fail(
      'labelled',
      `the state of turn ${name} says incarnation ${state.incarnation}, its pod is that of ${made}`,
    );
  },
});

/** No state is larger than `persistence.maxState`; a turn that left one ends with an error that names both sizes. */
export const withinMaxState: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const { phase, error, state, podUID, attempt } = turn.status ?? {};
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    const owner = ownerOf(turn) ?? '';
    const most = parseQuantity(facts.sessions.get(owner)?.spec.persistence?.maxState ?? `${Number.MAX_SAFE_INTEGER}`);
    const fail = (why: string) => facts.fail('within maxState', `turn ${turn.metadata.name} ${why}`);
    if (state && state.digest !== was?.state?.digest) {
      const archive = facts.archive(turn.metadata.namespace, owner, state);
      if ('data' in archive && archive.data.length > most)
        fail(`brings ${archive.data.length} bytes of at most ${most}`);
    }
    if (!isTerminal(phase) || isTerminal(was?.phase)) return;
    const run = facts.runs.get(turn.metadata.uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
    const bytes = run?.end?.stateBytes ?? 0;
    if (error?.code !== 'StateTooLarge') {
      if (phase === 'Succeeded' && bytes > most) fail(`succeeded with ${bytes} bytes of state of at most ${most}`);
      return;
    }
    if (bytes <= most) fail(`is refused ${bytes} bytes of state, ${most} are allowed`);
    if (![bytes, most].every((number) => error.message.includes(`${number}`))) fail(`only says: ${error.message}`);
  },
});
