import type { Clock, Logger } from '../runtime.ts';

/** When an answer of the API server was written, by its own clock and as seen from here. */
export interface AnswerTime {
  /** The `Date` header: whole seconds, cut off. */
  date: string | undefined;
  /** Monotonic milliseconds before the request was sent. */
  sentAt: number;
  /** Monotonic milliseconds after the answer was there. */
  receivedAt: number;
}

/** A correction of more than this is not one of measurement: a clock was set. */
const JUMP_MS = 5_000;

/**
 * The API server's clock, read off the `Date` of its answers and carried on by monotonic time. Timestamps in the cluster
 * are the API server's, or were written by a controller with this clock: compared with it they mean the same after a
 * restart, on another machine, and whatever is done to the clock of this one. Before the first answer it is the own clock.
 */
export class ServerClock implements Clock {
  readonly #own: Clock;
  readonly #log: Logger;
  /** The server's time minus monotonic time. */
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

  /** Moves as little as the answer asks for: each one only says between which two values the offset lies. */
  answered({ date, sentAt, receivedAt }: AnswerTime): void {
    const written = Date.parse(date ?? '');
    if (Number.isNaN(written)) return;
    const before = this.#offset ?? this.#own.now() - this.#own.monotonic();
    this.#offset = Math.max(written - receivedAt, Math.min(written + 1000 - sentAt, before));
    const jump = Math.round(this.#offset - before);
    if (Math.abs(jump) > JUMP_MS) this.#log.warn({ jumpMs: jump }, 'the API server has another time than expected');
  }
}
