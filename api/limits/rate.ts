import type { Clock } from '../../core/runtime.ts';

interface Bucket {
  tokens: number;
  /** Monotonic time of `tokens`, milliseconds. */
  at: number;
}

/** Token bucket for each caller: `burst` requests at once, `perSecond` of them in the long run. */
export class Rate {
  readonly perSecond: number;
  readonly burst: number;
  readonly #clock: Clock;
  /** Buckets that are not full, the longest unused first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, { perSecond, burst }: { perSecond: number; burst: number }) {
    this.#clock = clock;
    this.perSecond = perSecond;
    this.burst = burst;
  }

  /** Number of callers that are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token and returns 0, or returns the milliseconds until there is one. */
  take(caller: string): number {
    const now = this.#clock.monotonic();
    this.#forgetFull(now);
    const { tokens, at } = this.#buckets.get(caller) ?? { tokens: this.burst, at: now };
    const present = Math.min(this.burst, tokens + ((now - at) * this.perSecond) / 1000);
    if (present < 1) return ((1 - present) * 1000) / this.perSecond;
    this.#buckets.delete(caller);
    this.#buckets.set(caller, { tokens: present - 1, at: now });
    return 0;
  }

  /** Removes buckets that are full again: they are as good as none. */
  #forgetFull(now: number): void {
    const fillMs = (this.burst * 1000) / this.perSecond;
    for (const [caller, { at }] of this.#buckets) {
      if (now - at < fillMs) return;
      this.#buckets.delete(caller);
    }
  }
}
