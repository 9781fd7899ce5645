import type { Clock } from '../../core/runtime.ts';

const KEPT_MS = 600_000;
const MAX_TOKENS = 10_000;

/** Digests of tokens that the cluster accepted in the last ten minutes; of the latest ten thousand. */
export class KnownTokens {
  readonly #clock: Clock;
  /** Monotonic time of the acceptance by digest, the earliest first. */
  readonly #acceptedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(digest: string): boolean {
    const at = this.#acceptedAt.get(digest);
    return at !== undefined && this.#clock.monotonic() - at < KEPT_MS;
  }

  add(digest: string): void {
    this.#acceptedAt.delete(digest);
    this.#acceptedAt.set(digest, this.#clock.monotonic());
    const [earliest] = this.#acceptedAt.keys();
    if (this.#acceptedAt.size > MAX_TOKENS && earliest !== undefined) this.#acceptedAt.delete(earliest);
  }
}
