import type { Reason } from '../../core/resources/reasons.ts';
import { reasons } from '../../core/resources/reasons.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { SessionPhase, SessionStatus } from '../../core/resources/session.ts';
import { type ConditionValue, withCondition } from './conditions.ts';
import type { Draft } from './draft.ts';
import { wake } from './draft.ts';
import { isProblem } from './effective.ts';
import { isFinished, suspendRequest, wantsSuspension } from './hold.ts';

/** A turn shows in the session once it has run this long; shorter ones cost no write of their own. */
export const SHOW_TURN_MS = 1000;

/** The session's status after this pass, from what was observed and found out. */
export function sessionStatus(draft: Draft): SessionStatus {
  const { world } = draft;
  const { session, pod, now } = world;
  const before = session.status ?? {};
  const next: SessionStatus = { ...before, ...counted(draft), observedGeneration: session.metadata.generation ?? 0 };

  if (draft.released) {
    delete next.podName;
    delete next.podUID;
    delete next.classGeneration;
  } else if (pod) {
    next.podUID = pod.metadata.uid;
  }
  if (world.link?.runnerVersion && next.podName) next.runnerVersion = world.link.runnerVersion;

  const shown = shownTurn(draft);
  if (shown) next.currentTurn = shown;
  else delete next.currentTurn;

  const committed = committedState(draft);
  if (committed) next.state = committed;

  const lastActiveAt = lastActivity(draft);
  if (lastActiveAt) next.lastActiveAt = lastActiveAt;

  if (suspendRequest(draft) === 'Unseen' && draft.turns.live.every((turn) => turn.status.index !== undefined)) {
    next.suspendHandled = { id: session.spec.suspendRequest as string, afterTurn: draft.turns.lastIndex };
  }

  if (draft.waiting) {
    const reason = typeof world.place === 'object' ? world.place.waiting : 'AtCapacity';
    next.queue = before.queue ?? { since: new Date(now).toISOString(), reason };
  } else {
    delete next.queue;
  }

  const phase = phaseOf(draft, next);
  next.phase = phase;
  next.conditions = conditionsOf(draft, next, phase);
  return next;
}

/** Counts ended turns up to the first gap that may still fill: lastTurn.index says which ones are in. */
function counted(draft: Draft): Partial<SessionStatus> {
  const { session } = draft.world;
  const takesOne = session.spec.turns === 'One';
  const totals = { total: 0, succeeded: 0, failed: 0, ...session.status?.turns };
  let last = session.status?.lastTurn;
  const firstLive = Math.min(...draft.turns.live.map((turn) => turn.status.index ?? Number.MAX_SAFE_INTEGER));
  for (const turn of draft.turns.uncounted) {
    const index = turn.status.index ?? 0;
    if (index > firstLive || (takesOne && last)) break;
    totals.total++;
    if (turn.status.phase === 'Succeeded') totals.succeeded++;
    if (turn.status.phase === 'Failed' || turn.status.phase === 'TimedOut') totals.failed++;
    last = {
      name: turn.metadata.name,
      index,
      phase: turn.status.phase ?? 'Failed',
      ...(turn.status.output === undefined ? {} : { output: turn.status.output }),
    };
  }
  return { turns: totals, ...(last ? { lastTurn: last } : {}) };
}

/** The highest state by (incarnation, seq) among the status, the turns that ended since, and a verified suspension. */
function committedState(draft: Draft): StateRef | undefined {
  const verified = draft.world.memory.suspension?.verified;
  return highest([stateOfTurns(draft), verified === 'Unchanged' ? undefined : verified]);
}

/** The highest state that ended turns and the status know of. */
function stateOfTurns(draft: Draft): StateRef | undefined {
  return highest([draft.world.session.status?.state, ...draft.turns.uncounted.map((turn) => turn.status.state)]);
}

/** Whether the status has the last committed state: before any bind and any end of a pod it must. */
export function stateIsWritten(draft: Draft): boolean {
  const last = stateOfTurns(draft);
  const written = draft.world.session.status?.state;
  return last?.incarnation === written?.incarnation && last?.seq === written?.seq;
}

function highest(states: (StateRef | undefined)[]): StateRef | undefined {
  const candidates = states.filter((state) => state !== undefined);
  return candidates.reduce<StateRef | undefined>(
    (top, state) =>
      !top || state.incarnation > top.incarnation || (state.incarnation === top.incarnation && state.seq > top.seq)
        ? state
        : top,
    undefined,
  );
}

function shownTurn(draft: Draft): string | undefined {
  const turn = draft.turns.running;
  const { link, now, session } = draft.world;
  if (!turn) return undefined;
  if (session.status?.currentTurn === turn.metadata.name) return turn.metadata.name;
  if (link?.started?.turn !== turn.metadata.uid) return undefined;
  const at = Date.parse(link.started.at) + SHOW_TURN_MS;
  if (now >= at) return turn.metadata.name;
  wake(draft, at);
  return undefined;
}

/** Moves when a turn is created, starts or finishes; by nothing else, and never back. */
function lastActivity(draft: Draft): string | undefined {
  const moments = [draft.world.session.status?.lastActiveAt ?? draft.world.session.metadata.creationTimestamp];
  for (const turn of [...draft.turns.live, ...draft.turns.uncounted]) {
    moments.push(turn.metadata.creationTimestamp);
    if (turn.status.startedAt) moments.push(turn.status.startedAt);
    if (turn.status.finishedAt) moments.push(turn.status.finishedAt);
  }
  return new Date(Math.max(...moments.map((moment) => Date.parse(moment)))).toISOString();
}

function isReady(draft: Draft): boolean {
  const { link, session, pod } = draft.world;
  if (!pod || draft.released || pod.metadata.deletionTimestamp) return false;
  if (link?.phase === 'Bound') return true;
  // A link that is opened again to a pod that was ready does not make it unready.
  const wasReady = session.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');
  return Boolean(wasReady && session.status?.podUID === pod.metadata.uid && link?.phase !== 'Foreign');
}

function phaseOf(draft: Draft, next: SessionStatus): SessionPhase {
  const { session, pod } = draft.world;
  if (session.metadata.deletionTimestamp) return 'Terminating';
  if (isFinished(draft)) return 'Finished';
  if (next.podName) {
    if (draft.suspending || (wantsSuspension(draft) && pod?.metadata.deletionTimestamp)) return 'Suspending';
    if (next.currentTurn) return 'Running';
    return isReady(draft) ? 'Ready' : 'Starting';
  }
  if (session.spec.suspend) return 'Suspended';
  if (draft.waiting || (next.incarnation ?? 0) === 0) return 'Queued';
  return 'Suspended';
}

function conditionsOf(draft: Draft, next: SessionStatus, phase: SessionPhase): SessionStatus['conditions'] {
  const { session, now, memory } = draft.world;
  const generation = session.metadata.generation;
  const say = (
    status: ConditionValue['status'],
    reason: Reason,
    message: string = reasons[reason],
  ): ConditionValue => ({
    status,
    reason,
    message,
  });
  let list = session.status?.conditions;
  const set = (type: Parameters<typeof withCondition>[1], value: ConditionValue) => {
    list = withCondition(list, type, value, now, generation);
  };

  const { problem } = draft;
  set('Admitted', admitted());
  set('Ready', ready());
  const stored = say(
    'True',
    'StateStored',
    next.state ? `Incarnation ${next.state.incarnation}, ${next.state.bytes} bytes.` : '',
  );
  if (memory.commitProblem)
    set('StatePersisted', say('False', memory.commitProblem.reason, memory.commitProblem.message));
  else set('StatePersisted', next.state ? stored : say('Unknown', 'NoState'));
  const suspended = !next.podName && phase === 'Suspended';
  set('Suspended', suspended ? say('True', session.spec.suspend ? 'Held' : 'Suspended') : say('False', ready().reason));
  if (session.spec.turns === 'One') {
    if (phase !== 'Finished') set('Finished', say('False', ready().reason));
    else if (next.lastTurn?.phase === 'Succeeded') set('Finished', say('True', 'RunSucceeded'));
    else set('Finished', say('True', 'RunFailed', `The turn ended ${next.lastTurn?.phase}.`));
  }
  return list;

  function admitted(): ConditionValue {
    if (next.podName) return say('True', 'Admitted');
    if (isProblem(draft.settings)) return say('False', draft.settings.reason, draft.settings.message);
    if (draft.waiting) return say('False', 'AtCapacity', problem?.message);
    if (session.spec.suspend) return say('False', 'Held');
    return say('False', 'NotNeeded');
  }

  function ready(): ConditionValue {
    if (phase === 'Terminating') return say('False', 'Terminating');
    if (phase === 'Finished') {
      const succeeded = next.lastTurn?.phase === 'Succeeded';
      return say('False', succeeded ? 'RunSucceeded' : 'RunFailed');
    }
    if (phase === 'Suspending') return say('False', 'Suspending');
    if (isReady(draft))
      return next.currentTurn ? say('True', 'Running', `Turn ${next.currentTurn} runs.`) : say('True', 'Ready');
    if (problem) return say('False', problem.reason, problem.message);
    // Why the last start failed stays to be read until the next one, which begins with owning an incarnation.
    const last = session.status?.conditions?.find((condition) => condition.type === 'Ready');
    if (last?.reason === 'StartFailed' || last?.reason === 'PodForbidden') {
      return say('False', last.reason, last.message);
    }
    if (next.podName) return say('False', 'Starting');
    return say('False', session.spec.suspend ? 'Held' : 'Suspended');
  }
}
