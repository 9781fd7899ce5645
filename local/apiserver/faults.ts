import { ApiError, type ApiStatus } from '../../core/kube/errors.ts';
import { delay } from '../../core/runtime.ts';
import type { WatchHub } from './http/watch.ts';
import type { Faults, RequestFacts } from './types.ts';

type Match = (request: RequestFacts) => boolean;

interface Armed {
  match: Match;
  left: number;
}

/** Takes one use of the first fault that matches. */
function take<T extends Armed>(armed: T[], request: RequestFacts): T | undefined {
  const found = armed.find((fault) => fault.left > 0 && fault.match(request));
  if (found) found.left -= 1;
  return found;
}

/** Faults that tests ask for. */
export class FaultInjection implements Faults {
  delayMs = 0;
  readonly #hub: WatchHub;
  readonly #failures: (Armed & { status: ApiStatus })[] = [];
  readonly #losses: Armed[] = [];
  readonly #delays: (Armed & { ms: number })[] = [];

  constructor(hub: WatchHub) {
    this.#hub = hub;
  }

  dropWatches(): void {
    for (const watch of [...this.#hub.open]) watch.drop();
  }

  stallWatches(stalled: boolean): void {
    this.#hub.stalled = stalled;
    if (!stalled) for (const watch of this.#hub.open) watch.release();
  }

  failNext(match: Match, status: ApiStatus, times = 1): void {
    this.#failures.push({ match, status, left: times });
  }

  loseAnswer(match: Match, times = 1): void {
    this.#losses.push({ match, left: times });
  }

  delayNext(match: Match, ms: number, times = 1): void {
    this.#delays.push({ match, ms, left: times });
  }

  compact(): void {
    this.#hub.registry.store.compact();
  }

  /** Waits before a request is executed, and throws the error that the request must fail with. */
  async before(request: RequestFacts): Promise<void> {
    if (this.delayMs > 0) await delay(this.#hub.clock, this.delayMs);
    const slow = take(this.#delays, request);
    if (slow) await delay(this.#hub.clock, slow.ms);
    const failure = take(this.#failures, request);
    if (failure) throw new ApiError(failure.status);
  }

  /** Reports whether the answer of this request must be lost. */
  losesAnswer(request: RequestFacts): boolean {
    return take(this.#losses, request) !== undefined;
  }
}
