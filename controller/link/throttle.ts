import type { Allowance, Work } from './allowance.ts';
import type { LinkOptions } from './options.ts';

/** Time without a pause after which another one is reported. */
const EPISODE_MS = 600_000;
/**
 * Work of looking for the turn of a result that fits no running one, microseconds: a list of turns, which the API server pays for, too.
 */
const UNMATCHED_WORK = 50_000;

export interface ThrottleOptions
  extends Pick<LinkOptions, 'allowances' | 'clock' | 'log' | 'pod' | 'counters' | 'onThrottled'> {
  /** UID of the pod's session. */
  session(): string;
  /** Reads nothing for so many milliseconds. */
  pause(ms: number): void;
}

/** Has the attach of a pod paused that has used up its allowance, and reports that. */
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #allowance: Allowance;
  /** Time of the last pause, monotonic milliseconds. */
  #pausedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#allowance = options.allowances.open();
  }

  /** Takes the work that the pod's output has made. */
  spend(work: Work): void {
    const pauseMs = this.#allowance.spend(work);
    if (pauseMs === 0) return;
    this.#options.pause(pauseMs);
    this.#paused();
  }

  /** The pod's output has ended a turn that it was given. */
  ended(): void {
    this.#allowance.restore();
  }

  /** A result of the pod was of no turn that it runs. */
  noteUnmatched(): void {
    this.spend({ noise: 0, frames: UNMATCHED_WORK });
  }

  /** A session has the pod now; what was reported to its pool was not reported to it. */
  assigned(): void {
    this.#pausedAt = Number.NEGATIVE_INFINITY;
  }

  close(): void {
    this.#allowance.close();
  }

  /** Reports the first pause after a while without any. */
  #paused(): void {
    const { clock, log, pod, counters, onThrottled, session } = this.#options;
    const now = clock.monotonic();
    const isNew = now - this.#pausedAt > EPISODE_MS;
    this.#pausedAt = now;
    if (counters) counters.pauses += 1;
    if (!isNew) return;
    log.warn(
      { pod: pod.name, namespace: pod.namespace, session: session() },
      'a pod prints more on its stdout than is read; it is read with pauses',
    );
    onThrottled?.();
  }
}
