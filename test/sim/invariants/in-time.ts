import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn.ts';
import { STOP_GRACE_MS } from '../../../runner/turn.ts';
import type { Run } from '../cluster/agent.ts';
import { CLOCK_MS } from './clocks.ts';
import { type Facts, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Milliseconds that a leg of a turn may count too many: a runner counts those that have begun. */
const BEGUN_MS = 1;

/** No timeout comes before its time, and no agent runs on after it. */
export const inTime: MakeInvariant = (facts) => {
  /** By turn and attempt: the API server's clock when its agent was started first. */
  const startedAt = new Map<string, number>();
  const keyOf = (turn: string, attempt: number | undefined) => `${turn} ${attempt}`;
  return {
    runStarted({ turn, attempt }) {
      const key = keyOf(turn, attempt);
      if (!startedAt.has(key)) startedAt.set(key, facts.server.clock.now());
    },
    runEnded(run, { process }) {
      // Nobody in the pod keeps the time.
      if (run.isRunnerless) return;
      const turn = facts.turns.get(run.turn);
      const allowed = turn && timeoutOf(turn);
      // One that is frozen does not see the time pass.
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
      // The runner keeps the time; where it does not say so, its pod was past it.
      const ran =
        run?.end?.code === 'TurnTimedOut'
          ? ranMs(facts, uid, attempt) + BEGUN_MS * (1 + run.asked.length)
          : now + CLOCK_MS - (startedAt.get(keyOf(uid, attempt)) ?? Date.parse(turn.metadata.creationTimestamp));
      if (ran < allowed) fail(ran);
    },
  };
};

/** By the clock of the turn, over all its legs. */
function ranMs(facts: Facts, turn: string, attempt: number | undefined): number {
  const legs = facts.runs.get(turn)?.filter((run: Run) => run.attempt === attempt) ?? [];
  return legs.reduce((sum, leg) => sum + leg.ranMs, 0);
}

/** Milliseconds that the turn was granted. */
const timeoutOf = ({ status }: StoredTurn): number | undefined =>
  status?.granted?.timeout === undefined ? undefined : parseDuration(status.granted.timeout);
