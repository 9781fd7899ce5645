import type { StoredPod } from '../../core/kube/builtin.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { highestState } from './highest-state.ts';
import { isOwn, ownTurns } from './own-turns.ts';
import type {
  CachedSession,
  CachedTurn,
  Failing,
  IncarnationMemory,
  PendingDeletion,
  Problem,
  SessionMemory,
} from './world.ts';

/** Fact about one session that an observation, a decision or an effect has brought to light. */
export type Fact = SessionFact | IncarnationFact;

type SessionFact =
  /** `turns`: those in the caches, where one of `broken` is unreadable. */
  | { fact: 'Observed'; session: CachedSession; turns: readonly CachedTurn[]; pod: StoredPod | undefined }
  /** `at`: milliseconds since the epoch. */
  | { fact: 'SettingsChecked'; canStart: boolean; at: number }
  | { fact: 'TurnsRead' }
  /** A turn may have got an index that the caches do not show. */
  | { fact: 'TurnsUncertain' }
  | { fact: 'Conflicted' }
  | { fact: 'StatusWritten' }
  | { fact: 'QueueWritten'; at: number }
  /** `history`: bytes of outputs and artifacts that a turn had stored, or was refused. */
  | { fact: 'DeliveryStored'; history: number }
  /** `at`: milliseconds since the epoch. */
  | { fact: 'RoomMade'; at: number }
  /** `at`: monotonic milliseconds. */
  | { fact: 'TurnsCounted'; at: number }
  | { fact: 'ApprovalsRead'; request: string }
  /** `at`: milliseconds since the epoch. */
  | { fact: 'FilesRead'; at: number }
  /** `build`: uid of the session whose state the archive was. */
  | { fact: 'EnvironmentLost'; build: string }
  | { fact: 'Succeeded' }
  | { fact: 'Failed'; failing: Failing | undefined }
  | { fact: 'TurnBroken'; turn: string; why: string }
  | { fact: 'FirstTurnTried'; problem?: Problem }
  | { fact: 'InputKnown'; turn: string; input: unknown }
  /** `at`: monotonic milliseconds. */
  | { fact: 'InputSent'; turn: string; at: number }
  /** `ended`: the turn, where it has. */
  | { fact: 'TurnCommitted'; state: StateRef | undefined; ended?: CachedTurn }
  /** `since`: the decision to own it, monotonic milliseconds. */
  | { fact: 'IncarnationOwned'; since: number }
  | { fact: 'LinkClosed' };

/** Fact about the present incarnation alone. */
type IncarnationFact =
  | { fact: 'ContentsLost'; podUID: string; problem: Problem }
  /** `problem` undefined: nothing keeps the pod from starting any more. */
  | { fact: 'StartProblem'; problem: Problem | undefined }
  /** `since`: milliseconds since the epoch, for the first failure. */
  | { fact: 'CreationFailed'; problem: Problem; since: number }
  | { fact: 'PodCreated' }
  /** `why`: a clause that follows "Pod p-… ". */
  | { fact: 'ClaimLost'; podUID: string; why: string }
  /** `pod`: as last seen. */
  | { fact: 'PodGone'; pod: StoredPod }
  | { fact: 'GoneConfirmed'; podUID: string }
  | { fact: 'PodBound'; podUID: string }
  | { fact: 'PodRead'; podUID: string }
  | { fact: 'LogRead'; podUID: string }
  /** `at`: monotonic milliseconds. */
  | { fact: 'LogUnreadable'; podUID: string; at: number }
  | { fact: 'LogAnswered' }
  | ({ fact: 'DeletionAsked' } & PendingDeletion)
  | { fact: 'UsageUnwritten'; of: number }
  | { fact: 'CommitFailed'; problem: Problem; since: number }
  | { fact: 'StoringOver' }
  | { fact: 'RunLet'; podUID: string }
  | { fact: 'InputGiven'; podUID: string }
  /** `at`: milliseconds since the epoch. */
  | { fact: 'SuspensionAsked'; podUID: string; at: number }
  | { fact: 'SuspensionUndone' }
  | { fact: 'SuspensionVerified'; podUID: string; verified: StateRef | 'Unchanged' }
  /** `at`: milliseconds since the epoch. */
  | { fact: 'SuspensionFailed'; problem: Problem; generation: number | undefined; at: number }
  /** The next suspension has nothing to do with those that failed. */
  | { fact: 'SuspensionFailuresOver' };

/** Pauses between two attempts to suspend a session whose state cannot be read or stored. */
const FIRST_AGAIN_MS = 5_000;
const LAST_AGAIN_MS = 10 * 60_000;

/** The memory of a session that this leader has not reconciled yet. */
export function emptyMemory(knowsTurns = false): SessionMemory {
  return { knowsTurns, uncounted: [], inputs: new Map(), conflicts: 0, broken: new Map(), incarnation: {} };
}

/** Takes a fact into the memory. Nothing else assigns it. */
export function learn(memory: SessionMemory, fact: Fact): void {
  Object.assign(memory, changes(memory, fact));
}

/** Fields of the memory that a fact gives another value; pure. */
export function changes(memory: SessionMemory, fact: Fact): Partial<SessionMemory> {
  switch (fact.fact) {
    case 'Observed':
      return observed(memory, fact);
    case 'SettingsChecked':
      return { cannotStartSince: fact.canStart ? undefined : (memory.cannotStartSince ?? fact.at) };
    case 'TurnsRead':
      return { knowsTurns: true };
    case 'TurnsUncertain':
      return { knowsTurns: false };
    case 'Conflicted':
      return { conflicts: memory.conflicts + 1 };
    case 'StatusWritten':
      return { conflicts: 0 };
    case 'QueueWritten':
      return { queueWrittenAt: fact.at };
    case 'DeliveryStored':
      return { historyStored: fact.history };
    case 'RoomMade':
      return { roomMadeAt: fact.at };
    case 'TurnsCounted':
      return { countedAt: fact.at };
    case 'ApprovalsRead':
      return { approvalsReadFor: fact.request };
    case 'FilesRead':
      return { filesReadAt: fact.at };
    case 'EnvironmentLost':
      return { lostEnvironment: fact.build };
    case 'Succeeded':
      return { failing: undefined };
    case 'Failed':
      return { failing: fact.failing };
    case 'TurnBroken':
      return { broken: new Map(memory.broken).set(fact.turn, fact.why) };
    case 'FirstTurnTried':
      return { firstTurnTried: true, firstTurnProblem: fact.problem };
    case 'InputKnown':
      return { inputs: new Map(memory.inputs).set(fact.turn, fact.input) };
    case 'InputSent':
      return { inputs: new Map([...memory.inputs].filter(([turn]) => turn !== fact.turn)), gaveAt: fact.at };
    case 'TurnCommitted':
      return committed(memory, fact);
    case 'IncarnationOwned':
      return { incarnation: { ownedSince: fact.since } };
    case 'LinkClosed':
      return {
        inputs: new Map(),
        incarnation: { ...memory.incarnation, suspension: undefined, commitProblem: undefined },
      };
    default:
      return { incarnation: { ...memory.incarnation, ...ofIncarnation(memory.incarnation, fact) } };
  }
}

/** Fields of an incarnation's memory that a fact gives another value; pure. */
function ofIncarnation(memory: IncarnationMemory, fact: IncarnationFact): IncarnationMemory {
  switch (fact.fact) {
    case 'StartProblem':
      return { startProblem: fact.problem };
    case 'CreationFailed':
      return { startProblem: fact.problem, createFailingSince: memory.createFailingSince ?? fact.since };
    case 'ContentsLost':
      return { contentsLost: { podUID: fact.podUID, problem: fact.problem } };
    case 'PodCreated':
      return { startProblem: undefined, createFailingSince: undefined };
    case 'GoneConfirmed':
      return { confirmedGone: { podUID: fact.podUID } };
    case 'PodGone':
      return memory.lastPod?.metadata.uid === fact.pod.metadata.uid ? { lastPod: fact.pod } : {};
    case 'ClaimLost':
      return { claimLost: { podUID: fact.podUID, why: fact.why } };
    case 'PodBound':
      return { bound: { podUID: fact.podUID } };
    case 'PodRead':
      return { podRead: { podUID: fact.podUID } };
    case 'LogRead':
      return { logRead: { podUID: fact.podUID } };
    case 'LogUnreadable':
      return memory.logFailing?.podUID === fact.podUID ? {} : { logFailing: { podUID: fact.podUID, since: fact.at } };
    case 'LogAnswered':
      return { logFailing: undefined };
    case 'DeletionAsked': {
      const { fact: _, ...asked } = fact;
      return { deletionPending: asked };
    }
    case 'UsageUnwritten':
      return { usageUnwritten: fact.of };
    case 'CommitFailed':
      return { commitProblem: { ...fact.problem, since: fact.since } };
    case 'StoringOver':
      return { commitProblem: undefined };
    case 'RunLet':
      return { letRun: { podUID: fact.podUID } };
    case 'InputGiven':
      return { inputGiven: { podUID: fact.podUID } };
    case 'SuspensionAsked':
      return { suspension: { podUID: fact.podUID, askedAt: fact.at } };
    case 'SuspensionUndone':
      return { suspension: undefined };
    case 'SuspensionVerified':
      return memory.suspension?.podUID === fact.podUID
        ? { suspension: { ...memory.suspension, verified: fact.verified }, suspensionFailed: undefined }
        : {};
    case 'SuspensionFailed': {
      const count = (memory.suspensionFailed?.count ?? 0) + 1;
      const againAt = fact.at + Math.min(FIRST_AGAIN_MS * 2 ** (count - 1), LAST_AGAIN_MS);
      return { suspensionFailed: { problem: fact.problem, count, generation: fact.generation, againAt } };
    }
    case 'SuspensionFailuresOver':
      return { suspensionFailed: undefined };
  }
}

/**
 * Keeps turns that were deleted after their end, before their session counted them: their index and state still count. Of
 * turns that were deleted before, their creation counts as activity.
 */
function observed(
  { uncounted, turnCreatedAt: createdAt = 0, committed: remembered, broken, incarnation }: SessionMemory,
  { session, turns, pod }: Fact & { fact: 'Observed' },
): Partial<SessionMemory> {
  const known = withDeleted(turns, ownTurns(session, uncounted).uncounted);
  const written = session.status?.state;
  const own = turns.filter((turn) => isOwn(session, turn));
  const last = highestState([written, remembered, ...own.map(({ status }) => status.state)]);
  const live = new Set(turns.filter(({ status }) => !isTerminal(status?.phase)).map(({ metadata }) => metadata.uid));
  return {
    uncounted: ownTurns(session, known).uncounted,
    turnCreatedAt: Math.max(createdAt, ...own.map(({ metadata }) => Date.parse(metadata.creationTimestamp))),
    committed: last === written ? undefined : last,
    broken: new Map([...broken].filter(([uid]) => live.has(uid))),
    incarnation: { ...incarnation, lastPod: pod ?? incarnation.lastPod },
  };
}

/** The turns that are there, and those of `uncounted` that are not any more. */
export function withDeleted(present: readonly CachedTurn[], uncounted: readonly CachedTurn[]): CachedTurn[] {
  const uids = new Set(present.map(({ metadata }) => metadata.uid));
  return [...present, ...uncounted.filter(({ metadata }) => !uids.has(metadata.uid))];
}

/** A committed turn counts, also where its object is deleted before the next observation. */
function committed(memory: SessionMemory, { state, ended }: Fact & { fact: 'TurnCommitted' }): Partial<SessionMemory> {
  const highest = { committed: highestState([memory.committed, state]) };
  if (!ended) return highest;
  const others = memory.uncounted.filter(({ metadata }) => metadata.uid !== ended.metadata.uid);
  return { ...highest, uncounted: [...others, ended] };
}
