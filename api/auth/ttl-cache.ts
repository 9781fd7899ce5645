import type { Clock } from '../../core/runtime.ts';

/**
 * Cache of answers with a short lifetime. Concurrent callers for the same key share one request; failures are not
 * cached.
 */
export class TtlCache<T> {
  readonly #entries = new Map<string, { value: Promise<T>; until: number }>();
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #maxEntries: number;

  constructor(clock: Clock, ttlMs: number, maxEntries: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#maxEntries = maxEntries;
  }

  get(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const known = this.#entries.get(key);
    if (known && now < known.until) return known.value;
    const value = ask();
    const entry = { value, until: now + this.#ttlMs };
    value.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    // Entries are ordered by insertion, which is also the order of their expiry.
    for (const [old, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= this.#maxEntries) break;
      this.#entries.delete(old);
    }
    return value;
  }
}
