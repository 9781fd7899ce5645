import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { STOP_GRACE_MS } from '../../../runner/turn.ts';
import type { Run } from '../cluster/agent.ts';
import { CLOCK_MS } from './clocks.ts';
import { type Facts, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Milliseconds by which a leg of a turn may be counted too long: a runner counts those that have begun. */
const BEGUN_MS = 1;

/** No timeout comes before its time, and no agent runs on after it. */
export const inTime: MakeInvariant = (facts) => {
  /** Turn and attempt → the first start of its agent, by the API server's clock. */
  const startedAt = new Map<string, number>();
  const keyOf = (turn: string, attempt: number | undefined) => `${turn} ${attempt}`;
  return {
    runStarted({ turn, attempt }) {
      const key = keyOf(turn, attempt);
      if (!startedAt.has(key)) startedAt.set(key, facts.server.clock.now());
    },
    runEnded(run, { process }) {
      // A runnerless pod has nothing that enforces the timeout.
      if (run.isRunnerless) return;
      const turn = facts.turns.get(run.turn);
      const allowed = turn && timeoutOf(turn);
      // A frozen pod does not see the time pass.
      if (allowed === undefined || process.pausedUntil > run.startedAt) return;
      const ran = ranMs(facts, run.turn, run.attempt);
      if (ran > allowed + STOP_GRACE_MS + BEGUN_MS)
        facts.fail('in time', `turn ${turn?.metadata.name} ran ${ran} ms of the ${allowed} ms that it may`);
    },
    committed({ storage, type, object, previous }) {
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { phase, error, attempt, podUID } = turn.status ?? {};
      if (!isTerminal(phase) || isTerminal(was?.phase)) return;
      const { name, uid } = turn.metadata;
      const now = facts.server.clock.now();
      if (error?.code !== 'TurnTimedOut') return;
      const allowed = timeoutOf(turn) ?? 0;
      const fail = (ran: number) => facts.fail('in time', `turn ${name} timed out after ${ran} of ${allowed} ms`);
      const run = facts.runs.get(uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
      // The runner enforces the timeout. Without its report, the time since the agent's start has to exceed it.
      const ran =
        run?.end?.code === 'TurnTimedOut'
          ? ranMs(facts, uid, attempt) + BEGUN_MS * (1 + run.asked.length)
          : now + CLOCK_MS - (startedAt.get(keyOf(uid, attempt)) ?? Date.parse(turn.metadata.creationTimestamp));
      if (ran < allowed) fail(ran);
    },
  };
};

/** Returns the milliseconds on the turn's clock, over all its legs. */
function ranMs(facts: Facts, turn: string, attempt: number | undefined): number {
  const legs = facts.runs.get(turn)?.filter((run: Run) => run.attempt === attempt) ?? [];
  return legs.reduce((sum, leg) => sum + leg.ranMs, 0);
}

/** Returns the timeout that the turn was granted, milliseconds. */
const timeoutOf = ({ status }: StoredTurn): number | undefined =>
  status?.granted?.timeout === undefined ? undefined : parseDuration(status.granted.timeout);
