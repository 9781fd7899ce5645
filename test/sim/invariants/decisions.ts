import { isDeepStrictEqual } from 'node:util';
import { toMs } from '../../../controller/settings/timeouts.ts';
import { approvals, type StoredApproval, type StoredTurn } from '../../../core/resources/kinds.ts';
import { storageOf } from '../api/server.ts';
import { CLOCK_MS } from './clocks.ts';
import { TURNS } from './facts.ts';
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

/** A turn whose request was decided in time does not end for want of a decision, whatever its controller has been told. */
export const decidedInTime: MakeInvariant = (facts) => {
  /** Approval → its creation by the API server's clock. */
  const createdAt = new Map<string, number>();
  const { server } = facts;
  return {
    committed({ storage, type, object, previous }) {
      if (storage === APPROVALS && type === 'ADDED') createdAt.set(object.metadata.uid ?? '', server.clock.now());
      const turn = object as unknown as StoredTurn;
      if (storage !== TURNS || type !== 'MODIFIED' || turn.status?.error?.code !== 'ApprovalTimeout') return;
      const was = previous as unknown as StoredTurn | undefined;
      const { id, since = '' } = was?.status?.approval ?? {};
      const until = Date.parse(since) + toMs(was?.status?.granted?.approval);
      const { name, namespace, uid } = turn.metadata;
      const by = server.list(approvals).find(({ metadata, spec }) => {
        const isFor = metadata.namespace === namespace && spec.turn === name && spec.requestId === id;
        const isOwn = metadata.ownerReferences?.every((owner) => owner.uid === uid) ?? true;
        const isWhole = !metadata.deletionTimestamp && (metadata.generation ?? 1) === 1;
        return isFor && isOwn && isWhole && (createdAt.get(metadata.uid) ?? until) + CLOCK_MS < until;
      });
      if (was?.status?.phase === 'AwaitingApproval' && by)
        facts.fail('decided in time', `turn ${name} ends as undecided, and Approval ${by.metadata.name} decides on it`);
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
