import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { STOP_GRACE_MS } from '../../../runner/turn/turn.ts';
import type { Run } from '../cluster/agent.ts';
import type { ControllerCall } from '../observer.ts';
import { CLOCK_MS } from './clocks.ts';
import { type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Message of a turn that ends because its pod did not start in time. */
const NO_START = /did not take turns within timeouts\.start/;
/** Milliseconds by which a leg of a turn may be counted too long: a runner counts those that have begun. */
const BEGUN_MS = 1;

/** No timeout comes before its time, and no agent runs on after it. Time in which all machines sleep does not count. */
export const inTime: MakeInvariant = (facts) => {
  /** Turn and attempt → the first start of its agent, virtual milliseconds. */
  const startedAt = new Map<string, number>();
  /** Turns, and sessions with the pod that they name → when they came to be, virtual milliseconds. */
  const since = new Map<string, number>();
  /** Processes of controllers → their starts, virtual milliseconds. */
  const processes = new Map<string, number>();
  const keyOf = (turn: string, attempt: number | undefined) => `${turn} ${attempt}`;
  const came = (what: string) => {
    if (!since.has(what)) since.set(what, facts.kubelets.now);
  };
  /** Reports whether the controller began after this time: it knows nothing of a sleep before. */
  const cameAfter = ({ process }: ControllerCall, at: number) => (processes.get(process) ?? 0) > at;
  return {
    controllerStarted(process) {
      processes.set(process, facts.kubelets.now);
    },
    runStarted({ turn, attempt }) {
      const key = keyOf(turn, attempt);
      if (!startedAt.has(key)) startedAt.set(key, facts.kubelets.now);
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
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage === SESSIONS) {
        const { metadata, status } = object as unknown as StoredSession;
        if (status?.podName) came(`${metadata.uid} ${status.podName}`);
      } else if (storage === TURNS && type === 'ADDED') came(object.metadata.uid ?? '');
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { phase, error, attempt, podUID } = turn.status ?? {};
      if (!isTerminal(phase) || isTerminal(was?.phase)) return;
      const { name, uid } = turn.metadata;
      const { now } = facts.kubelets;
      const call = facts.callBehind(change);
      if (NO_START.test(error?.message ?? '') && call) {
        const owner = facts.session(ownerOf(turn) ?? '');
        const begun = since.get(`${owner?.metadata.uid} ${owner?.status?.podName}`) ?? 0;
        const may = parseDuration(turn.status?.granted?.start ?? owner?.spec.timeouts?.start ?? '0s');
        if (!cameAfter(call, begun) && now - begun + CLOCK_MS < may)
          facts.fail('in time', `turn ${name} ends as ${error?.code} after ${now - begun} of ${may} ms`);
      }
      if (error?.code !== 'TurnTimedOut') return;
      const allowed = timeoutOf(turn) ?? 0;
      const fail = (ran: number) => facts.fail('in time', `turn ${name} timed out after ${ran} of ${allowed} ms`);
      const run = facts.runs.get(uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
      // Only the kubelet tells of a runnerless pod, and only by a wall clock.
      if (run?.isRunnerless && call && cameAfter(call, run.startedAt)) return;
      // The runner enforces the timeout. Without its report, the time since the agent's start has to exceed it.
      const ran =
        run?.end?.code === 'TurnTimedOut'
          ? ranMs(facts, uid, attempt) + BEGUN_MS * (1 + run.asked.length)
          : now + CLOCK_MS - (startedAt.get(keyOf(uid, attempt)) ?? since.get(uid) ?? 0);
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
