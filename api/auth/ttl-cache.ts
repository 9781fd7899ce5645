import type { Clock } from '../../core/runtime.ts';

/**
 * Cache of answers with a short lifetime, which may be shorter for some answers. Concurrent callers for the same key
 * share one request; failures are not cached.
 */
export class TtlCache<T> {
  readonly #entries = new Map<string, { value: Promise<T>; until: number }>();
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #ttlOf: (value: T) => number;

  /** `ttlOf`: lifetime of an answer, at most `ttlMs`; default: `ttlMs`. */
  constructor(clock: Clock, options: { ttlMs: number; maxEntries: number; ttlOf?: (value: T) => number }) {
    this.#clock = clock;
    this.#ttlMs = options.ttlMs;
    this.#maxEntries = options.maxEntries;
    this.#ttlOf = options.ttlOf ?? (() => options.ttlMs);
  }

  get(key: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const known = this.#entries.get(key);
    if (known && now < known.until) return known.value;
    const value = ask();
    const entry = { value, until: now + this.#ttlMs };
    value.then(
      (answer) => {
        entry.until = now + this.#ttlOf(answer);
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    // Entries are ordered by insertion. One that expires early is removed with the older ones before it.
    for (const [old, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= this.#maxEntries) break;
      this.#entries.delete(old);
    }
    return value;
  }
}
