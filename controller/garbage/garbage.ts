import { anySignal, onAbort } from '../../core/abort.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import type { StoreKey } from '../../core/store/store.ts';
import type { Watches } from '../caches/watches.ts';
import type { CachedSession } from '../observed/world.ts';
import { type ControllerTools, QueueController } from '../runtime/queue-controller.ts';
import { maxQueuedTurns } from '../settings/queued-turns.ts';
import { type HistoryLimits, retention } from '../settings/retention.ts';
import type { GarbageTools } from './context.ts';
import { CountedStates } from './counted-states.ts';
import { dueIn, type HistorySize, mayBeOver } from './pace.ts';
import { Rooms } from './rooms.ts';
import { MIN_AGE_MS } from './stored.ts';
import { sweepApprovals } from './sweep-approvals.ts';
import { sweepOrphans } from './sweep-orphans.ts';
import { type Swept, sweepSession } from './sweep-session.ts';
import { sweepStates } from './sweep-states.ts';

export interface GarbageOptions extends ControllerTools, Omit<GarbageTools, 'removals'> {
  /** Minimum milliseconds between two sweeps of a session; sweeps of orphans are ten times as far apart. */
  intervalMs: number;
}

/** Queue key of the sweep of orphans; no session has this name. */
const ORPHANS = '';
/** Begins the queue key of a namespace whose room is short; the key of a session begins with its namespace. */
const ROOM = '/';
/** Minimum time between two looks for superseded states in a namespace that has used half of its share. */
const PRESSED_MS = 3_000;
/** Time after a state was stored in which it is counted. */
const COUNTED_MS = 1_000;
/** Time between the first sweeps of two sessions after a start. */
const STARTING_PACE_MS = 200;

/** The last sweep of a session that read its turns. */
interface Sweep {
  uid: string;
  signature: string;
  /** Monotonic milliseconds. */
  at: number;
  /** Monotonic milliseconds at which the turns are to be read again at the latest. */
  againAt?: number;
  left?: HistorySize;
}

const countedBy = ({ status }: CachedSession): number => status?.turns?.total ?? 0;

/**
 * Removes history and stored data that are no longer needed, at its own pace and outside the sessions' reconciles. A
 * session is swept when its history must be over its limits, when stored data can be old enough, and once after a
 * start, so that nothing has to be remembered.
 */
export class Garbage extends QueueController {
  readonly #options: GarbageOptions;
  readonly #sweeps = new Map<string, Sweep>();
  readonly #states = new CountedStates();
  /** Session → bytes that were stored for its turns since its last sweep, without states. */
  readonly #stored = new Map<string, number>();
  readonly #rooms = new Rooms();
  /** Namespace → monotonic time of the last look for superseded states there. */
  readonly #pressedAt = new Map<string, number>();
  /** Key of the last Approval that the sweep of approvals reached. */
  #approvalsAfter: string | undefined;

  constructor(options: GarbageOptions) {
    super(options, { name: 'garbage', workers: 2, backoff: { baseMs: 1_000, maxMs: 10 * 60_000 } });
    this.#options = options;
    onAbort(anySignal(options.signal, options.closing), () => this.#rooms.end(new Error('the controller is stopping')));
  }

  override start(): void {
    const keys = this.#options.caches.allSessions().map(({ metadata }) => keyOf(metadata));
    const spreadMs = Math.max(this.#options.intervalMs, keys.length * STARTING_PACE_MS);
    for (const key of keys) this.#later(key, spreadMs);
    this.queue.addAfter(ORPHANS, this.jittered(this.#options.intervalMs));
    super.start();
  }

  override get watches(): Watches {
    return { session: (key) => this.#later(key, this.#options.intervalMs) };
  }

  /** Notes what was stored for a session. */
  stored(key: string, kind: StoreKey['kind'], bytes: number): void {
    if (kind !== 'State') this.#stored.set(key, (this.#stored.get(key) ?? 0) + bytes);
    const { namespace } = refOf(key);
    const { clock, store } = this.#options;
    const used = store.roomOf(namespace);
    if (!used || used.bytes * 2 < used.share) return;
    const agoMs = clock.monotonic() - (this.#pressedAt.get(namespace) ?? Number.NEGATIVE_INFINITY);
    this.queue.addAfter(`${ROOM}${namespace}`, Math.max(COUNTED_MS, PRESSED_MS - agoMs));
  }

  /**
   * Removes what may give way in the namespace: superseded states at once, else the oldest turns, for about `bytes` of the
   * store. Resolves with whether there was any.
   */
  makeRoom(namespace: string, bytes: number): Promise<boolean> {
    const made = this.#rooms.ask(namespace, bytes);
    this.queue.add(`${ROOM}${namespace}`);
    return made;
  }

  /** Bytes of the ended turns that the last sweeps left. */
  get historyBytes(): number {
    return [...this.#sweeps.values()].reduce((sum, { left }) => sum + (left?.bytes ?? 0), 0);
  }

  protected override reconcile(key: string, removals: AbortSignal): Promise<number | undefined> {
    const tools = { ...this.#options, removals };
    const signal = anySignal(removals, tools.closing);
    if (key.startsWith(ROOM)) return this.#room(tools, key.slice(ROOM.length), signal);
    return key === ORPHANS ? this.#orphans(tools, signal) : this.#session(tools, key, signal);
  }

  #later(key: string, ms: number): void {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace, name);
    if (!session) {
      this.#sweeps.delete(key);
      this.#states.forget(key);
      this.#stored.delete(key);
      this.queue.forget(key);
      return;
    }
    this.#sawStates(key, session);
    const last = this.#lastSweep(key, session);
    if (last?.signature === this.#signature(session) && !this.#hidesTurns(session)) return;
    const { at } = last ?? {};
    const left = this.#withStored(key, last?.left);
    const agoMs = this.#options.clock.monotonic() - (at ?? 0);
    const dueMs =
      left && !this.#isQueueFull(session) ? dueIn(left, agoMs, countedBy(session), this.#limits(session)) : 0;
    this.queue.addAfter(key, this.jittered(Math.max(ms, dueMs)));
    const statesMs = this.#states.dueIn(key, this.#options.clock.monotonic());
    if (statesMs !== undefined) this.queue.addAfter(key, Math.max(statesMs, this.jittered(ms)));
  }

  #sawStates(key: string, { metadata, status = {} }: CachedSession): void {
    this.#states.saw(key, metadata.uid, status, this.#options.clock.monotonic());
  }

  async #session(tools: GarbageTools, key: string, signal: AbortSignal): Promise<number | undefined> {
    const { caches, clock } = this.#options;
    const { namespace, name } = refOf(key);
    const session = caches.session(namespace, name);
    if (!session) return undefined;
    this.#sawStates(key, session);
    const settled = this.#states.settled(key, clock.monotonic());
    const limitsBefore = this.#limits(session);
    const last = this.#lastSweep(key, session);
    const before = this.#withStored(key, last?.left);
    const stored = this.#stored.get(key) ?? 0;
    const isKnown = before && !this.#hidesTurns(session) && !mayBeOver(before, countedBy(session), limitsBefore);
    const known = isKnown ? before : undefined;
    if (last && known && clock.monotonic() < Math.min(last.at + MIN_AGE_MS, last.againAt ?? Number.POSITIVE_INFINITY)) {
      const { isDone } = await sweepStates(tools, session, settled, signal);
      if (isDone) this.#states.removed(key, settled);
      return this.#again(key, session);
    }
    const hasAny = countedBy(session) > 0 || session.status?.state;
    const swept: Swept = hasAny ? await sweepSession(tools, session, settled, signal, known) : {};
    const { againMs, left, limits = limitsBefore } = swept;
    // What was stored before the sweep is known by it, or belongs to a turn that runs.
    if (left && !known) this.#stored.set(key, (this.#stored.get(key) ?? 0) - stored);
    if (swept.leavesStates) this.#states.leaves(key);
    else this.#states.removed(key, settled);
    // The limits may have changed during the sweep, and change back before the next.
    const signature = this.#signature(session, limits);
    const now = caches.session(namespace, name);
    if (!now) return undefined;
    const at = clock.monotonic();
    const again = againMs === undefined ? {} : { againAt: at + againMs };
    this.#sweeps.set(key, { uid: session.metadata.uid, signature, at, ...again, ...(left ? { left } : {}) });
    // Changes during this sweep were compared with the sweep before it.
    if (this.#signature(now) !== signature) this.#later(key, this.#options.intervalMs);
    return this.#again(key, now);
  }

  /** Milliseconds until the session's next sweep; undefined if nothing is to be removed until it changes. */
  #again(key: string, session: CachedSession): number | undefined {
    const now = this.#options.clock.monotonic();
    const last = this.#lastSweep(key, session);
    const changed = last && last.signature !== this.#signature(session) ? [last.at + MIN_AGE_MS - now] : [];
    const times = [
      ...changed,
      ...(last?.againAt === undefined ? [] : [last.againAt - now]),
      ...[this.#states.dueIn(key, now)].filter((ms) => ms !== undefined),
    ];
    return times.length === 0 ? undefined : Math.max(Math.min(...times), this.jittered(this.#options.intervalMs));
  }

  async #room(tools: GarbageTools, namespace: string, signal: AbortSignal): Promise<undefined> {
    this.#pressedAt.set(namespace, this.#options.clock.monotonic());
    await this.#rooms.make(tools, namespace, signal);
  }

  async #orphans(tools: GarbageTools, signal: AbortSignal): Promise<number> {
    let hasMore: boolean;
    try {
      this.#approvalsAfter = await sweepApprovals(tools, this.#approvalsAfter, signal);
    } finally {
      // Pods and data without a session must not wait for an Approval that fails again and again.
      hasMore = await sweepOrphans(tools, signal);
    }
    const more = hasMore || this.#approvalsAfter !== undefined;
    return this.jittered(this.#options.intervalMs * (more ? 1 : 10));
  }

  #withStored(key: string, left: HistorySize | undefined): HistorySize | undefined {
    return left && { ...left, stored: left.stored + (this.#stored.get(key) ?? 0) };
  }

  #lastSweep(key: string, session: CachedSession): Sweep | undefined {
    const last = this.#sweeps.get(key);
    return last?.uid === session.metadata.uid ? last : undefined;
  }

  /** Reports whether any change of the session may be a turn that is counted nowhere, as the session refused it. */
  #hidesTurns(session: CachedSession): boolean {
    return session.spec.turns === 'One' || this.#isQueueFull(session);
  }

  /** Reports whether the session refuses further turns as QueueFull. */
  #isQueueFull({ metadata: { namespace, name }, spec }: CachedSession): boolean {
    const { caches } = this.#options;
    return caches.turnsNaming(namespace, name).length >= maxQueuedTurns(caches.class(spec.class));
  }

  #limits(session: CachedSession): HistoryLimits {
    return retention(session, this.#options.caches.class(session.spec.class)).history;
  }

  /** Value that changes when there may be something to remove. */
  #signature(session: CachedSession, limits = this.#limits(session)): string {
    const { turns, lastTurn, state } = session.status ?? {};
    return [
      turns?.total,
      lastTurn?.index,
      state?.incarnation,
      state?.seq,
      limits.turns,
      limits.bytes,
      limits.stored,
    ].join();
  }
}
