import type { SessionStatus } from '../../core/resources/session.ts';
import { effective, isProblem } from '../settings/effective.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { ownTurns } from '../world/own-turns.ts';
import type { World } from '../world/world.ts';
import type { Action } from './actions.ts';
import type { Draft, Policy } from './draft.ts';
import { groupPart } from './group.ts';
import { adoptApprovals, cancelWaiting, consume, question, unanswered } from './policies/approval.ts';
import { deadNode } from './policies/dead-node.ts';
import { leave } from './policies/deletion.ts';
import { deletionPending } from './policies/deletion-pending.ts';
import { expire } from './policies/expiry.ts';
import { lifetime } from './policies/lifetime.ts';
import { gone, over, silent, strays } from './policies/pod.ts';
import { read, run, stop, unwanted as unwantedPod } from './policies/runnerless.ts';
import { cancel, collect, overdue, unwanted } from './policies/running.ts';
import { admit, bind, connect, create, dispatch, restore } from './policies/start.ts';
import { slowStart } from './policies/starting.ts';
import { finish, suspend } from './policies/suspension.ts';
import { adopt, broken, firstTurn, order, replaced } from './policies/turns.ts';
import { showStart, showUsage } from './policies/usage.ts';
import { sessionStatus } from './session-status.ts';

export interface Decision {
  actions: Action[];
  /** What the session's status is to be after the actions. */
  status: SessionStatus;
  /** The session wants a place and has none. */
  waiting: boolean;
  /** It has settings that it could start with. */
  settled: boolean;
  /** What its next turn asks of its concurrency group. */
  group: ReturnType<typeof groupPart>;
  /** Milliseconds since the epoch; Infinity: nothing to wait for. */
  wakeAt: number;
}

/** Read from top to bottom: each looks at one concern, the first that says 'Stop' ends the pass. */
const policies: readonly Policy[] = [
  broken,
  adopt,
  replaced,
  firstTurn,
  strays,
  collect,
  question,
  adoptApprovals,
  deadNode,
  gone,
  over,
  order,
  deletionPending,
  cancelWaiting,
  unanswered,
  cancel,
  lifetime,
  overdue,
  unwanted,
  silent,
  slowStart,
  connect,
  restore,
  expire,
  finish,
  suspend,
  admit,
  create,
  bind,
  consume,
  dispatch,
  showUsage,
];

/** The same for a session whose pods have no runner. */
const runnerlessPolicies: readonly Policy[] = [
  broken,
  adopt,
  replaced,
  firstTurn,
  strays,
  adoptApprovals,
  deadNode,
  gone,
  read,
  order,
  deletionPending,
  cancelWaiting,
  unanswered,
  stop,
  unwantedPod,
  slowStart,
  expire,
  finish,
  admit,
  create,
  dispatch,
  run,
  showStart,
];

/** Nothing new is started under a deletionTimestamp. */
const deletionPolicies: readonly Policy[] = [strays, collect, deadNode, gone, over, deletionPending, connect, leave];
const runnerlessDeletionPolicies: readonly Policy[] = [strays, deadNode, gone, read, deletionPending, leave];

/** What to do for one session, from what is observed and the clock; pure. */
export function decide(world: World): Decision {
  const settings = effective(world.session, world.class, world.installation, world.namespaceLabels);
  const draft: Draft = {
    world,
    turns: ownTurns(world.session, world.turns),
    settings,
    actions: [],
    waiting: false,
    released: false,
    suspending: false,
    startFailed: undefined,
    problem: isProblem(settings) && !world.session.status?.podName ? settings : undefined,
    wakeAt: Number.POSITIVE_INFINITY,
  };
  for (const policy of policiesOf(draft)) {
    if (policy(draft) === 'Stop') break;
  }
  const { actions, waiting } = draft;
  const status = sessionStatus(draft);
  return { actions, status, waiting, settled: !isProblem(settings), group: groupPart(draft), wakeAt: draft.wakeAt };
}

function policiesOf(draft: Draft): readonly Policy[] {
  const leaves = draft.world.session.metadata.deletionTimestamp !== undefined;
  if (isRunnerless(draft)) return leaves ? runnerlessDeletionPolicies : runnerlessPolicies;
  return leaves ? deletionPolicies : policies;
}
