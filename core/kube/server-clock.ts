import type { Clock, Logger } from '../runtime.ts';

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
 * The API server's clock, read from the `Date` of its answers and continued with monotonic time. Timestamps in the
 * cluster come from the API server, or from a controller with this clock. Compared with this clock they mean the same
 * after a restart, on another machine, and after somebody sets the clock of this machine. Before the first answer it
 * equals the local clock.
 */
export class ServerClock implements Clock {
  readonly #own: Clock;
  readonly #log: Logger;
  /** Server time minus monotonic time. */
  #offset: number | undefined;

  constructor(own: Clock, log: Logger) {
    this.#own = own;
    this.#log = log;
  }

  now(): number {
    return this.#offset === undefined ? this.#own.now() : Math.round(this.#offset + this.#own.monotonic());
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
    if (Number.isNaN(written)) return;
    const before = this.#offset ?? this.#own.now() - this.#own.monotonic();
    this.#offset = Math.max(written - receivedAt, Math.min(written + 1000 - sentAt, before));
    const jump = Math.round(this.#offset - before);
    if (Math.abs(jump) > JUMP_MS) this.#log.warn({ jumpMs: jump }, 'the API server has another time than expected');
  }
}
