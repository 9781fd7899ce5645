import { defined } from '../../core/defined.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { CachedTurn, World } from '../observed/world.ts';
import { missingFiles } from '../settings/agent-files.ts';
import { effective, isProblem } from '../settings/effective.ts';
import { environmentOf } from '../settings/environment.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import type { Action } from './actions.ts';
import { turnsToCount } from './counted-turns.ts';
import type { Admission, Draft, Policy } from './draft.ts';
import { groupPart } from './group.ts';
import { adoptApprovals, cancelWaiting, consume, question, unanswered } from './policies/approval.ts';
import { claim, unbound } from './policies/claim.ts';
import { deadNode } from './policies/dead-node.ts';
import { deletionPending, leave } from './policies/deletion.ts';
import { expire } from './policies/expiry.ts';
import { lifetime } from './policies/lifetime.ts';
import { gone, lostContents, otherPods, over, silent } from './policies/pod.ts';
import { awaitReport, unprotected } from './policies/protection.ts';
import { read, run, stop, unwantedPod } from './policies/runnerless.ts';
import { cancel, collect, overdue, unwanted } from './policies/running.ts';
import { admit, bind, connect, create, dispatch, restore } from './policies/start.ts';
import { slowStart } from './policies/starting.ts';
import { finish, suspend } from './policies/suspension.ts';
import { adopt, broken, firstTurn, order, replaced } from './policies/turns.ts';
import { showStart, showUsage } from './policies/usage.ts';
import { sessionStatus } from './session-status.ts';
import { showWait } from './turn-wait.ts';

export interface Decision {
  actions: Action[];
  /** Status of the session after the actions. */
  status: SessionStatus;
  /** The status admits the session: its slot is reserved in the step of the decision. */
  admission?: Admission;
  /** Turns that the status counts and the written one does not. */
  counted: readonly CachedTurn[];
  /** The session wants a slot and has none. */
  waiting: boolean;
  /** True if the session could start with its settings. */
  canStart: boolean;
  /** Demand of the next turn on its concurrency group. */
  group: ReturnType<typeof groupPart>;
  /** Milliseconds since the epoch; Infinity where no time brings a change. */
  wakeAt: number;
  /** Name of the policy that answered 'Stop'. */
  stoppedBy?: string;
}

/** A policy and its sessions. */
interface Entry {
  policy: Policy;
  /** Kind of session. Default: sessions with a runner and runnerless ones. */
  only?: 'WithRunner' | 'Runnerless';
  /** Default: the policy is skipped under a deletionTimestamp of the session, where nothing new is started. */
  deletion?: 'Applies' | 'Only';
}

/** Policies are applied from top to bottom; the first that answers 'Stop' ends the list for this reconcile. */
const policies: readonly Entry[] = [
  { policy: broken }, // a turn that reconciles fail at ends before anything else can fail at it
  { policy: adopt }, // a turn belongs to the session before anything is decided about it
  { policy: replaced }, // turns of a former session end before they are taken for waiting ones
  { policy: firstTurn }, // spec.input becomes a turn before anything of the session is written
  { policy: otherPods, deletion: 'Applies' }, // pods of earlier incarnations are deleted, also beside a present one that ends
  { policy: collect, only: 'WithRunner', deletion: 'Applies' }, // a delivered result is committed even if its pod is lost
  { policy: question, only: 'WithRunner' }, // a delivered request for an approval is committed too
  { policy: adoptApprovals }, // an approval is garbage-collected with its turn only if the turn owns it
  { policy: claim, only: 'WithRunner' }, // a pod that is not claimed yet is nobody's to lose
  { policy: unbound, only: 'WithRunner' }, // a claimed pod that does not take the session costs it no attempt
  { policy: deadNode, deletion: 'Applies' }, // a pod on a dead node is given up; its end would never come
  { policy: gone, deletion: 'Applies' }, // a pod that is gone has lost its turn; nothing below applies to it
  { policy: over, only: 'WithRunner', deletion: 'Applies' }, // an ended container takes no turn; its log may have the rest
  { policy: read, only: 'Runnerless', deletion: 'Applies' }, // an ended program has its result in its log
  { policy: order }, // turns have their index before one of them is started or ended
  { policy: deletionPending, deletion: 'Applies' }, // a pod that is to be deleted is given no turn
  { policy: cancelWaiting }, // a cancelled turn ends before a pod is started for it
  { policy: unanswered }, // a turn whose approval did not come in time ends before a pod is started for it too
  { policy: cancel, only: 'WithRunner' }, // a runner gets a cancellation before it is given anything new
  { policy: stop, only: 'Runnerless' }, // a runnerless pod takes no messages, so its deletion ends its turn
  { policy: lifetime, only: 'WithRunner' }, // the end of maxLifetime ends turns, so it comes before their start
  { policy: overdue, only: 'WithRunner' }, // a turn that does not end when it is stopped costs its pod
  { policy: unwanted, only: 'WithRunner' }, // a pod with nothing left to do is deleted; nobody waits for it
  { policy: unwantedPod, only: 'Runnerless' }, // a runnerless pod serves one turn
  { policy: lostContents, only: 'WithRunner' }, // a runner that cannot get its files is given up at once
  { policy: unprotected, only: 'WithRunner' }, // a pod that its class does not accept gets no messages
  { policy: silent, only: 'WithRunner' }, // a runner that does not answer cannot be asked to suspend
  { policy: slowStart }, // a pod that does not start fails what waits for it
  { policy: connect, only: 'WithRunner', deletion: 'Applies' }, // a runner can deliver and be asked only over its link, under deletion too
  { policy: restore, only: 'WithRunner' }, // a state that was cut off is sent again before a turn
  { policy: expire }, // an expired session is neither suspended nor started
  { policy: finish }, // a finished session gives up its pod at once
  { policy: suspend, only: 'WithRunner' }, // a session that gives up its pod starts no turn in it
  { policy: admit }, // a slot and an incarnation come before the pod
  { policy: create }, // the pod comes before its binding
  { policy: bind, only: 'WithRunner' }, // the binding comes before the first turn
  { policy: awaitReport, only: 'WithRunner' }, // a pod is given no turn before its class accepts it
  { policy: consume, only: 'WithRunner' }, // a decision is written before the runner gets it
  { policy: dispatch }, // a turn is written Running before it is given to the runner
  { policy: run, only: 'Runnerless' }, // a runnerless pod is let run once its turn is written Running
  { policy: showUsage, only: 'WithRunner' }, // figures are shown only where nothing above writes the turn
  { policy: showStart, only: 'Runnerless' }, // the start of a runnerless turn is shown only then too
  { policy: leave, deletion: 'Only' }, // the pod of a deleted session goes last, when its turn has ended or been lost
];

/** Decides what to do for one session, from the observed world; pure. */
export function decide(world: World): Decision {
  const settings = settingsOf(world);
  const draft: Draft = {
    world,
    turns: ownTurns(world.session, world.turns),
    settings,
    actions: [],
    waiting: false,
    released: false,
    suspending: false,
    startFailed: undefined,
    indices: new Map(),
    problems: isProblem(settings) && !world.session.status?.podName ? { Settings: settings } : {},
    wakeAt: Number.POSITIVE_INFINITY,
  };
  const isDeleted = world.session.metadata.deletionTimestamp !== undefined;
  let stoppedBy: string | undefined;
  for (const policy of policiesFor({ isRunnerless: isRunnerless(draft), isDeleted })) {
    if (policy(draft) !== 'Stop') continue;
    stoppedBy = policy.name;
    break;
  }
  const { waiting, admission } = draft;
  const status = sessionStatus(draft);
  if (!isDeleted) showWait(draft, status);
  return {
    actions: isDeleted ? draft.actions : draft.actions.filter((action) => !isUnwritten(action, world, status)),
    status,
    counted: turnsToCount(draft),
    waiting,
    canStart: !isProblem(settings),
    group: groupPart(draft),
    wakeAt: draft.wakeAt,
    ...defined({ admission, stoppedBy }),
  };
}

/**
 * Reports whether the action deletes a pod whose uid is only about to be written: the next leader would take it for one
 * that was never made, and make it again. The event of that write has the session reconciled again.
 */
function isUnwritten(action: Action, { session }: World, { podUID }: SessionStatus): boolean {
  if (action.do !== 'DeletePod' || action.pod.metadata.uid !== podUID) return false;
  return session.status?.podUID !== podUID;
}

/** The session's settings. Without a pod, files of its agent that are missing are a problem like any other with them. */
function settingsOf(world: World) {
  const { session, class: sessionClass, installation, namespaceLabels, agentFiles } = world;
  const settings = effective(session, sessionClass, installation, namespaceLabels);
  if (isProblem(settings) || session.status?.podName) return settings;
  const found = environmentOf(world, settings.runner);
  return missingFiles(settings.files, agentFiles) ?? (found && 'problem' in found ? found.problem : settings);
}

/** The policies that apply to such a session, in their order. */
export function policiesFor(session: { isRunnerless: boolean; isDeleted: boolean }): readonly Policy[] {
  const kind = session.isRunnerless ? 'Runnerless' : 'WithRunner';
  const applies = ({ only = kind, deletion }: Entry) =>
    only === kind && (session.isDeleted ? deletion !== undefined : deletion !== 'Only');
  return policies.filter(applies).map(({ policy }) => policy);
}
