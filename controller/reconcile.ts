import { isDeepStrictEqual } from 'node:util';
import { refOf } from '../core/kube/cache.ts';
import { isConflict, isNotFound } from '../core/kube/errors.ts';
import { type StoredSession, sessions } from '../core/resources/kinds.ts';
import type { SessionStatus } from '../core/resources/session.ts';
import { isTerminal } from '../core/resources/turn.ts';
import type { Effects, Pass, SessionMemory } from './act/context.ts';
import { waitingSince } from './act/own.ts';
import { perform } from './act/perform.ts';
import { writeStatus } from './act/write-status.ts';
import { decide } from './decide/decide.ts';
import type { Action } from './decide/draft.ts';
import { noteworthy } from './decide/events.ts';
import { observe } from './observe.ts';
import { reconcileOrphans } from './orphans.ts';
import type { CachedSession, Installation } from './world.ts';

/** Actions that find something out, which is for the next pass to decide upon. */
const LEARNING: ReadonlySet<Action['do']> = new Set([
  'ConfirmGone',
  'ReadLog',
  'VerifySuspension',
  'AbortSuspension',
  'NoteFailedStart',
]);

export interface ReconcilerOptions {
  effects: Effects;
  installation: Installation;
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
      return reconcileOrphans(effects, namespace, name, signal);
    }
    const memory = this.#memory(key, session.metadata.uid);
    return this.#pass(key, session, memory, signal);
  }

  async #pass(
    key: string,
    session: CachedSession,
    memory: SessionMemory,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { effects, installation } = this.#options;
    const { caches, ledger, links, clock } = effects;
    const world = observe(effects, installation, key, session, memory);
    const decision = decide(world);
    const applicant = { key, class: session.spec.class, since: waitingSince(session) };
    if (decision.waiting) ledger.wait(applicant);
    else if (!decision.actions.some((action) => action.do === 'OwnIncarnation')) ledger.leave(key);
    // Links to pods of earlier incarnations are of no use any more.
    const current = world.pod?.metadata.uid ?? session.status?.podUID;
    if (current) links.closeOthers(session.metadata.uid, current);

    const pass: Pass = { effects, key, world, memory, signal };
    try {
      for (const action of decision.actions) {
        signal.throwIfAborted();
        await perform(action, pass);
        // The write that owns an incarnation is the pass's one write of the session.
        if (action.do === 'OwnIncarnation') return undefined;
      }
    } catch (error) {
      if (isConflict(error)) return 20; // the cache is behind: its event comes
      if (!signal.aborted && (memory.startProblem || memory.commitProblem)) {
        const { status } = decide({ ...world, memory, now: clock.now() });
        // Only what went wrong: letting go of the pod comes after what must precede it.
        if (status.podName !== session.status?.podName) throw error;
        await this.#write(key, session, status, false, signal).catch(() => undefined);
      }
      throw error;
    }
    const hasLive = caches
      .turnsNaming(session.metadata.namespace as string, session.metadata.name)
      .some((turn) => !isTerminal(turn.status.phase));
    try {
      await this.#write(key, session, decision.status, hasLive, signal);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (isConflict(error)) return 20;
      throw error;
    }
    // What only memory has learnt comes with no event: look again at once.
    if (decision.actions.some((action) => LEARNING.has(action.do))) return 1;
    return Number.isFinite(decision.wakeAt) ? Math.max(1, decision.wakeAt - clock.now()) : undefined;
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
    const plain = JSON.parse(JSON.stringify(compared)) as SessionStatus;
    if (isDeepStrictEqual(plain, JSON.parse(JSON.stringify(before)))) return;
    const { api, caches, log } = this.#options.effects;
    const written: StoredSession = await writeStatus(api, sessions, session.metadata, status, signal);
    if (status.phase !== before.phase)
      log.info({ session: key, phase: status.phase, was: before.phase }, 'session phase');
    caches.sawSession(written);
    if (before.podName && !status.podName) this.#options.effects.ledger.vacancy();
    for (const event of noteworthy(before, status)) this.#options.effects.notify(session, event);
  }

  #memory(key: string, uid: string): SessionMemory {
    let entry = this.#memories.get(key);
    if (!entry) {
      entry = { uid, memory: { inputs: new Map() } };
      this.#memories.set(key, entry);
    }
    return entry.memory;
  }

  /** The session is gone, or another has its name. */
  #forget(key: string, uid: string): void {
    this.#memories.delete(key);
    this.#options.effects.links.closeOthers(uid);
    this.#options.effects.ledger.leave(key);
    this.#options.effects.ledger.vacancy();
  }
}
