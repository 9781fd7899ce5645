import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import type { Lease, LeaseSpec } from './builtin.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { leases } from './resources.ts';
import type { KubeApi, Stored } from './types.ts';

/** A time of being the leader. */
export interface Leadership {
  /** Greater than that of every leadership before. `reacquireAbove` raises it; ask the elector for the current one. */
  epoch: number;
  /** The holder before did not let go of the lease: its last requests may still be under way. */
  takenOver: boolean;
  /** Aborts when the leadership ends, for whatever reason. */
  signal: AbortSignal;
}

export interface LeaderElectorOptions {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  namespace: string;
  name: string;
  /** Who holds the lease, for people; random characters are added so that no two processes ever share an identity. */
  holder: string;
  /** Others may take the lease when it has not changed for this long; default 15 s. */
  leaseDurationMs?: number;
  /** The leader gives up when it could not renew for this long; default 10 s. Shorter than the duration by more than clocks drift. */
  renewDeadlineMs?: number;
  /** Between two looks at the lease; default 2 s. */
  retryMs?: number;
  onStartedLeading(leadership: Leadership): void;
  onStoppedLeading(reason: string): void;
}

const LARGEST_EPOCH = 2 ** 31 - 1;

interface Term {
  leadership: Leadership;
  abort: AbortController;
  epoch: number;
  /** Monotonic time at which the leadership ends unless renewed. */
  deadline: number;
  cancelDeadline: () => void;
}

/**
 * Leader election on a Lease. Another holder is judged by whether its record changes while we watch, never by the times
 * in it, so clocks of different machines need not agree. `leaseTransitions` is the epoch: it grows at every
 * acquisition, also when the same process acquires again.
 */
export class LeaderElector {
  readonly identity: string;
  readonly #options: LeaderElectorOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryMs: number;
  readonly #stopped = new AbortController();
  #term: Term | undefined;
  /** The record as last seen, and when it was first seen like that. */
  #seen: { lease: Stored<Lease>; at: number } | undefined;
  /** A take-over was begun whose answer may have been lost. */
  #takingOver = false;
  #lastEpoch = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #running: Promise<void> = Promise.resolve();

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#leaseDurationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryMs ?? 2_000;
    if (!(this.#retryMs < this.#renewDeadlineMs && this.#renewDeadlineMs < this.#leaseDurationMs)) {
      throw new RangeError('a lease needs retryMs < renewDeadlineMs < leaseDurationMs');
    }
    this.identity = `${options.holder}_${options.random.bytes(8).toString('hex')}`;
  }

  get leading(): boolean {
    return this.deadlineLeftMs() > 0;
  }

  /** The epoch of the current leadership; undefined when not leading. */
  get epoch(): number | undefined {
    return this.leading ? this.#term?.epoch : undefined;
  }

  /** Milliseconds that the leadership lasts for certain, 0 when not leading. A request of the leader must end within it. */
  deadlineLeftMs(): number {
    return this.#term === undefined ? 0 : Math.max(0, this.#term.deadline - this.#options.clock.monotonic());
  }

  start(): void {
    this.#running = this.#run();
  }

  /**
   * Raises the epoch above `epoch`, which another party has seen, and resolves with the new one. Rejects when not leading
   * or when the lease could not be written: then call it again.
   */
  async reacquireAbove(epoch: number): Promise<number> {
    if (epoch >= LARGEST_EPOCH) throw new RangeError(`no epoch can be above ${epoch}`);
    await this.#exclusive(async () => {
      const term = this.#term;
      if (term === undefined || !this.leading) throw new Error('not the leader');
      const next = Math.max(term.epoch, epoch) + 1;
      const sentAt = this.#options.clock.monotonic();
      const lease = await this.#write({ ...this.#record(next), acquireTime: this.#timestamp() }, this.deadlineLeftMs());
      this.#renewed(term, lease, sentAt);
    });
    return this.#term?.epoch ?? Promise.reject(new Error('not the leader'));
  }

  /** Ends the leadership and gives the lease free, so that a successor need not wait for it to expire. */
  async release(): Promise<void> {
    const left = this.deadlineLeftMs();
    this.#stopped.abort(new Error('the elector was released'));
    this.#lose('released');
    await this.#running;
    if (left === 0) return;
    await this.#exclusive(() => this.#write({ ...this.#seen?.lease.spec, holderIdentity: '' }, left)).catch((error) =>
      this.#options.log.info({ err: (error as Error).message }, 'lease could not be given free, it will expire'),
    );
  }

  async #run(): Promise<void> {
    const { clock, random, log } = this.#options;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        await this.#exclusive(() => (this.#term === undefined ? this.#acquire() : this.#renew(this.#term)));
      } catch (error) {
        if (!signal.aborted)
          log.warn({ leading: this.leading, err: (error as Error).message }, 'lease could not be read or written');
      }
      await delay(clock, this.#retryMs * (0.9 + 0.2 * random.uniform()), signal).catch(() => {});
    }
  }

  async #acquire(): Promise<void> {
    const { clock, api, namespace, name } = this.#options;
    const lease = await this.#read();
    const sentAt = clock.monotonic();
    if (lease === undefined) {
      const epoch = Math.max(Math.floor(clock.now() / 1000), this.#lastEpoch + 1);
      const spec = { ...this.#record(epoch), acquireTime: this.#timestamp() };
      const created = await api
        .create(leases, { metadata: { namespace, name }, spec }, { deadlineMs: this.#renewDeadlineMs })
        .catch(ignore(isAlreadyExists));
      if (created !== undefined) this.#lead(created, sentAt, false);
      return;
    }

    const { holderIdentity, leaseTransitions = 0, leaseDurationSeconds = 0 } = lease.spec ?? {};
    const patience = Math.max(this.#leaseDurationMs, leaseDurationSeconds * 1000);
    const mine = holderIdentity === this.identity;
    const free = !holderIdentity;
    const expired = !mine && !free && sentAt - (this.#seen?.at ?? sentAt) >= patience;
    if (!mine) this.#takingOver = expired;
    if (!mine && !free && !expired) return;
    const spec = {
      ...this.#record(Math.max(leaseTransitions, this.#lastEpoch) + 1),
      acquireTime: this.#timestamp(),
    };
    const taken = await this.#write(spec, this.#renewDeadlineMs).catch(ignore(isConflict));
    if (taken !== undefined) this.#lead(taken, sentAt, this.#takingOver);
  }

  async #renew(term: Term): Promise<void> {
    const sentAt = this.#options.clock.monotonic();
    try {
      const acquireTime = this.#seen?.lease.spec?.acquireTime;
      const spec = { ...this.#record(term.epoch), ...(acquireTime === undefined ? {} : { acquireTime }) };
      // A lost answer must leave time for another try.
      const limitMs = Math.min(this.deadlineLeftMs(), this.#renewDeadlineMs / 3);
      this.#renewed(term, await this.#write(spec, limitMs), sentAt);
    } catch (error) {
      if (isNotFound(error)) return this.#lose('the lease was deleted');
      if (!isConflict(error)) throw error;
      // Either somebody else took the lease, or the answer to a write of our own was lost.
      const lease = await this.#read();
      const holder = lease?.spec?.holderIdentity;
      if (holder !== this.identity) return this.#lose(`the lease is held by ${holder || 'nobody'}`);
      term.epoch = Math.max(term.epoch, lease?.spec?.leaseTransitions ?? 0);
      if (this.#term === term) await this.#renew(term);
    }
  }

  #lead(lease: Stored<Lease>, sentAt: number, takenOver: boolean): void {
    const { clock, log, onStartedLeading } = this.#options;
    const abort = new AbortController();
    const epoch = lease.spec?.leaseTransitions ?? 0;
    // An answer that took longer than the deadline is of no use: the next look acquires again.
    if (this.#stopped.signal.aborted || clock.monotonic() - sentAt >= this.#renewDeadlineMs) return;
    this.#takingOver = false;
    const leadership = { epoch, takenOver, signal: abort.signal };
    const term = { leadership, abort, epoch, deadline: 0, cancelDeadline: () => {} };
    this.#term = term;
    this.#renewed(term, lease, sentAt);
    log.info({ epoch, takenOver, identity: this.identity }, 'started leading');
    this.#call(() => onStartedLeading(leadership));
  }

  #renewed(term: Term, lease: Stored<Lease>, sentAt: number): void {
    this.#observe(lease);
    if (this.#term !== term) return;
    term.epoch = lease.spec?.leaseTransitions ?? term.epoch;
    this.#lastEpoch = term.epoch;
    term.deadline = sentAt + this.#renewDeadlineMs;
    term.cancelDeadline();
    term.cancelDeadline = this.#options.clock.setTimer(this.deadlineLeftMs(), () =>
      this.#lose(`the lease was not renewed within ${this.#renewDeadlineMs} ms`),
    );
  }

  #lose(reason: string): void {
    const term = this.#term;
    if (term === undefined) return;
    this.#term = undefined;
    term.cancelDeadline();
    this.#options.log.info({ epoch: term.epoch, reason }, 'stopped leading');
    term.abort.abort(new Error(`no longer the leader: ${reason}`));
    this.#call(() => this.#options.onStoppedLeading(reason));
  }

  async #read(): Promise<Stored<Lease> | undefined> {
    const { api, namespace, name } = this.#options;
    const options = { deadlineMs: this.#renewDeadlineMs };
    const lease = await api.get(leases, { namespace, name }, options).catch(ignore(isNotFound));
    if (lease === undefined) this.#seen = undefined;
    else this.#observe(lease);
    return lease;
  }

  /** Replaces the lease as it was last seen: 409 when somebody else has written it since. */
  async #write(spec: LeaseSpec, deadlineMs: number): Promise<Stored<Lease>> {
    if (this.#seen === undefined) throw new Error('the lease has not been read yet');
    const lease = await this.#options.api.replace(leases, { ...this.#seen.lease, spec }, { deadlineMs });
    this.#observe(lease);
    return lease;
  }

  #observe(lease: Stored<Lease>): void {
    if (this.#seen?.lease.metadata.resourceVersion === lease.metadata.resourceVersion) return;
    this.#seen = { lease, at: this.#options.clock.monotonic() };
  }

  #record(epoch: number): LeaseSpec {
    return {
      holderIdentity: this.identity,
      leaseDurationSeconds: Math.ceil(this.#leaseDurationMs / 1000),
      leaseTransitions: epoch,
      renewTime: this.#timestamp(),
    };
  }

  /** A MicroTime: six digits after the second, which the API server insists on. */
  #timestamp(): string {
    return new Date(this.#options.clock.now()).toISOString().replace('Z', '000Z');
  }

  /** One read-and-write of the lease at a time. */
  #exclusive<R>(fn: () => Promise<R>): Promise<R> {
    const turn = this.#writing.then(fn);
    this.#writing = turn.catch(() => {});
    return turn;
  }

  #call(fn: () => void): void {
    try {
      fn();
    } catch (error) {
      this.#options.log.error({ err: error }, 'callback of the leader election failed');
    }
  }
}

/** Turns one kind of failure into undefined. */
function ignore(which: (error: unknown) => boolean): (error: unknown) => undefined {
  return (error) => {
    if (!which(error)) throw error;
    return undefined;
  };
}
