import { refOf } from '../../core/kube/cache.ts';
import { type Clock, delay, type Logger } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { CachedSession } from '../observed/world.ts';

export interface AdmissionGateOptions {
  caches: Pick<Caches, 'session' | 'turnsNaming' | 'keys' | 'refresh' | 'closed'>;
  clock: Clock;
  log: Logger;
  /** Milliseconds until the previous leader's last request is dead; 0 when it released the lease. */
  afterMs: number;
  /** Keys `namespace/name` of the sessions that wait for a slot. */
  queued(): Iterable<string>;
  /** Keys `namespace/name` of the sessions whose next turn waits for its concurrency group. */
  inGroups(): Iterable<string>;
  /** Requeues a session. */
  requeue(key: string): void;
  /** Opens the gate: the previous leader's last request can have no effect any more, and its effects have been read. */
  ready(): void;
  /** Reserves one more slot for the session, for so many milliseconds. */
  reserve(key: string, ms: number): void;
  open(): void;
  /** Signal that aborts when the leadership ends. */
  signal: AbortSignal;
}

type Metadata = Pick<CachedSession['metadata'], 'uid' | 'resourceVersion'>;

const POLL_MS = 200;
const RETRY_MS = 1_000;
/** Maximum wait for unwritten sessions: one whose status cannot be written must not hold up all others for ever. */
const PATIENCE_MS = 30_000;

/**
 * Decides when a leader that took over an expired lease may admit sessions. The last request of its predecessor can no
 * longer take effect, its effects were read, and every waiting session and turn was written again. The last condition
 * protects against a predecessor that was stopped in the middle of a request and continues much later: its write then
 * has an old resourceVersion.
 */
export class AdmissionGate {
  readonly #options: AdmissionGateOptions;
  readonly #unseen = new Set<string>();
  /** Sessions known to be too large to be written. */
  readonly #refused = new Set<string>();
  /** UID → resourceVersion in which the previous leader left the object. */
  readonly #versions = new Map<string, string>();

  constructor(options: AdmissionGateOptions) {
    this.#options = options;
  }

  start(): void {
    const { caches, afterMs, ready, open, log, signal } = this.#options;
    if (afterMs === 0) {
      ready();
      open();
      return;
    }
    for (const key of caches.keys()) {
      for (const { uid, resourceVersion } of [...this.#session(key), ...this.#turns(key)]) {
        this.#versions.set(uid, resourceVersion);
      }
    }
    this.#wait().then(
      () => {
        log.info({}, 'admission of sessions started');
        open();
      },
      (error: unknown) => {
        if (!signal.aborted) log.error({ err: error }, 'admission of sessions could not be started');
      },
    );
  }

  /** Notes a reconcile of the session by this leader: the session asks for no slot, or is in the queue. */
  reconciled(key: string): void {
    this.#unseen.delete(key);
    this.#refused.delete(key);
  }

  /** Notes that a reconcile ended with a write that is too large: no retry changes that. */
  tooLarge(key: string): void {
    this.#refused.add(key);
  }

  async #wait(): Promise<void> {
    const { caches, clock, log, afterMs, ready, requeue, reserve, signal } = this.#options;
    await delay(clock, afterMs, signal);
    for (;;) {
      try {
        await caches.refresh(signal);
        // Turns get their indexes first: a reconcile that writes many would lose its session's position in the queue.
        for (const key of caches.keys()) this.#unseen.add(key);
        ready();
        break;
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error }, 'admission of sessions waits: effects of the former leader cannot be read');
        await delay(clock, RETRY_MS, signal);
      }
    }
    const until = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      const leftMs = until - clock.monotonic();
      const { left, refused } = this.#unwritten();
      if (left.length === 0 || leftMs <= 0) {
        if (left.length > 0)
          log.warn({ sessions: left.slice(0, 5), count: left.length }, 'waiting sessions could not be written');
        else for (const key of refused) reserve(key, leftMs);
        return;
      }
      for (const key of left) requeue(key);
      await delay(clock, POLL_MS, signal);
    }
  }

  /**
   * Sessions that wait, or may wait, and are as an earlier leader left them: those still to be written, and those too
   * large to be. Namespaces that cannot be read are left out, as nothing can be written there.
   */
  #unwritten(): { left: string[]; refused: string[] } {
    const { caches, queued, inGroups } = this.#options;
    const isOld = ({ uid, resourceVersion }: Metadata) => this.#versions.get(uid) === resourceVersion;
    const isOpen = (key: string) => caches.closed(refOf(key).namespace) === undefined;
    const unseen = [...this.#unseen].filter((key) => this.#session(key).length > 0);
    const sessions = [...queued()].filter((key) => this.#session(key).some(isOld));
    const turns = [...inGroups()].filter((key) => this.#turns(key).slice(0, 1).some(isOld));
    const waiting = [...new Set([...unseen, ...sessions])].filter(isOpen);
    const refused = waiting.filter((key) => this.#refused.has(key));
    const written = waiting.filter((key) => !this.#refused.has(key));
    return { left: [...new Set([...written, ...turns.filter(isOpen)])], refused };
  }

  #session(key: string): Metadata[] {
    const { namespace, name } = refOf(key);
    const session = this.#options.caches.session(namespace, name);
    return session ? [session.metadata] : [];
  }

  /** Live turns of a session in a group, in the order in which they run. */
  #turns(key: string): Metadata[] {
    const { namespace, name } = refOf(key);
    const { caches } = this.#options;
    const session = caches.session(namespace, name);
    if (!session?.spec.concurrencyGroup) return [];
    return ownTurns(session, caches.turnsNaming(namespace, name)).live.map(({ metadata }) => metadata);
  }
}
