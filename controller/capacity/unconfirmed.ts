import { refOf } from '../../core/kube/cache.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import { WRITE_DEADLINE_MS } from '../runtime/leased-api.ts';

const AGAIN_MS = 1_000;

/** Requests whose outcome is not known, by the key `namespace/name` of what they are about. */
export class Unconfirmed {
  readonly #clock: Clock;
  readonly #caches: Pick<Caches, 'staleness'>;
  /** Cancel functions of the timers that wait. */
  readonly #waiting = new Map<string, () => void>();

  constructor(clock: Clock, caches: Pick<Caches, 'staleness'>) {
    this.#clock = clock;
    this.#caches = caches;
  }

  /** Reports whether an earlier request may still take effect. */
  has(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** Calls `fn` once a request of this moment must be dead and the caches have heard from the API server since, unless `end` comes first. */
  await(key: string, fn: () => void): void {
    const deadAt = this.#clock.monotonic() + WRITE_DEADLINE_MS;
    const look = () => {
      if (this.#clock.monotonic() - this.#caches.staleness(refOf(key).namespace) > deadAt) fn();
      else this.awaitFor(key, AGAIN_MS, look);
    };
    this.awaitFor(key, WRITE_DEADLINE_MS, look);
  }

  /** Calls `fn` after `ms` milliseconds, unless `end` comes first. */
  awaitFor(key: string, ms: number, fn: () => void): void {
    this.#waiting.get(key)?.();
    this.#waiting.set(key, this.#clock.setTimer(ms, fn));
  }

  /** Waits no longer; returns false where nothing was waited for. */
  end(key: string): boolean {
    this.#waiting.get(key)?.();
    return this.#waiting.delete(key);
  }

  close(): void {
    for (const cancel of this.#waiting.values()) cancel();
  }
}
