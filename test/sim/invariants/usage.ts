import { isDeepStrictEqual } from 'node:util';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** The usage of a running turn is that of its present attempt, and no more than this can have used by then. */
export const ownUsage: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    const { phase, attempt, usage, startedAt } = turn.status ?? {};
    if (phase === 'Queued' && (usage || startedAt))
      facts.fail('own usage', `turn ${turn.metadata.name} is queued and shows what an earlier attempt has used`);
    if (phase !== 'Running' || !usage) return;
    if (was?.attempt === attempt && isDeepStrictEqual(was?.usage, usage)) return;
    const began = facts.runs.get(turn.metadata.uid)?.find((run) => run.attempt === attempt)?.startedAt;
    // A runner counts each millisecond that has begun.
    const most = began === undefined ? 0 : facts.kubelets.now - began + 1;
    if (usage.wall * 1000 > most)
      facts.fail(
        'own usage',
        `turn ${turn.metadata.name} has run ${usage.wall} s of the ${most / 1000} s of its attempt`,
      );
  },
});
