import type { Observer } from '../observer.ts';
import { committedFirst } from './acknowledged.ts';
import { awaitedFiles, recordedFiles } from './agent-files.ts';
import { hasItsArtifacts } from './artifacts.ts';
import { keptWhileNamed } from './blobs.ts';
import { capacity } from './capacity.ts';
import { decidedInTime, toldOfRestoration, toldOnce } from './decisions.ts';
import { awaitedEnvironment, builtAlike, builtWhenNeeded, givenEnvironment } from './environments.ts';
import { ownEpochs } from './epochs.ts';
import type { Facts } from './facts.ts';
import { followed, toldOfItsOwn } from './followers.ts';
import { untouched } from './foreign.ts';
import { expired, history, keptAWhile } from './garbage.ts';
import { givenUpForSilence, givenUpForWork } from './given-up.ts';
import { granted } from './granted.ts';
import { groups } from './groups.ts';
import { inTime } from './in-time.ts';
import { boundOnce, ownedFirst } from './incarnations.ts';
import type { Limits, MakeInvariant } from './invariant.ts';
import { isolated } from './isolated.ts';
import { oneLeader } from './leaders.ts';
import { logKept } from './logs.ts';
import { oneOrder } from './one-order.ts';
import { oneStory, runsInTruth } from './one-story.ts';
import {
  boundFirst,
  claimedOnce,
  claimsCostNothing,
  keptForItsSession,
  madeAlike,
  namedOnce,
  onePoolKeeper,
} from './pools.ts';
import { preempted } from './preempted.ts';
import { protectedFirst } from './protection.ts';
import { inTurn } from './queue.ts';
import { consistent } from './settled.ts';
import { ownShare } from './shares.ts';
import { byUID, spared } from './spared.ts';
import { triedAgain } from './starts.ts';
import { forward, goesOn, labelled, ofOneMoment, withinMaxState } from './state.ts';
import { toldTruly } from './told.ts';
import { endsOnce, inOrder, isTrue, oneTurn, presentLeader, startsOnce } from './turns.ts';
import { understood } from './understood.ts';
import { ownUsage } from './usage.ts';
import { withCause } from './with-cause.ts';
import { genuine, wokenByTurns } from './woken.ts';

const all: readonly MakeInvariant[] = [
  capacity,
  inTurn,
  groups,
  granted,
  endsOnce,
  inOrder,
  oneTurn,
  isTrue,
  toldTruly,
  decidedInTime,
  inTime,
  logKept,
  hasItsArtifacts,
  ownUsage,
  ownShare,
  startsOnce,
  runsInTruth,
  oneStory,
  committedFirst,
  presentLeader,
  oneLeader,
  ownEpochs,
  ownedFirst,
  boundOnce,
  claimedOnce,
  keptForItsSession,
  boundFirst,
  claimsCostNothing,
  madeAlike,
  namedOnce,
  onePoolKeeper,
  recordedFiles,
  awaitedFiles,
  isolated,
  ofOneMoment,
  forward,
  labelled,
  goesOn,
  oneOrder,
  withinMaxState,
  keptWhileNamed,
  keptAWhile,
  history,
  expired,
  toldOnce,
  toldOfRestoration,
  wokenByTurns,
  genuine,
  byUID,
  spared,
  preempted,
  givenUpForWork,
  givenUpForSilence,
  triedAgain,
  untouched,
  givenEnvironment,
  builtWhenNeeded,
  builtAlike,
  awaitedEnvironment,
  understood,
  protectedFirst,
  toldOfItsOwn,
  followed,
  withCause,
  consistent,
];

/** Creates one observer that passes every event to all invariants, in their order. */
export function invariants(facts: Facts, limits: Limits): Observer & { settled(): void } {
  const made = all.map((make) => make(facts, limits));
  return {
    controllerStarted(process, protocol) {
      facts.controllerStarted(process, protocol);
      for (const one of made) one.controllerStarted?.(process, protocol);
    },
    suspensionFailed(session) {
      facts.suspensionFailed(session);
      for (const one of made) one.suspensionFailed?.(session);
    },
    sent(call) {
      facts.sent(call);
      for (const one of made) one.sent?.(call);
    },
    called(call) {
      facts.called(call);
      for (const one of made) one.called?.(call);
    },
    answered(call, error) {
      facts.answered(call, error);
      for (const one of made) one.answered?.(call, error);
    },
    committed(change) {
      facts.committedBy(change);
      for (const one of made) one.committed?.(change);
    },
    bound(bind, container) {
      facts.bound(bind.incarnation, container.podUID);
      for (const one of made) one.bound?.(bind, container);
    },
    attached(container, process) {
      for (const one of made) one.attached?.(container, process);
    },
    detached(container, process) {
      for (const one of made) one.detached?.(container, process);
    },
    heard(container, word) {
      for (const one of made) one.heard?.(container, word);
    },
    runStarted(run, container) {
      for (const one of made) one.runStarted?.(run, container);
      facts.started(run);
    },
    runEnded(run, container) {
      for (const one of made) one.runEnded?.(run, container);
    },
    acknowledged(frame, container) {
      for (const one of made) one.acknowledged?.(frame, container);
    },
    gaveUp(claim) {
      facts.gaveUp(claim);
      for (const one of made) one.gaveUp?.(claim);
    },
    obeyed(line, container) {
      for (const one of made) one.obeyed?.(line, container);
    },
    told(run, decided, container) {
      for (const one of made) one.told?.(run, decided, container);
    },
    talked(run) {
      for (const one of made) one.talked?.(run);
    },
    touched(session) {
      for (const one of made) one.touched?.(session);
    },
    clientsWorked(session, container) {
      for (const one of made) one.clientsWorked?.(session, container);
    },
    packed(content, container) {
      for (const one of made) one.packed?.(content, container);
    },
    followerTold(follower, session, placed) {
      for (const one of made) one.followerTold?.(follower, session, placed);
    },
    calmed() {
      for (const one of made) one.calmed?.();
    },
    settled() {
      for (const one of made) one.settled?.();
    },
  };
}
