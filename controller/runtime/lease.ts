import { anySignal } from '../../core/abort.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../core/kube/errors.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type Clock, delay, type Logger, type Random } from '../../core/runtime.ts';
import { LeaseRecord } from './lease-record.ts';

/** Term of leadership. */
export interface Leadership {
  /**
   * Greater than the epoch of every earlier leadership. `reacquireAbove` raises it; ask the elector for the current
   * one.
   */
  epoch: number;
  /**
   * True if the holder before, perhaps this process, did not release the lease, or if it was deleted under another
   * holder. The earlier holder's last requests may still be under way.
   */
  takenOver: boolean;
  /**
   * True if the holder before was an earlier process of the same place that had settled: it had ended before this process
   * began, and no request of another can take effect any more.
   */
  succeedsItself: boolean;
  /**
   * True if the lease existed. If not, it may have been deleted under a holder that this process never saw. That holder
   * keeps leading until it fails to renew: for `renewDeadlineMs` at most.
   */
  found: boolean;
  /** Aborts when the leadership ends, for any reason. */
  signal: AbortSignal;
}

export interface LeaderElectorOptions {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  namespace: string;
  name: string;
  /** Name of the holder, for people. Random characters are added so that no two processes share an identity. */
  holder: string;
  /**
   * Name of what runs one process at a time and the next only once the last has ended, as a container of a pod does: the
   * pod's UID. A lease that an earlier process of the place holds, and had settled, is taken at once. Absent: no such
   * guarantee.
   */
  place?: string | undefined;
  /** Time without a change after which others may take the lease. */
  leaseDurationMs: number;
  /**
   * Time without a successful renewal after which the leader gives up. It must be shorter than the duration by more than
   * clocks drift.
   */
  renewDeadlineMs: number;
  /** Interval between two writes of the leader, and between two reads of others where the lease cannot be watched. */
  retryMs: number;
  onStartedLeading(leadership: Leadership): void;
  onStoppedLeading(reason: string): void;
}

/** The largest `leaseTransitions` that the API server takes: it is an int32. */
const LARGEST_EPOCH = 2 ** 31 - 1;
/** Epochs kept free above that of any new lease, for its acquisitions. */
const ROOM = 2 ** 24;
/** Seconds since 1970 (in May 2033) from which the epoch of a new lease grows by one a minute, so that int32 holds it for centuries. */
const BY_MINUTES_FROM = 2_000_000_000;

/** Epoch of a lease that is created: above those of any earlier lease of this name, whose acquisitions are rarer than minutes. */
function epochAt(nowMs: number): number {
  const seconds = Math.max(0, Math.floor(nowMs / 1000));
  const grown = seconds <= BY_MINUTES_FROM ? seconds : BY_MINUTES_FROM + Math.floor((seconds - BY_MINUTES_FROM) / 60);
  return Math.min(grown, LARGEST_EPOCH - ROOM);
}

interface Term {
  leadership: Leadership;
  /** True once no request of an earlier leader can take effect any more. */
  isSettled: boolean;
  abort: AbortController;
  epoch: number;
  /** Monotonic time at which the leadership ends unless renewed. */
  deadline: number;
  cancelDeadline: () => void;
}

/**
 * Leader election on a Lease. Another holder is judged by changes of its record while we watch, never by the times in
 * it, so clocks of different machines need not agree. `leaseTransitions` is the epoch: it grows at every acquisition,
 * also when the same process acquires again.
 */
export class LeaderElector {
  readonly identity: string;
  readonly #options: LeaderElectorOptions;
  /** Beginning of the identities of all processes of this place. */
  readonly #ofThisPlace: string | undefined;
  readonly #lease: LeaseRecord;
  readonly #stopped = new AbortController();
  #term: Term | undefined;
  /** True after a take-over whose answer may have been lost. */
  #takingOver = false;
  /** True after a take-over from an earlier process of this place whose answer may have been lost. */
  #succeedsItself = false;
  /** True if the lease did not exist when this process last tried to create it. */
  #notFound = false;
  #lastEpoch = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #running: Promise<void> = Promise.resolve();

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    const { api, clock, namespace, name, leaseDurationMs, renewDeadlineMs, retryMs } = options;
    if (!(retryMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs)) {
      throw new RangeError('a lease needs retryMs < renewDeadlineMs < leaseDurationMs');
    }
    const { holder, place, random } = options;
    this.#ofThisPlace = place === undefined ? undefined : `${holder}_${place}_`;
    const identity = `${this.#ofThisPlace ?? `${holder}_`}${random.bytes(8).toString('hex')}`;
    this.identity = identity;
    const deadlineMs = renewDeadlineMs;
    this.#lease = new LeaseRecord({ api, clock, namespace, name, identity, leaseDurationMs, deadlineMs });
  }

  get leading(): boolean {
    return this.deadlineLeftMs() > 0;
  }

  /** Epoch of the current leadership; undefined when not leading. */
  get epoch(): number | undefined {
    return this.leading ? this.#term?.epoch : undefined;
  }

  /**
   * Milliseconds for which the leadership is certain to last, 0 when not leading. A request of the leader must end
   * within it.
   */
  deadlineLeftMs(): number {
    return this.#term === undefined ? 0 : Math.max(0, this.#term.deadline - this.#options.clock.monotonic());
  }

  start(): void {
    this.#running = this.#run();
  }

  /**
   * Raises the epoch above `epoch`, which another party has seen, and resolves with the new one. Rejects when not
   * leading, and when the lease could not be written: then call it again.
   */
  async reacquireAbove(epoch: number): Promise<number> {
    if (!Number.isSafeInteger(epoch) || epoch >= LARGEST_EPOCH) throw new RangeError(`no epoch can be above ${epoch}`);
    await this.#exclusive(async () => {
      const term = this.#term;
      if (term === undefined || !this.leading) throw new Error('not the leader');
      const next = this.#within(Math.max(term.epoch, epoch) + 1);
      const sentAt = this.#options.clock.monotonic();
      await this.#lease.write(this.#lease.held(next), this.deadlineLeftMs(), term.isSettled);
      this.#renewed(term, sentAt);
    });
    return this.#term?.epoch ?? Promise.reject(new Error('not the leader'));
  }

  /**
   * Records in the lease, with the next renewal, that no request of an earlier leader can take effect any more. A term that
   * has ended meanwhile is left alone.
   */
  settle(leadership: Leadership): void {
    if (this.#term?.leadership === leadership) this.#term.isSettled = true;
  }

  /** Resolves once a renewal that began after this call has succeeded; rejects if it failed, and when not leading. */
  async confirm(): Promise<void> {
    await this.#exclusive(async () => {
      const term = this.#term;
      if (term === undefined || !this.leading) throw new Error('not the leader');
      await this.#renew(term);
      if (this.#term !== term) throw new Error('not the leader any more');
    });
  }

  /**
   * Ends the leadership and releases the lease, so that a successor need not wait until it expires. With `false` the
   * lease is left to expire, because requests may still be under way.
   */
  async release(free = true): Promise<void> {
    const left = this.deadlineLeftMs();
    this.#stopped.abort(new Error('the elector was released'));
    this.#lose('released');
    await this.#running;
    if (left === 0 || !free) return;
    await this.#exclusive(async () => {
      // A renewal that was under way may have found that another process has taken the lease.
      if (this.#lease.spec?.holderIdentity !== this.identity) return;
      await this.#lease.write({ ...this.#lease.spec, holderIdentity: '' }, left);
    }).catch((error) =>
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
      const pauseMs = this.#options.retryMs * (0.9 + 0.2 * random.uniform());
      if (await this.#othersTurn()) continue;
      await delay(clock, pauseMs, signal).catch(() => {});
    }
  }

  /**
   * Waits while another process holds the lease. Resolves with true once the lease is released or deleted, may have
   * expired, or has not been renewed in time; with false when it cannot be watched.
   */
  async #othersTurn(): Promise<boolean> {
    const { clock, log } = this.#options;
    if (this.#term !== undefined || !this.#lease.otherHolder || this.#isExpired) return false;
    const silence = new AbortController();
    const signal = anySignal(this.#stopped.signal, silence.signal);
    let wasSilent = false;
    let cancel = () => {};
    const listen = () => {
      cancel();
      const ms = Math.min(2 * this.#options.retryMs, this.#lease.expiresInMs);
      cancel = clock.setTimer(Math.max(1, ms), () => silence.abort(new Error('the lease has not changed for a while')));
    };
    listen();
    try {
      for await (const change of this.#lease.changes(signal)) {
        if (change === 'Gone') this.#missed();
        if (!this.#lease.spec?.holderIdentity) return true;
        listen();
      }
    } catch (error) {
      if (!signal.aborted) log.debug({ err: error }, 'lease cannot be watched');
    } finally {
      cancel();
      wasSilent = silence.signal.aborted;
      // The abort frees the combined signal: Node keeps one that has a listener until it is aborted.
      silence.abort();
    }
    return wasSilent;
  }

  /** Reports whether an earlier process of this place holds the lease, as last seen, and had settled. */
  get #isOfThisPlace(): boolean {
    const { otherHolder, isSettled } = this.#lease;
    return this.#ofThisPlace !== undefined && isSettled && otherHolder?.startsWith(this.#ofThisPlace) === true;
  }

  get #isExpired(): boolean {
    return this.#isOfThisPlace || this.#lease.expiresInMs <= 0;
  }

  /** Records that the lease was deleted, perhaps under a holder that has not noticed yet. */
  #missed(): void {
    if (this.#lease.otherHolder) this.#takingOver = true;
    this.#lease.forget();
  }

  async #acquire(): Promise<void> {
    const { clock } = this.#options;
    const isThere = await this.#lease.read();
    if (!isThere) {
      this.#missed();
      this.#notFound = true;
    }
    const sentAt = clock.monotonic();
    // A term of this process that ended without releasing the lease counts like another's: its last requests may be
    // under way.
    const ledBefore = this.#lastEpoch > 0;
    if (!isThere) {
      const epoch = this.#within(Math.max(epochAt(clock.now()), this.#lastEpoch + 1));
      const isMade = await isWritten(this.#lease.create(this.#lease.held(epoch)), isAlreadyExists);
      if (isMade) this.#lead(sentAt, ledBefore || this.#takingOver);
      return;
    }

    const { holderIdentity, leaseTransitions = 0 } = this.#lease.spec ?? {};
    const mine = holderIdentity === this.identity;
    const free = !holderIdentity;
    const expired = !mine && !free && this.#isExpired;
    if (!mine) {
      this.#takingOver = expired;
      this.#succeedsItself = this.#isOfThisPlace;
      this.#notFound = false;
    }
    if (!mine && !free && !expired) return;
    const spec = this.#lease.held(this.#within(Math.max(leaseTransitions, this.#lastEpoch) + 1));
    const isTaken = await isWritten(this.#lease.write(spec, this.#options.renewDeadlineMs), isConflict);
    if (isTaken) this.#lead(sentAt, this.#takingOver || (mine && ledBefore));
  }

  /** Returns the epoch; throws where the API server would not take it. */
  #within(epoch: number): number {
    if (epoch <= LARGEST_EPOCH) return epoch;
    const { namespace, name } = this.#options;
    throw new RangeError(
      `the lease ${namespace}/${name} cannot be acquired any more: its leaseTransitions is at ${LARGEST_EPOCH}, the highest that the API server takes; delete the lease, and the next controller creates it anew`,
    );
  }

  async #renew(term: Term): Promise<void> {
    const sentAt = this.#options.clock.monotonic();
    try {
      const spec = this.#lease.held(term.epoch, this.#lease.spec?.acquireTime);
      // A lost answer must leave time for another attempt.
      await this.#lease.write(spec, Math.min(this.deadlineLeftMs(), this.#options.renewDeadlineMs / 3), term.isSettled);
      this.#renewed(term, sentAt);
    } catch (error) {
      if (isNotFound(error)) return this.#lose('the lease was deleted');
      if (!isConflict(error)) throw error;
      // Conflict: another process took the lease, or the answer to our own write was lost.
      if (!(await this.#lease.read())) this.#missed();
      const { holderIdentity: holder, leaseTransitions = 0 } = this.#lease.spec ?? {};
      if (holder !== this.identity) return this.#lose(`the lease is held by ${holder || 'nobody'}`);
      term.epoch = Math.max(term.epoch, leaseTransitions);
      if (this.#term === term) await this.#renew(term);
    }
  }

  #lead(sentAt: number, takenOver: boolean): void {
    const { clock, log, onStartedLeading } = this.#options;
    const abort = new AbortController();
    const epoch = this.#lease.spec?.leaseTransitions ?? 0;
    // An answer that took longer than the deadline is of no use: the next attempt acquires again.
    if (this.#stopped.signal.aborted || clock.monotonic() - sentAt >= this.#options.renewDeadlineMs) return;
    const found = !this.#notFound;
    this.#takingOver = false;
    this.#notFound = false;
    // A term of this very process that ended is no earlier process.
    const succeedsItself = takenOver && this.#succeedsItself;
    this.#succeedsItself = false;
    const leadership = { epoch, takenOver, succeedsItself, found, signal: abort.signal };
    const term = { leadership, isSettled: false, abort, epoch, deadline: 0, cancelDeadline: () => {} };
    this.#term = term;
    this.#renewed(term, sentAt);
    log.info({ epoch, takenOver, succeedsItself, found, identity: this.identity }, 'started leading');
    this.#call(() => onStartedLeading(leadership));
  }

  #renewed(term: Term, sentAt: number): void {
    if (this.#term !== term) return;
    term.epoch = this.#lease.spec?.leaseTransitions ?? term.epoch;
    this.#lastEpoch = term.epoch;
    term.deadline = sentAt + this.#options.renewDeadlineMs;
    term.cancelDeadline();
    term.cancelDeadline = this.#options.clock.setTimer(this.deadlineLeftMs(), () =>
      this.#lose(`the lease was not renewed within ${this.#options.renewDeadlineMs} ms`),
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

  /** Runs one read-and-write of the lease at a time. */
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

/** Reports whether the write has happened; false when it was refused in this way. */
async function isWritten(write: Promise<void>, isRefusal: (error: unknown) => boolean): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return false;
  }
}
