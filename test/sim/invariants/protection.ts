import { type StoredSession, type StoredTurn, sessionclasses } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { ownerOf, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * No turn runs in a pod whose runner reports less protection than its class requires, and a turn ends for that reason only
 * where a runner of its session did.
 */
export const protectedFirst: MakeInvariant = (facts) => {
  /** Sessions one of whose runners has reported that it is not hardened. */
  const open = new Set<string>();
  const requires = ({ spec }: StoredSession) =>
    facts.server.get(sessionclasses, undefined, spec.class)?.spec.sandbox?.require?.includes('RunnerHardened');
  return {
    bound({ session }, { isHardened }) {
      if (!isHardened) open.add(session.uid);
    },
    runStarted({ turn, sessionUID, podUID, isRunnerless }, { isHardened }) {
      const session = facts.session(sessionUID);
      if (!session || isRunnerless || isHardened || !requires(session)) return;
      const { name } = facts.turns.get(turn)?.metadata ?? {};
      facts.fail('protected first', `turn ${name} runs in pod ${podUID}, which is not hardened as its class requires`);
    },
    committed({ storage, object, previous }) {
      if (storage !== TURNS) return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      if (turn.status?.error?.code !== 'RunnerNotHardened' || isTerminal(was?.phase)) return;
      if (!open.has(ownerOf(turn) ?? ''))
        facts.fail('protected first', `turn ${turn.metadata.name} ended, and all runners of its session are hardened`);
    },
  };
};
