import { isDeepStrictEqual } from 'node:util';
import { approvals, type StoredApproval } from '../../../core/resources/kinds.ts';
import { storageOf } from '../api/server.ts';
import type { MakeInvariant } from './invariant.ts';

const APPROVALS = storageOf(approvals);

/** An agent is told the decision on its request once, after the decision was written to the turn. */
export const toldOnce: MakeInvariant = (facts) => {
  const given: StoredApproval[] = [];
  const told = new Map<string, string>();
  return {
    committed({ storage, type, object }) {
      if (storage === APPROVALS && type === 'ADDED') given.push(object as unknown as StoredApproval);
    },
    told(run, { requestId, decision, response }) {
      const turn = facts.turns.get(run.turn);
      const { name = '', namespace } = turn?.metadata ?? {};
      const fail = (why: string) => facts.fail('told once', `turn ${name} is told of request ${requestId} ${why}`);
      const before = told.get(requestId);
      if (before) fail(`in pod ${run.podUID}, as it was in ${before}`);
      told.set(requestId, run.podUID);
      const by = given.find(({ metadata, spec }) => {
        const isFor = metadata.namespace === namespace && spec.turn === name && spec.requestId === requestId;
        return isFor && spec.decision === decision && isDeepStrictEqual(spec.response, response);
      });
      if (!by) fail(`${decision}, which nobody has decided`);
      const { id, decided } = turn?.status?.approval ?? {};
      if (id !== requestId || decided?.decision !== decision) fail('before that was written');
    },
  };
};

/**
 * The first request to an agent in a later pod says that the agent is restored, unless it carries a decision. Earlier
 * runs are unknown when all their turns were deleted before they ended.
 */
export const toldOfRestoration: MakeInvariant = (facts) => {
  const podsOf = new Map<string, Set<string>>();
  const greeted = new Set<string>();
  return {
    runStarted({ sessionUID, podUID, decision, restored, turn, isRunnerless }) {
      if (isRunnerless) return;
      const before = podsOf.get(sessionUID) ?? new Set();
      podsOf.set(sessionUID, before.add(podUID));
      const name = facts.turns.get(turn)?.metadata.name ?? turn;
      const fail = (what: string) => facts.fail('told of restoration', `turn ${name} in pod ${podUID} ${what}`);
      if (decision !== undefined) {
        if (restored) fail('is told a decision and that it is restored');
        return;
      }
      const first = !greeted.has(podUID);
      greeted.add(podUID);
      if (restored && !first) fail('is told again that it is restored');
      if (restored || !first || before.size <= 1) return;
      const { lastTurn, state } = facts.session(sessionUID)?.status ?? {};
      const ranBefore = facts.turnsOf(sessionUID).some(({ metadata: { uid } }) => {
        return facts.runs.get(uid)?.some((run) => run.podUID !== podUID);
      });
      if (lastTurn || state || ranBefore) fail('is not told that it is restored');
    },
  };
};
