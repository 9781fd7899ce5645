import type { Clock, ClockJump, Logger, RemoteClock } from '../runtime.ts';

/** Time of an answer of the API server, by the server's clock and by ours. */
export interface AnswerTime {
  /** The `Date` header: whole seconds, rounded down. */
  date: string | undefined;
  /** Monotonic milliseconds before the request was sent. */
  sentAt: number;
  /** Monotonic milliseconds after the answer had arrived. */
  receivedAt: number;
}

/** Limit of a correction that measurement can explain. A larger one means that a clock was set. */
const JUMP_MS = 5_000;
/**
 * Difference above which the local clock counts as parted from monotonic time: the machine slept, or its clock was set.
 */
const PARTED_MS = 1_000;
/** Jumps that are kept: nothing waits for longer than those of some days. */
const MAX_CLOCK_JUMPS = 32;

/**
 * The API server's clock, read from the `Date` of its answers and continued with monotonic time. Timestamps in the
 * cluster come from the API server, or from a controller with this clock. Compared with this clock they mean the same
 * after a restart, on another machine, and after somebody sets the clock of this machine. Before the first answer it
 * equals the local clock.
 *
 * Monotonic time stops while the machine sleeps, so the local clock then parts from it, as it does when somebody sets
 * it. Only the answer to a later request distinguishes the two cases.
 */
export class ServerClock implements Clock, RemoteClock {
  readonly #own: Clock;
  readonly #log: Logger;
  /** Server time minus monotonic time. */
  #offset: number | undefined;
  /** Local clock minus monotonic time when they were last compared. */
  #ownOffset: number;
  /** Monotonic time at which they were last found to have parted. */
  #partedAt = Number.NEGATIVE_INFINITY;
  /** Sum of the differences since the last answer with the time; undefined while the clocks agree. */
  #partedByMs: number | undefined;
  #jumps = 0;
  #clockJumps: readonly ClockJump[] = [];
  /** Sum of the jumps back that no jump forward has made up for. */
  #behindMs = 0;
  /** The time that was read last. */
  #lastRead = Number.NEGATIVE_INFINITY;

  constructor(own: Clock, log: Logger) {
    this.#own = own;
    this.#log = log;
    this.#ownOffset = own.now() - own.monotonic();
  }

  get remote(): RemoteClock {
    return this;
  }

  isSure(): boolean {
    this.#look();
    return this.#partedByMs === undefined;
  }

  get jumps(): number {
    this.#look();
    return this.#jumps;
  }

  get clockJumps(): readonly ClockJump[] {
    return this.#clockJumps;
  }

  latest(): number {
    this.#look();
    return this.now() + Math.max(0, this.#partedByMs ?? 0);
  }

  /** The time stands still where a correction would turn it back, so no time that has come is in the future again. */
  now(): number {
    const time = this.#offset === undefined ? this.#own.now() : Math.round(this.#offset + this.#own.monotonic());
    const isCorrected = time < this.#lastRead && this.#lastRead - time <= JUMP_MS;
    if (!isCorrected) this.#lastRead = time;
    return this.#lastRead;
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  setTimer(ms: number, fn: () => void): () => void {
    return this.#own.setTimer(ms, fn);
  }

  /** Moves the offset as little as the answer requires: an answer gives only an interval in which the offset lies. */
  answered({ date, sentAt, receivedAt }: AnswerTime): void {
    const written = Date.parse(date ?? '');
    this.#look();
    // An answer that was under way while the machine slept gives only a lower bound of the time.
    const isOld = sentAt < this.#partedAt;
    if (!isOld) this.#partedByMs = undefined;
    if (Number.isNaN(written)) return;
    const isFirst = this.#offset === undefined;
    const before = this.#offset ?? this.#own.now() - this.#own.monotonic();
    const most = isOld ? Number.POSITIVE_INFINITY : written + 1000 - sentAt;
    this.#offset = Math.max(written - receivedAt, Math.min(most, before));
    const jump = Math.round(this.#offset - before);
    if (Math.abs(jump) <= JUMP_MS) return;
    this.#jumps++;
    this.#log.warn({ jumpMs: jump }, 'clock of the API server has jumped');
    if (isFirst) return;
    const madeUpMs = Math.min(this.#behindMs, Math.max(0, jump));
    this.#behindMs += Math.max(0, -jump) - madeUpMs;
    const ms = jump - madeUpMs;
    if (ms <= JUMP_MS) return;
    // The server has written no time in between but right after its own jump.
    const clockJump = { until: Math.round(before + receivedAt + jump / 2), ms };
    this.#clockJumps = [...this.#clockJumps, clockJump].slice(-MAX_CLOCK_JUMPS);
  }

  #look(): void {
    const own = this.#own.now() - this.#own.monotonic();
    const byMs = own - this.#ownOffset;
    this.#ownOffset = own;
    // The server's time is unknown before the first answer, so it cannot be wrong yet.
    if (this.#offset === undefined || Math.abs(byMs) <= PARTED_MS) return;
    this.#partedAt = this.#own.monotonic();
    this.#partedByMs = (this.#partedByMs ?? 0) + byMs;
    this.#jumps++;
  }
}
