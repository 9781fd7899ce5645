import type { SessionStatus } from '../../core/resources/session.ts';
import type { World } from '../world.ts';
import type { Action, Draft, Policy } from './draft.ts';
import { effective, isProblem } from './effective.ts';
import { ownTurns } from './own-turns.ts';
import { gone, over, silent, slowStart, strays } from './policies/pod.ts';
import { cancel, collect, overdue, unwanted } from './policies/running.ts';
import { admit, bind, connect, create, dispatch } from './policies/start.ts';
import { finish, suspend } from './policies/suspension.ts';
import { adopt, firstTurn, order } from './policies/turns.ts';
import { sessionStatus } from './session-status.ts';

export interface Decision {
  actions: Action[];
  /** What the session's status is to be after the actions. */
  status: SessionStatus;
  /** The session wants a place and has none. */
  waiting: boolean;
  /** Milliseconds since the epoch; Infinity: nothing to wait for. */
  wakeAt: number;
}

/** Read from top to bottom: each looks at one concern, the first that says 'Stop' ends the pass. */
const policies: readonly Policy[] = [
  deleting,
  adopt,
  firstTurn,
  strays,
  collect,
  gone,
  over,
  order,
  cancel,
  overdue,
  unwanted,
  silent,
  slowStart,
  connect,
  finish,
  suspend,
  admit,
  create,
  bind,
  dispatch,
];

/** What to do for one session, from what is observed and the clock; pure. */
export function decide(world: World): Decision {
  const settings = effective(world.session, world.class, world.installation);
  const draft: Draft = {
    world,
    turns: ownTurns(world.session, world.turns),
    settings,
    actions: [],
    waiting: false,
    released: false,
    suspending: false,
    problem: isProblem(settings) && !world.session.status?.podName ? settings : undefined,
    wakeAt: Number.POSITIVE_INFINITY,
  };
  for (const policy of policies) {
    if (policy(draft) === 'Stop') break;
  }
  return { actions: draft.actions, status: sessionStatus(draft), waiting: draft.waiting, wakeAt: draft.wakeAt };
}

/** Nothing new is started under a deletionTimestamp; owner references take everything else with the session. */
function deleting(draft: Draft): 'Stop' | undefined {
  return draft.world.session.metadata.deletionTimestamp ? 'Stop' : undefined;
}
