import { isDeepStrictEqual } from 'node:util';
import { pods } from '../../../core/kube/resources.ts';
import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { BAD_ENDS, type Run, sendsResult } from '../cluster/agent.ts';
import { CLOCK_MS } from './clocks.ts';
import { type Facts, ownerOf, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Codes of a turn that was lost with its pod. */
const LOSSES: ReadonlySet<string> = new Set(['PodLost', 'OOMKilled', 'Evicted', 'DiskFull']);
/** Codes that only a run can cause. */
const OF_AGENTS: ReadonlySet<string> = new Set(['Stalled', ...Object.values(BAD_ENDS).map(({ code }) => code)]);
/** Codes of a turn whose pod was on no node when it was given up. */
const UNPLACED: ReadonlySet<string> = new Set(['StartFailed', 'Unschedulable', 'PodStuck']);
/** Codes of a turn whose parts could not be stored. */
const UNSTORED: ReadonlySet<string> = new Set(['StateNotStored', 'ArtifactsNotStored', 'StoreFull']);

/**
 * A turn shows the end of its run: success as success, failure as failure with its code. It shows another end only for
 * a reason that really existed.
 */
export const toldTruly: MakeInvariant = (facts) => {
  /** Process and pod → the time of the last live read, virtual milliseconds. */
  const read = new Map<string, number>();
  const keyOf = (process: string, namespace: string | undefined, name: string) => `${process} ${namespace}/${name}`;

  /** Reports whether a runnerless pod started after the last live read by the controller that gave it up. */
  const startedSince = ({ isRunnerless, podUID, startedAt }: Run, change: Change): boolean => {
    const pod = facts.server.list(pods).find(({ metadata }) => metadata.uid === podUID);
    const { process } = facts.callBehind(change) ?? {};
    if (!isRunnerless || !pod || !process) return false;
    const { namespace, name } = pod.metadata;
    return startedAt > (read.get(keyOf(process, namespace, name)) ?? Number.POSITIVE_INFINITY);
  };

  return {
    called({ verb, resource, process, namespace, name }) {
      if (verb === 'get' && resource === 'pods') read.set(keyOf(process, namespace, name), facts.kubelets.now);
    },
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      if (isTerminal(was?.phase)) return;
      const { phase, podUID, attempt, error } = turn.status ?? {};
      const runOf = (pod: string | undefined, number: number | undefined) =>
        facts.runs.get(turn.metadata.uid)?.findLast((run) => run.podUID === pod && run.attempt === number);
      const say = (run: Run, why: string) =>
        facts.fail(
          'told truly',
          `turn ${turn.metadata.name} is told as ${phase}/${error?.code ?? ''}, its run in pod ${run.podUID} ended ${run.end?.outcome}/${run.end?.code ?? ''}: ${why}`,
        );
      // A turn that is queued again is no pod's any more.
      if (phase === 'Queued' && was?.podUID !== undefined && podUID === undefined) {
        const run = runOf(was.podUID, was.attempt);
        if (run && isReadable(facts, run)) say(run, 'its result could be read');
      }
      if (!isTerminal(phase)) return;
      const run = runOf(podUID, attempt);
      const why = run && contradiction(facts, turn, run, was?.phase === 'AwaitingApproval');
      const isStart = UNPLACED.has(error?.code ?? '') && run !== undefined && startedSince(run, change);
      if (why && !isStart) say(run, why);
    },
  };
};

function contradiction(facts: Facts, turn: StoredTurn, run: Run, waited: boolean): string | undefined {
  const { phase, error, exitCode, metadata, turnCount } = turn.status ?? {};
  const code = error?.code;
  const { end } = run;
  if (end && end.outcome === phase && end.code === code) {
    const isKnown = !run.isRunnerless || exitCode !== undefined || !isEndedFromOutside(facts, run);
    if (end.exitCode !== exitCode && isKnown) return `it says exit code ${exitCode} instead of ${end.exitCode}`;
    if (!isDeepStrictEqual(end.metadata, metadata)) return 'it has other metadata';
    return end.turnCount === turnCount ? undefined : `it counts ${turnCount} turns instead of ${end.turnCount}`;
  }
  if (code === undefined) return 'it succeeded for no reason';
  if (LOSSES.has(code)) return isReadable(facts, run) ? 'its result could be read' : undefined;
  const session = facts.sessions.get(ownerOf(turn) ?? '');
  switch (code) {
    case 'Cancelled':
      return phase === 'Cancelled' && turn.spec.cancel ? undefined : 'nobody has cancelled it';
    case 'SessionReplaced':
    case 'SessionDeleted': {
      const isDeleted = !session || session.metadata.deletionTimestamp || !facts.session(session.metadata.uid);
      return isDeleted ? undefined : 'its session is there';
    }
    case 'LifetimeExceeded': {
      const { lifetime } = session?.spec.timeouts ?? {};
      const age = facts.server.clock.now() - Date.parse(session?.metadata.creationTimestamp ?? '');
      return lifetime && age + CLOCK_MS >= parseDuration(lifetime) ? undefined : 'its session may live on';
    }
    // The time is judged by `in time`.
    case 'TurnTimedOut':
      return phase === 'TimedOut' ? undefined : 'that is no failure of the agent';
    case 'ApprovalTimeout':
      return run.asked.length > 0 ? undefined : 'it has asked nothing';
    // The size is judged by `within maxState`.
    case 'StateTooLarge':
      return undefined;
    case 'ResultRejected':
      return run.plan.ends && BAD_ENDS[run.plan.ends].code === code ? undefined : 'it is not too large';
    case 'MissingEnvelope':
      if (run.isRunnerless && facts.kubelets.container(run.podUID)?.isHardToRead) return undefined;
      return 'its result could be read';
    default:
      // A rotated log may lack the state or the artifacts and still hold the result.
      if (['StateNotStored', 'ArtifactsNotStored'].includes(code) && facts.kubelets.container(run.podUID)?.isHardToRead)
        return undefined;
      if (UNSTORED.has(code)) return facts.couldNotStore(run.startedAt) ? undefined : 'the store took everything';
      // A turn that waits for a decision may have a session that cannot start again.
      if (waited && !OF_AGENTS.has(code)) return undefined;
      return end ? 'that is another end' : 'it has not ended';
  }
}

/** Reports whether the run's pod was deleted; the exit code of a runnerless program then says nothing. */
function isEndedFromOutside(facts: Facts, run: Run): boolean {
  const pod = facts.server.list(pods).find(({ metadata }) => metadata.uid === run.podUID);
  return !pod || pod.metadata.deletionTimestamp !== undefined;
}

/** Reports whether the result is in the log of a pod that was readable all the time. */
function isReadable(facts: Facts, run: Run): boolean {
  const container = facts.kubelets.container(run.podUID);
  if (!container || !sendsResult(run)) return false;
  return !container.isHardToRead && container.hasLogged(run) && facts.kubelets.isThere(run.podUID);
}
