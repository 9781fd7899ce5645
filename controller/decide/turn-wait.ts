import { type Reason, reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { isGiven } from '../observed/own-turns.ts';
import { isOver, startedContainer } from '../observed/pod-status.ts';
import type { CachedTurn } from '../observed/world.ts';
import { grant, grantStart } from '../settings/granted.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { nextAttemptAt, queued, running, unstarted } from '../status/turn-status.ts';
import type { Action } from './actions.ts';
import { type Draft, wake } from './draft.ts';
import { groupWait } from './group.ts';
import { roomWait } from './room.ts';

/**
 * Reason for which the first turn waits: the session's own. The turns behind it wait for it, so that a session costs one
 * such write however many turns it has.
 */

/** Milliseconds after which a turn says that it waits for what is under way; what comes sooner costs no write for it. */
const SHOW_WAIT_MS = 3_000;

/** Reasons of the session's condition Ready that are no problem: they will pass by themselves. */
const PASSING: ReadonlySet<Reason> = new Set([
  'Starting',
  'Ready',
  'Running',
  'AwaitingApproval',
  'Suspending',
  'Suspended',
  'Preempted',
  'Held',
  'Terminating',
]);

/** Reasons whose message changes with the queue. The session has the present one. */
const CHANGING: ReadonlySet<string> = new Set<Reason>(['AtCapacity', 'GroupLimit', 'StoreShareUsed']);

interface Wait {
  reason: Reason;
  message: string;
  /** The wait is about to end: it is shown only when it takes long. */
  passes?: true;
}

/** Adds what the first turn waits for to the actions, once all else is decided; `status` is the session's next. */
export function showWait(draft: Draft, status: SessionStatus): void {
  const { actions, world, turns, indices } = draft;
  const writes = new Map(actions.flatMap((action) => (action.do === 'WriteTurn' ? [[action.turn, action]] : [])));
  const first = turns.live.find((each) => !isTerminal(writes.get(each)?.status.phase));
  if (!first) return;
  const write = writes.get(first);
  const turn = write && isGivenBack(first, write.status) ? { ...first, status: write.status } : first;
  if (isGiven(turn)) {
    if (isRunnerless(draft)) showStart(draft, turn, status);
    return;
  }
  const index = indices.get(first) ?? turn.status.index;
  if (index === undefined || turn.status.phase === 'AwaitingApproval') return;
  // The write that admits a session says that it starts.
  if (draft.admission) return;
  const wait = waitOf(draft, turn, status);
  if (!wait) return;
  const waits = queued(turn, index, wait.reason, world.now, wait.message);
  const shown = world.session.status?.podName ? { ...waits, granted: grantStart(turn, world) } : waits;
  if (write) {
    const begins = isGiven(write);
    // A turn that its runner is about to get waits for nothing any more.
    if (begins && (wait.passes || !isRunnerless(draft))) return;
    // It waited as the first before, and another that came before it since ends now.
    const isAsBefore = !begins && turn === first && turn.status.index === index && isShown(turn, wait);
    if (isAsBefore) {
      actions.splice(actions.indexOf(write), 1);
      return;
    }
    const given = () => unstarted({ ...turn, status: write.status }, wait.reason, world.now, wait.message);
    actions[actions.indexOf(write)] = { ...write, status: begins ? given() : shown };
    return;
  }
  if (isShown(turn, wait)) return;
  const since = [turn.metadata.creationTimestamp, transitionOf(status, 'Admitted')];
  if (wait.passes && !isLate(draft, since)) return;
  actions.unshift({ do: 'ShowWait', turn, status: shown });
}

/** Reports whether the write queues a turn again that no runner has received: it waits as if it had never been given. */
function isGivenBack({ status }: CachedTurn, next: TurnStatus): boolean {
  return next.phase === 'Queued' && (next.attempt ?? 0) < (status.attempt ?? 0);
}

/** Shows whether the pod of a runnerless turn has started, and what it waits for where it has not. */
function showStart(draft: Draft, turn: CachedTurn, status: SessionStatus): void {
  const { actions, world } = draft;
  const { pod, now } = world;
  const { podUID, index = 0, incarnation = 0, granted = grant(turn, world) } = turn.status;
  if (!pod || pod.metadata.uid !== podUID || isOver(pod)) return;
  // An action on the turn says more, and so does the deletion of its pod, unless the pod goes because it does not start.
  const saysMore = (action: Action) =>
    action.do === 'DeletePod'
      ? action.pod === pod && !action.problem
      : action.do !== 'GiveInput' && 'turn' in action && action.turn === turn;
  if (actions.some(saysMore)) return;
  const show = (next: TurnStatus) => actions.unshift({ do: 'ShowWait', turn, status: next });
  if (startedContainer(pod)) {
    if (turn.status.phase === 'Queued') show(running(turn, { index, incarnation, podUID, granted }, now));
    return;
  }
  const wait = ofSession(status);
  if (turn.status.phase === 'Queued' && isShown(turn, wait)) return;
  const isLetRun = actions.some(({ do: what }) => what === 'LetRun');
  if (wait.passes && (isLetRun || !isLate(draft, [transitionOf(turn.status, 'Running')]))) return;
  show(unstarted(turn, wait.reason, now, wait.message));
}

/** Returns why a queued turn waits; undefined while this leader may not say so. */
function waitOf(draft: Draft, turn: CachedTurn, status: SessionStatus): Wait | undefined {
  const { session, leaderIsReady, now } = draft.world;
  if (session.spec.suspend) return { reason: 'Held', message: reasons.Held };
  const limited = groupWait(draft);
  if (limited && leaderIsReady) return limited;
  const short = roomWait(draft);
  if (short && leaderIsReady) return short;
  const retrying: Wait = { reason: 'Retrying', message: reasons.Retrying, passes: true };
  if (now < nextAttemptAt(turn)) return retrying;
  const wait = ofSession(status);
  // A new leader does not know yet which slots are taken.
  if (wait.reason === 'CapacityUnknown' && shownAs(turn)?.reason === 'AtCapacity') return undefined;
  if (!wait.passes || wait.reason === 'Starting') return wait;
  // The members of a group rely on the word of leaders that are ready.
  if (limited) return undefined;
  return turn.status.attempt ? retrying : { reason: 'Queued', message: reasons.Queued, passes: true };
}

/** Returns what the session says about itself. */
function ofSession({ conditions }: SessionStatus): Wait {
  const ready = conditions?.find(({ type }) => type === 'Ready');
  const reason = (ready?.reason ?? 'Starting') as Reason;
  return { reason, message: ready?.message ?? reasons.Starting, ...(PASSING.has(reason) ? { passes: true } : {}) };
}

const shownAs = ({ status }: CachedTurn) => status.conditions?.find(({ type }) => type === 'Finished');

function isShown(turn: CachedTurn, { reason, message, passes }: Wait): boolean {
  const shown = shownAs(turn);
  return shown?.reason === reason && (passes || CHANGING.has(reason) || shown.message === message);
}

/** Reports whether the wait has taken long since the last of these times, and has it decided again when it will have. */
function isLate(draft: Draft, since: (string | undefined)[]): boolean {
  const at = Math.max(...since.map((time) => Date.parse(time ?? '') || 0)) + SHOW_WAIT_MS;
  if (draft.world.now >= at) return true;
  wake(draft, at);
  return false;
}

const transitionOf = ({ conditions }: Pick<SessionStatus, 'conditions'>, type: string) =>
  conditions?.find((condition) => condition.type === type)?.lastTransitionTime;
