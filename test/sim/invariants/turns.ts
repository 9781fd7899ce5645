import { isDeepStrictEqual } from 'node:util';
import { pods } from '../../../core/kube/resources.ts';
import { parseDuration } from '../../../core/resources/duration.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { Run } from '../cluster/agent.ts';
import { type Facts, ownerOf, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** A turn ends once, and its status does not change after that. */
export const endsOnce: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED' || !previous) return;
    const [was, is] = [previous as unknown as StoredTurn, object as unknown as StoredTurn];
    if (!isTerminal(was.status?.phase) || isDeepStrictEqual(was.status, is.status)) return;
    facts.fail('ends once', `turn ${is.metadata.name} was ${was.status?.phase} and changed to ${is.status?.phase}`);
  },
});

/** Turns of a session run one at a time, in the order of their indices, and no two have the same. */
export const inOrder: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type === 'DELETED') return;
    const turn = object as unknown as StoredTurn;
    const owner = ownerOf(turn);
    const { index, phase } = turn.status ?? {};
    if (!owner || index === undefined) return;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    if (was?.index === index && was.phase === phase) return;
    for (const other of facts.turnsOf(owner)) {
      if (other.metadata.uid === turn.metadata.uid) continue;
      const { name } = other.metadata;
      if (other.status?.index === index)
        facts.fail('in order', `turns ${turn.metadata.name} and ${name} both have index ${index}`);
      if (phase !== 'Running' || isTerminal(other.status?.phase)) continue;
      if (other.status?.phase === 'Running')
        facts.fail('in order', `turn ${turn.metadata.name} runs beside ${name} of the same session`);
      if ((other.status?.index ?? Number.MAX_SAFE_INTEGER) < index)
        facts.fail('in order', `turn ${turn.metadata.name} (${index}) runs before ${name} (${other.status?.index})`);
    }
  },
});

/** A session with `turns: One` runs no turn after another one that it gave an index has ended. */
export const oneTurn: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const owner = ownerOf(turn);
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    if (turn.status?.phase !== 'Running' || was?.phase === 'Running') return;
    if (!owner || facts.session(owner)?.spec.turns !== 'One') return;
    for (const { metadata, status } of facts.turnsOf(owner)) {
      if (metadata.uid === turn.metadata.uid || status?.index === undefined || !isTerminal(status.phase)) continue;
      facts.fail('one turn', `turn ${turn.metadata.name} runs after ${metadata.name} of a session with turns: One`);
    }
  },
});

/** The end that a turn shows is that of the agent's run in the pod that the turn names. */
export const isTrue: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    if (!isTerminal(turn.status?.phase) || isTerminal(was?.phase)) return;
    const problem = untruth(facts, turn);
    if (problem) facts.fail('is true', `turn ${turn.metadata.name} ended ${turn.status?.phase}, but ${problem}`);
  },
});

function untruth(facts: Facts, turn: StoredTurn): string | undefined {
  const { phase, podUID, attempt, output, outputRef, state, error } = turn.status ?? {};
  const all = facts.runs.get(turn.metadata.uid) ?? [];
  const run = all.filter((one) => one.podUID === podUID && one.attempt === attempt).at(-1);
  if (error?.code === 'PodLost' && podUID === undefined) return 'it was never given to a pod';
  if (error?.code === 'PodLost' && podUID !== undefined && facts.kubelets.isAlive(podUID)) {
    // The runner reports PodLost for a turn that it has stopped or does not begin any more.
    const isStopped = run ? run.end !== undefined : facts.kubelets.isTerminating(podUID);
    if (!isStopped) return `its pod ${podUID} lives`;
  }
  if (error?.code === 'Stalled' && run && isTalking(facts, turn, run)) return 'its agent talked all the time';
  if (phase !== 'Succeeded') {
    const reached = all.flatMap(({ asked, end }) => [...asked, ...(end ? [end.to] : [])]);
    if (state && !reached.includes(state.digest)) return 'its state is not that of a run of it';
    return undefined;
  }
  if (!run?.end) return `no agent has ended attempt ${attempt} in pod ${podUID}`;
  if (run.end.outcome !== 'Succeeded') return `its agent ended ${run.end.outcome}`;
  if (outputRef !== undefined) {
    const stored = facts.stored(turn.metadata.namespace, outputRef);
    if ('problem' in stored) return `its output ${outputRef} cannot be read: ${stored.problem}`;
    if (!isDeepStrictEqual(JSON.parse(stored.data.toString()), run.end.output)) return 'its output is another one';
  } else if (!isDeepStrictEqual(output, run.end.output)) return 'its output is another one';
  const to = state?.digest ?? run.from;
  if (to === run.end.to) return undefined;
  // A suspension has stored what the agent changed while it waited, and the run that went on from there has changed nothing more.
  const isOfSession = run.from === run.end.to && all.some(({ asked }) => asked.includes(to));
  return isOfSession ? undefined : 'its state is not that of its run';
}

/** Reports whether the run was never silent for as long as its session allows. A frozen pod is silent. */
function isTalking(facts: Facts, turn: StoredTurn, run: Run): boolean {
  const stall = facts.session(ownerOf(turn) ?? '')?.spec.timeouts?.stall;
  const { talksMs = Number.POSITIVE_INFINITY } = run.plan;
  const paused = (facts.kubelets.container(run.podUID)?.process.pausedUntil ?? 0) > run.startedAt;
  return stall !== undefined && !paused && talksMs < parseDuration(stall);
}

/** An agent is started at most once for each attempt and each decision, in the pod that the running turn names. */
export const startsOnce: MakeInvariant = (facts) => ({
  runStarted(run: Run) {
    const before = (facts.runs.get(run.turn) ?? []).filter(
      ({ attempt, decision }) => attempt === run.attempt && decision === run.decision,
    );
    // The turn's last version counts when it was deleted meanwhile.
    const turn = facts.turns.get(run.turn);
    const name = turn?.metadata.name ?? run.turn;
    if (before.length > 0)
      facts.fail('starts once', `turn ${name} is started in pod ${run.podUID}, as it was in ${before[0]?.podUID}`);
    const most = turn?.spec.retry?.maxAttempts ?? 1;
    if (run.attempt > most) facts.fail('starts once', `turn ${name} is started for attempt ${run.attempt} of ${most}`);
    const { phase, podUID, attempt } = turn?.status ?? {};
    // A runnerless turn is shown as Queued until its pod is known to have started.
    const isGiven = phase === 'Running' || (run.isRunnerless && phase === 'Queued');
    // A pod that is going may still begin a turn until it hears of that. Nothing waits for such a turn.
    const pod = facts.server.list(pods).find(({ metadata }) => metadata.uid === run.podUID);
    const goes = !pod || pod.metadata.deletionTimestamp !== undefined || !facts.session(run.sessionUID);
    // A runnerless pod cannot be held once its gate is removed. It is deleted right after the write that ends its turn.
    const runs = isGiven || goes || (run.isRunnerless && isTerminal(phase));
    if (runs && podUID === run.podUID && attempt === run.attempt) return;
    facts.fail('starts once', `turn ${name} is started in pod ${run.podUID} while it is ${phase} in ${podUID}`);
  },
});

/** A runner that has heard of a later leader obeys no earlier one. */
export const presentLeader: MakeInvariant = (facts) => ({
  obeyed(line, { podUID }) {
    facts.fail('present leader', `the runner in pod ${podUID} obeys "${line}" of an epoch that is over`);
  },
});
