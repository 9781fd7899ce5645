import { refOf } from '../core/kube/cache.ts';
import { isConflict, isNotFound } from '../core/kube/errors.ts';
import { sessions } from '../core/resources/kinds.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import type { Effects, ReconcileContext } from './act/context.ts';
import { endBrokenTurn } from './act/end-broken-turn.ts';
import { perform } from './act/perform.ts';
import { readTurns } from './act/read-turns.ts';
import { admitSession } from './act/slots.ts';
import { writeSession } from './act/write-session.ts';
import type { Action } from './decide/actions.ts';
import { isProgrammingError } from './decide/broken.ts';
import { type Decision, decide } from './decide/decide.ts';
import { assess, observe } from './observe.ts';
import { boundPod } from './observed/bound-pod.ts';
import { learn, withDeleted } from './observed/memory.ts';
import type { CachedSession, CachedTurn, Installation, SessionMemory, World } from './observed/world.ts';
import { reconcileOrphans } from './orphans.ts';
import { SessionMemories } from './session-memories.ts';

/** Actions that find out facts for the next reconcile. */
const LEARNING: ReadonlySet<Action['do']> = new Set([
  'ConfirmGone',
  'ClaimPod',
  'ReadPod',
  'ReadApprovals',
  'ReadFiles',
  'MakeRoom',
  'ReadLog',
  'VerifySuspension',
  'AbortSuspension',
  'Acknowledge',
  'AcknowledgeRequest',
]);

/** The session has no event that shows when the name of its first turn is free. */
const NAME_TAKEN_MS = 30_000;

const BEHIND_MS = 20;
const LONG_BEHIND_MS = 2_000;

/** Milliseconds until the next reconcile after a conflict: the event of the other write is on its way to the cache. */
function behind(memory: SessionMemory): number {
  learn(memory, { fact: 'Conflicted' });
  return Math.min(BEHIND_MS * 2 ** (memory.conflicts - 1), LONG_BEHIND_MS);
}

/** A reconcile under way. Its later fields are there as soon as it has come to them. */
interface Attempt extends Omit<ReconcileContext, 'world'> {
  session: CachedSession;
  world?: World;
  decision?: Decision;
  /** Turn of the action under way. */
  turn?: CachedTurn | undefined;
}

/** Outcome of acting on a decision and writing its status. */
type Outcome =
  /** `writeInMs`: time until the status is written; undefined: it does not wait. */
  | { kind: 'Done'; writeInMs: number | undefined }
  /** The watch will show the write or the deletion, which brings the next reconcile. */
  | { kind: 'EventFollows' }
  /** The memory or the time has changed, so the rest of the decision counts no more. */
  | { kind: 'DecideAgain' }
  /** The object was changed by another writer. */
  | { kind: 'Conflict' }
  | { kind: 'ActionFailed'; error: unknown };

export interface ReconcilerOptions {
  effects: Effects;
  installation: Installation;
  /** Aborts when the controller has to stop: the action under way is the last. */
  closing: AbortSignal;
  /** Handler of a decision that wants no slot for the session; its actions may still fail. */
  onNoSlotWanted(key: string): void;
}

/** Brings one session closer to its spec: observe, learn, assess, decide, commit capacity, act, write status, requeue. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly memories = new SessionMemories();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Resolves with the milliseconds until the next reconcile, where one is needed without an event. */
  async reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { effects } = this.#options;
    const { namespace, name } = refOf(key);
    const session = effects.caches.session(namespace, name);
    const former = this.memories.forgetFormer(key, session?.metadata.uid);
    if (former !== undefined) {
      effects.links.closeOthers(former);
      effects.ledger.leave(key);
    }
    if (!session) {
      effects.ledger.leave(key);
      effects.ledger.groups.leave(key);
      await this.#checkServerClock(namespace, name, signal);
      return reconcileOrphans(effects, namespace, name, signal);
    }
    const memory = this.memories.of(key, session, () => effects.leader.isReady());
    const attempt: Attempt = { effects, key, session, memory, signal };
    let requeueMs: number | undefined;
    try {
      requeueMs = await this.#attempt(attempt);
      learn(attempt.memory, { fact: 'Succeeded' });
      return requeueMs;
    } catch (error) {
      if (isProgrammingError(error) && !signal.aborted) await endBrokenTurn(attempt, error);
      throw error;
    } finally {
      const { stoppedBy, actions, admission } = attempt.decision ?? {};
      const { uid } = session.metadata;
      const done = actions?.map((action) => action.do);
      const facts = { session: key, uid, actions: done, admits: admission?.pod, stoppedBy, requeueMs };
      effects.log.debug(facts, 'session reconciled');
    }
  }

  /** Observe, learn, assess, decide, commit capacity: without an await. Then act, write the status, requeue. */
  async #attempt(attempt: Attempt): Promise<number | undefined> {
    const { effects, key, session, memory, signal } = attempt;
    const { namespace, name } = session.metadata;
    try {
      await this.#checkServerClock(namespace, name, signal);
      await readTurns(effects, session, memory, signal);
    } catch (error) {
      // A session that fails holds up no other until it is tried again.
      effects.ledger.leave(key);
      throw error;
    }
    const observation = observe(effects, session, memory);
    learn(memory, { fact: 'Observed', ...observation });
    const world = assess(effects, this.#options.installation, key, observation, memory);
    attempt.world = world;
    const bound = boundPod(world);
    if (bound) learn(memory, { fact: 'PodBound', podUID: bound });
    if (world.link?.queued) effects.links.reconsider(world.link.podUID);
    const decision = decide(world);
    attempt.decision = decision;
    const canStart = decision.canStart || decision.status.podName !== undefined;
    learn(memory, { fact: 'SettingsChecked', canStart, at: world.now });
    this.#commitCapacity(attempt, world, decision);
    return this.#carryOut(attempt, world, decision);
  }

  /**
   * Asks for the time where the machine may have slept: any answer has it. A status written by a time that is behind would
   * be taken for an old one as soon as the right time is known.
   */
  async #checkServerClock(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.#options.effects;
    if (clock.remote?.isSure() !== false) return;
    await api.get(sessions, { namespace, name }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  /** Joins or leaves the queue and the group in the step in which the decision was made: no other session came between. */
  #commitCapacity({ effects, key, session }: Attempt, world: World, decision: Decision): void {
    const { ledger, links } = effects;
    const wants = decision.waiting ? 'Slot' : decision.admission ? 'Admission' : 'Nothing';
    ledger.commitQueue(world.applicant, wants);
    if (wants === 'Nothing') this.#options.onNoSlotWanted(key);
    if (decision.group === 'Begins') ledger.groups.reserve(key);
    else if (decision.group === 'Waits') ledger.groups.wait(key, world.groupSince);
    else ledger.groups.leave(key);
    // Links to pods of earlier incarnations are of no use any more.
    const current = world.pod?.metadata.uid ?? session.status?.podUID;
    if (current) links.closeOthers(session.metadata.uid, current);
  }

  /** Acts, then writes the status. Resolves with the milliseconds until the next reconcile. */
  async #carryOut(attempt: Attempt, world: World, decision: Decision): Promise<number | undefined> {
    const { effects, key, memory } = attempt;
    const outcome = await this.#act(attempt, world, decision);
    switch (outcome.kind) {
      case 'Done':
        learn(memory, { fact: 'StatusWritten' });
        return this.#requeueMs(attempt, decision, outcome.writeInMs);
      case 'EventFollows':
        return undefined;
      case 'DecideAgain':
        return 1;
      case 'Conflict':
        return behind(memory);
      case 'ActionFailed':
        // A session that fails holds up no other until it is tried again.
        effects.ledger.leave(key);
        await this.#showProblem(attempt, world);
        throw outcome.error;
    }
  }

  /** Acts, and writes the status if nothing speaks against it. */
  async #act(attempt: Attempt, world: World, decision: Decision): Promise<Outcome> {
    const { effects, key, memory, signal } = attempt;
    const context: ReconcileContext = { effects, key, world, memory, signal };
    return (await this.#perform(attempt, context, decision.actions)) ?? this.#write(attempt, context, decision);
  }

  /** Carries the actions out. Resolves with undefined if the status follows. */
  async #perform(
    attempt: Attempt,
    context: ReconcileContext,
    actions: readonly Action[],
  ): Promise<Outcome | undefined> {
    const { effects, world, memory, signal } = context;
    const { clock } = effects;
    const jumps = clock.remote?.jumps;
    const isTimeWrong = () => clock.remote?.jumps !== jumps;
    const { firstTurnProblem: knewProblem, incarnation: knew } = memory;
    try {
      for (const action of actions) {
        signal.throwIfAborted();
        this.#options.closing.throwIfAborted();
        // The decision was made by a time that has turned out wrong.
        if (isTimeWrong()) return { kind: 'DecideAgain' };
        attempt.turn = 'turn' in action ? world.turns.find((turn) => turn === action.turn) : undefined;
        await perform(action, context);
        attempt.turn = undefined;
        // Without its runner bound, the turn must not be written Running.
        const { contentsLost, startProblem } = memory.incarnation;
        if (action.do === 'Bind' && (contentsLost || (startProblem && !knew.startProblem)))
          return { kind: 'DecideAgain' };
        if (action.do === 'CreateFirstTurn' && memory.firstTurnProblem && !knewProblem) return { kind: 'DecideAgain' };
        // The claim has changed the decision; its runner is bound before anything is shown.
        if (action.do === 'ClaimPod') return { kind: 'DecideAgain' };
      }
    } catch (error) {
      return isConflict(error) ? { kind: 'Conflict' } : { kind: 'ActionFailed', error };
    }
    return isTimeWrong() ? { kind: 'DecideAgain' } : undefined;
  }

  async #write(attempt: Attempt, context: ReconcileContext, decision: Decision): Promise<Outcome> {
    const { status, counted, admission } = decision;
    const hasLive = this.#hasLive(attempt, context.world);
    const write = () => writeSession(context, { status, counted, hasLive, closing: this.#options.closing });
    try {
      if (!admission) return { kind: 'Done', writeInMs: await write() };
      await admitSession(context, admission, status, write);
      return { kind: 'EventFollows' };
    } catch (error) {
      if (isNotFound(error)) return { kind: 'EventFollows' };
      if (isConflict(error)) return { kind: 'Conflict' };
      throw error;
    }
  }

  /**
   * Writes the status that follows from what a failed action has added to the memory: the next reconcile may be minutes
   * away. It is decided once more, because the decision that failed was made without that, and only its status is used. Best
   * effort, as the error counts.
   */
  async #showProblem(attempt: Attempt, world: World): Promise<void> {
    const { effects, session, memory, signal, key } = attempt;
    const { startProblem, commitProblem, suspensionFailed } = memory.incarnation;
    if (signal.aborted || !(startProblem || commitProblem || suspensionFailed)) return;
    // The actions before the one that failed may have written turns.
    const turns = withDeleted(observe(effects, session, memory).turns, memory.uncounted);
    const now: World = { ...world, turns, memory, now: effects.clock.now(), monotonic: effects.clock.monotonic() };
    const { status, counted, actions, admission } = decide(now);
    // The status lets go of the pod only with the actions that must precede that.
    if (status.podName !== session.status?.podName) return;
    // This status counts the session as admitted, and its turn as waiting for nothing or as ended, only with the writes that
    // admit the one and end the other.
    if (admission || actions.some((action) => action.do === 'WriteTurn')) return;
    try {
      const shown = actions.find((action) => action.do === 'ShowWait');
      const context = { effects, key, world: now, memory, signal };
      if (shown) await perform(shown, context);
      await writeSession(context, { status, counted, hasLive: false, closing: this.#options.closing });
    } catch {
      // The next reconcile shows it.
    }
  }

  /** A turn that this reconcile has ended is counted by the next one, with a write of its own. */
  #hasLive({ effects, session }: Attempt, world: World): boolean {
    const isLive = (turn: CachedTurn) => !isTerminal(turn.status.phase);
    const { namespace, name } = session.metadata;
    return world.turns.some(isLive) || effects.caches.turnsNaming(namespace, name).some(isLive);
  }

  #requeueMs({ effects, memory }: Attempt, { actions, wakeAt }: Decision, writeInMs = Infinity): number | undefined {
    // Facts that only the memory has come with no event.
    if (actions.some((action) => LEARNING.has(action.do))) return 1;
    const now = effects.clock.now();
    const at = Math.min(wakeAt, now + writeInMs, memory.firstTurnProblem ? now + NAME_TAKEN_MS : Infinity);
    return Number.isFinite(at) ? Math.max(1, at - now) : undefined;
  }
}
