import type { StoreKey, StoreUsage } from '../core/store/store.ts';
import type { Inventory } from './meter.ts';
import { type Parts, type PartsOptions, partsOf } from './parts.ts';

export interface LeadershipOptions extends PartsOptions {
  /** Handler of the time at which the previous leader's last request can have no effect any more. */
  onReady(): void;
}

/**
 * The work of a controller while it leads: everything but watching. From the start it reconciles sessions, and removes garbage and
 * policies. Once it is ready, turns are put in order and given to runners, and environments are built. Once it is open,
 * sessions are admitted and pools are filled.
 */
export class Leading {
  readonly #options: LeadershipOptions;
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  #isReady = false;
  #isOpen = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#parts = partsOf(options, {
      isReady: () => this.#isReady,
      onReady: () => this.#ready(),
      onOpen: () => this.#open(),
      closing: this.#closing.signal,
    });
  }

  /** Reconciles all sessions. The leader is ready and open at once, or when a deposed leader's requests are dead. */
  start(): void {
    const { sessions, admissionGate, garbage, networkPolicies } = this.#parts;
    sessions.changedAll();
    admissionGate.start();
    sessions.start();
    garbage.start();
    networkPolicies.start();
  }

  #ready(): void {
    this.#isReady = true;
    this.#options.onReady();
    this.#parts.environments.start();
    this.#parts.sessions.changedAll();
  }

  #open(): void {
    this.#isOpen = true;
    this.#parts.ledger.open();
    this.#parts.pools.start();
    this.#parts.sessions.changedAll();
  }

  /**
   * Starts no new effects; running ones are finished within `graceMs`, or left for the successor to find. Resolves with
   * whether all were finished: a request that was cut off, or one of the previous leader, may still take effect.
   */
  async stop(graceMs: number): Promise<boolean> {
    const { sessions, pools, environments, garbage, networkPolicies, links, ledger } = this.#parts;
    this.#closing.abort(new Error('the controller is stopping'));
    ledger.close();
    const [areDone] = await Promise.all([
      Promise.all([sessions, pools, environments, garbage].map((each) => each.stop(graceMs))),
      // A request for a NetworkPolicy that is left under way takes no slot.
      networkPolicies.stop(graceMs),
    ]);
    links.closeAll();
    return this.#isOpen && areDone.every((isDone) => isDone);
  }

  /** Milliseconds for which sessions have waited while none was reconciled. */
  get stalledMs(): number {
    return this.#parts.sessions.stalledMs;
  }

  get inventory(): Inventory {
    const { caches, config } = this.#options;
    const { links, ledger, garbage } = this.#parts;
    const [sessions, pods] = [caches.allSessions(), caches.allPods()];
    return {
      sessions,
      pods,
      pools: caches.allPools(),
      tally: ledger.tally,
      attached: links.attached,
      maxRunning: config.BERTH_MAX_RUNNING,
      class: (name) => caches.class(name),
      // Most readers of an inventory need neither sum.
      get inputBytes() {
        return caches.allTurns().reduce((sum, { input }) => sum + input.bytes, 0);
      },
      get historyBytes() {
        return garbage.historyBytes;
      },
    };
  }

  storeUsage(signal: AbortSignal): Promise<StoreUsage> {
    return this.#options.store.usage(signal);
  }

  /** Content of the session was stored. */
  stored(key: string, kind: StoreKey['kind'], bytes: number): void {
    this.#parts.garbage.stored(key, kind, bytes);
  }
}
