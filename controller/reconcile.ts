import { isDeepStrictEqual } from 'node:util';
import { parseExact } from '../core/json.ts';
import { refOf } from '../core/kube/cache.ts';
import { isConflict, isNotFound } from '../core/kube/errors.ts';
import { type StoredSession, sessions, turns as turnKind } from '../core/resources/kinds.ts';
import type { SessionStatus } from '../core/resources/session.ts';
import { isTerminal } from '../core/resources/turn.ts';
import type { Effects, ReconcileContext, SessionMemory } from './act/context.ts';
import { perform } from './act/perform.ts';
import { writingSession } from './act/too-large.ts';
import { writeStatus } from './act/write-status.ts';
import { unreadableTurn } from './caches/caches.ts';
import type { Action } from './decide/actions.ts';
import { culprit, currentTurn, failedAgain, isProgrammingError } from './decide/broken.ts';
import { decide } from './decide/decide.ts';
import { observe } from './observe.ts';
import { reconcileOrphans } from './orphans.ts';
import { changedAt } from './status/conditions.ts';
import { noteworthy } from './status/events.ts';
import { ended, internalError } from './status/turn-status.ts';
import type { CachedSession, CachedTurn, Installation, World } from './world/world.ts';

/** Actions that find something out, which is for the next pass to decide upon. */
const LEARNING: ReadonlySet<Action['do']> = new Set([
  'ConfirmGone',
  'ReadPod',
  'ReadLog',
  'VerifySuspension',
  'AbortSuspension',
  'Acknowledge',
  'AcknowledgeRequest',
]);

/** No event of the session's own tells that the name of its first turn is free. */
const NAME_TAKEN_MS = 30_000;

const BEHIND_MS = 20;
const LONG_BEHIND_MS = 2_000;

/** The cache is behind: its event comes, and has the session looked at. Milliseconds after which to look all the same. */
function behind(memory: SessionMemory): number {
  memory.conflicts = (memory.conflicts ?? 0) + 1;
  return Math.min(BEHIND_MS * 2 ** (memory.conflicts - 1), LONG_BEHIND_MS);
}

/** How far a reconcile has come. */
interface Attempt {
  world?: World;
  /** Turn that the action under way is about. */
  turn?: CachedTurn | undefined;
}

export interface ReconcilerOptions {
  effects: Effects;
  installation: Installation;
  /** Aborts when the controller is told to stop: the action under way is the last. */
  closing: AbortSignal;
  /** It was decided that the session asks for no place, whatever becomes of what is done for it besides. */
  onNoPlace(key: string): void;
}

/** Brings one session closer to what is asked of it: observe, decide, act, one status write. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #memories = new Map<string, { uid: string; memory: SessionMemory }>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Resolves with the milliseconds after which to look again, if at all. */
  async reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { effects } = this.#options;
    const { namespace = '', name } = refOf(key);
    const session = effects.caches.session(namespace, name);
    const known = this.#memories.get(key);
    if (known && known.uid !== session?.metadata.uid) this.#forget(key, known.uid);
    if (!session) {
      effects.ledger.leave(key);
      await this.#tellTime(namespace, name, signal);
      return reconcileOrphans(effects, namespace, name, signal);
    }
    const memory = this.#memory(key, session);
    const attempt: Attempt = {};
    try {
      const again = await this.#attempt(key, session, memory, signal, attempt);
      memory.failing = undefined;
      return again;
    } catch (error) {
      if (isProgrammingError(error) && !signal.aborted) {
        await this.#endBroken(key, session, memory, signal, { ...attempt, error });
      }
      throw error;
    }
  }

  async #attempt(
    key: string,
    session: CachedSession,
    memory: SessionMemory,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<number | undefined> {
    const { namespace = '', name } = session.metadata;
    try {
      await this.#tellTime(namespace, name, signal);
      await this.#learn(session, memory, signal);
    } catch (error) {
      // Until it is tried again it holds up nobody.
      this.#options.effects.ledger.leave(key);
      throw error;
    }
    return this.#reconcileSession(key, session, memory, signal, attempt);
  }

  /**
   * A programming error that comes again and again ends the turn that it is about, as it would hold the session for ever:
   * the next decision sees of that turn only what its end needs. Where even that decision fails, the end is written here.
   */
  async #endBroken(
    key: string,
    session: CachedSession,
    memory: SessionMemory,
    signal: AbortSignal,
    { world, turn: acted, error }: Attempt & { error: Error },
  ): Promise<void> {
    const { api, caches, clock, log } = this.#options.effects;
    const { failing, isEnough } = failedAgain(memory.failing, clock.monotonic());
    memory.failing = failing;
    if (!isEnough) return;
    memory.failing = undefined;
    const { namespace, name } = session.metadata;
    const turns = caches.turnsNaming(namespace as string, name);
    const turn = acted ?? (world && culprit(world, decide)) ?? currentTurn(turns);
    if (!turn) return;
    const { uid } = turn.metadata;
    const why = error.message;
    log.error({ session: key, turn: turn.metadata.name, err: error }, 'turn is ended, as its session fails at it');
    memory.broken ??= new Map();
    const isSecond = memory.broken.has(uid);
    memory.broken.set(uid, why);
    if (!isSecond) return;
    const status = ended(unreadableTurn(turn, why), internalError(why), clock.now());
    caches.sawTurn(await writeStatus(api, turnKind, turn.metadata, status, signal));
    const message = `Turn ${turn.metadata.name}: ${status.error?.message}`;
    this.#options.effects.notify(session, { type: 'Warning', reason: 'InternalError', message });
  }

  /**
   * An earlier leader may have ended turns of which the watch has yet to tell, and which the list of the live ones left
   * out. Whoever gives the next index must know the last; whoever binds a runner, the last state.
   */
  async #learn(session: CachedSession, memory: SessionMemory, signal: AbortSignal): Promise<void> {
    const { metadata } = session;
    const { caches, leader } = this.#options.effects;
    const namespace = metadata.namespace as string;
    if (memory.knowsTurns || !leader.hasSettled()) return;
    const isNew = ({ status }: CachedTurn) => status.index === undefined && !isTerminal(status.phase);
    if (!caches.turnsNaming(namespace, metadata.name).some(isNew) && !this.#mayBind(session)) return;
    await caches.refreshTurns(namespace, metadata.name, signal);
    memory.knowsTurns = true;
  }

  /**
   * Asks for the time where the machine may have slept: any answer has it. A status written by a time that is behind would be
   * taken for an old one as soon as the right time is known.
   */
  async #tellTime(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    const { api, clock } = this.#options.effects;
    if (clock.remote?.isSure() !== false) return;
    await api.get(sessions, { namespace, name }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  /** A runner of the session waits to be bound. */
  #mayBind({ metadata: { uid }, status }: CachedSession): boolean {
    const { caches, links } = this.#options.effects;
    const pod = caches.podsOf(uid).find(({ metadata }) => metadata.name === status?.podName);
    return links.get(pod?.metadata.uid)?.view.phase === 'Unbound';
  }

  async #reconcileSession(
    key: string,
    session: CachedSession,
    memory: SessionMemory,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<number | undefined> {
    const { effects, installation } = this.#options;
    const { caches, ledger, links, clock } = effects;
    const jumps = clock.remote?.jumps;
    const world = observe(effects, installation, key, session, memory);
    attempt.world = world;
    const decision = decide(world);
    const startable = decision.settled || decision.status.podName !== undefined;
    memory.unsettledSince = startable ? undefined : (memory.unsettledSince ?? world.now);
    // In the same step as the look on which it was decided: nobody has taken a place or a part in a group in between.
    if (decision.waiting) ledger.wait(world.applicant);
    else if (!decision.actions.some((action) => action.do === 'OwnIncarnation')) {
      ledger.leave(key);
      this.#options.onNoPlace(key);
    }
    if (decision.group === 'Begins') ledger.groups.promise(key);
    else if (decision.group === 'Waits') ledger.groups.wait(key, world.groupSince);
    else ledger.groups.leave(key);
    // Links to pods of earlier incarnations are of no use any more.
    const current = world.pod?.metadata.uid ?? session.status?.podUID;
    if (current) links.closeOthers(session.metadata.uid, current);

    const context: ReconcileContext = { effects, key, world, memory, signal };
    const knewProblem = memory.firstTurnProblem;
    try {
      for (const action of decision.actions) {
        signal.throwIfAborted();
        this.#options.closing.throwIfAborted();
        // The decision was made by a time that has turned out wrong.
        if (clock.remote?.jumps !== jumps) return 1;
        attempt.turn = 'turn' in action ? world.turns.find((turn) => turn === action.turn) : undefined;
        await perform(action, context);
        attempt.turn = undefined;
        // The write that owns an incarnation is the pass's one write of the session.
        if (action.do === 'OwnIncarnation') return undefined;
        if (action.do === 'CreateFirstTurn' && memory.firstTurnProblem && !knewProblem) return 1;
      }
    } catch (error) {
      if (isConflict(error)) return behind(memory);
      // Until it is tried again it holds up nobody.
      ledger.leave(key);
      const { startProblem, commitProblem, suspensionFailed } = memory;
      if (!signal.aborted && (startProblem || commitProblem || suspensionFailed)) {
        const { status } = decide({ ...world, memory, now: clock.now() });
        // Only what went wrong: letting go of the pod comes after what must precede it.
        if (status.podName !== session.status?.podName) throw error;
        await this.#write(key, session, status, false, signal).catch(() => undefined);
      }
      throw error;
    }
    if (clock.remote?.jumps !== jumps) return 1;
    const isLive = (turn: CachedTurn) => !isTerminal(turn.status.phase);
    const present = caches.turnsNaming(session.metadata.namespace as string, session.metadata.name);
    // One that this pass has ended is counted by the next, with a write of its own.
    const hasLive = world.turns.some(isLive) || present.some(isLive);
    try {
      await this.#write(key, session, decision.status, hasLive, signal);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (isConflict(error)) return behind(memory);
      throw error;
    }
    memory.conflicts = 0;
    // What only memory has learnt comes with no event: look again at once.
    if (decision.actions.some((action) => LEARNING.has(action.do))) return 1;
    const wakeAt = memory.firstTurnProblem ? Math.min(decision.wakeAt, clock.now() + NAME_TAKEN_MS) : decision.wakeAt;
    return Number.isFinite(wakeAt) ? Math.max(1, wakeAt - clock.now()) : undefined;
  }

  /** The one status write of a pass, if anything changed. Activity alone is written with whatever comes next. */
  async #write(
    key: string,
    session: CachedSession,
    status: SessionStatus,
    hasLive: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const before = session.status ?? {};
    const compared = hasLive && before.phase ? { ...status, lastActiveAt: before.lastActiveAt } : status;
    // As the API server would store it: without fields that are undefined.
    const plain = parseExact(JSON.stringify(compared)) as SessionStatus;
    if (isDeepStrictEqual(plain, parseExact(JSON.stringify(before)))) return;
    this.#options.closing.throwIfAborted();
    const { api, caches, log, clock } = this.#options.effects;
    const conditions = changedAt(status.conditions ?? [], before.conditions, clock.now());
    const write = () => writeStatus(api, sessions, session.metadata, { ...status, conditions }, signal);
    const written: StoredSession = await writingSession(this.#options.effects, session, write);
    if (status.phase !== before.phase)
      log.info({ session: key, phase: status.phase, was: before.phase }, 'session phase');
    caches.sawSession(written);
    const memory = this.#memory(key, session);
    if (!isDeepStrictEqual(before.queue, plain.queue)) memory.queueWrittenAt = this.#options.effects.clock.now();
    for (const event of noteworthy(before, status)) this.#options.effects.notify(session, event);
  }

  #memory(key: string, { metadata, status }: CachedSession): SessionMemory {
    let entry = this.#memories.get(key);
    if (!entry) {
      // Before its first status nobody can have given its turns anything, and no leader before this one can any more.
      const knowsTurns = status?.phase === undefined && this.#options.effects.leader.hasSettled();
      entry = { uid: metadata.uid, memory: { inputs: new Map(), knowsTurns } };
      this.#memories.set(key, entry);
    }
    return entry.memory;
  }

  /** The session is gone, or another has its name. */
  #forget(key: string, uid: string): void {
    this.#memories.delete(key);
    this.#options.effects.links.closeOthers(uid);
    this.#options.effects.ledger.leave(key);
  }

  /** When a suspension of the session may be tried again, after one that failed. */
  suspendAgainAt(key: string): number | undefined {
    return this.#memories.get(key)?.memory.suspensionFailed?.againAt;
  }
}
