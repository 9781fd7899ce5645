import type { Owner, Scheduler } from './scheduler.ts';

/** A direction of a connection. Items arrive in order, each after its own latency or later. */
export class Channel<T> {
  readonly #scheduler: Scheduler;
  readonly #owner: Owner | undefined;
  readonly #what: string;
  readonly #deliver: (item: T, tookMs: number) => void;
  readonly #queue: { item: T; sentAt: number; due: number }[] = [];
  #cancel: (() => void) | undefined;
  /** Time before which no item arrives; virtual milliseconds. */
  #stalledUntil = 0;

  constructor(
    scheduler: Scheduler,
    owner: Owner | undefined,
    what: string,
    deliver: (item: T, tookMs: number) => void,
  ) {
    this.#scheduler = scheduler;
    this.#owner = owner;
    this.#what = what;
    this.#deliver = deliver;
  }

  send(item: T, latencyMs: number): void {
    const before = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ item, sentAt: this.#scheduler.now, due: Math.max(this.#scheduler.now + latencyMs, before) });
    this.#arm();
  }

  /** Delays all deliveries for `ms`. */
  stall(ms: number): void {
    this.#stalledUntil = Math.max(this.#stalledUntil, this.#scheduler.now + ms);
  }

  /** Delivers nothing more until `resume`. */
  pause(): void {
    this.#stalledUntil = Number.POSITIVE_INFINITY;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  resume(): void {
    this.#stalledUntil = 0;
    this.#arm();
  }

  /** Drops the items that have not arrived. */
  cut(): void {
    this.#queue.length = 0;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(): void {
    const next = this.#queue[0];
    if (!next || this.#cancel || this.#stalledUntil === Number.POSITIVE_INFINITY) return;
    const due = Math.max(next.due, this.#stalledUntil);
    this.#cancel = this.#scheduler.after(due - this.#scheduler.now, this.#owner, this.#what, () => {
      this.#cancel = undefined;
      if (this.#stalledUntil > this.#scheduler.now) return this.#arm();
      this.#queue.shift();
      this.#deliver(next.item, this.#scheduler.now - next.sentAt);
      this.#arm();
    });
  }
}
