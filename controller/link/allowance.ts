import type { Clock } from '../../core/runtime.ts';

/** Work that a pod's output has made, in microseconds of one CPU, as estimated by what it was. */
export interface Work {
  /** Lines that are no frames, and frames that nothing has sealed with the pod's key. */
  noise: number;
  /** Frames of the pod's runner. */
  frames: number;
}

/**
 * Work that is done at once after a rest, microseconds. That for frames is enough for the largest message to come twice, as after a
 * broken connection; a runner makes noise only when a connection begins or breaks.
 */
const BURST: Work = { noise: 250_000, frames: 1_500_000 };
/** Part of one CPU that a pod can take for long. */
const SHARE = 0.02;
/** Part of one CPU for all pods together that exceed theirs. */
const SHARE_OF_ALL = 0.25;
/** Longest pause, milliseconds: what is owed beyond it is paid by the next one. */
const LONGEST_PAUSE_MS = 2_000;

/** Shares the controller's time among the pods that print more than runners do. */
export class Allowances {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Allowances that are used up, by the time at which they are not any more, monotonic milliseconds. */
  readonly #overdrawn = new Map<Allowance, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Returns the allowance of one pod. */
  open(): Allowance {
    return new Allowance({
      now: () => this.#clock.monotonic(),
      share: (allowance) => {
        const now = this.#clock.monotonic();
        for (const [other, until] of this.#overdrawn) if (until <= now) this.#overdrawn.delete(other);
        const others = this.#overdrawn.size + (this.#overdrawn.has(allowance) ? 0 : 1);
        return Math.min(SHARE, SHARE_OF_ALL / others);
      },
      overdrawn: (allowance, until) => this.#overdrawn.set(allowance, until),
      close: (allowance) => this.#overdrawn.delete(allowance),
    });
  }
}

interface Shared {
  now(): number;
  share(allowance: Allowance): number;
  overdrawn(allowance: Allowance, until: number): void;
  close(allowance: Allowance): void;
}

/** What one pod may still cost: a bucket for each kind of work, which fills with time. */
export class Allowance {
  readonly #shared: Shared;
  readonly #left: Work = { ...BURST };
  #at: number;

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#at = shared.now();
  }

  /** Takes the work that was done; returns for how many milliseconds the pod is not to be read. */
  spend(work: Work): number {
    const now = this.#shared.now();
    const share = this.#shared.share(this);
    const filled = (now - this.#at) * 1000 * share;
    this.#at = now;
    let pauseMs = 0;
    for (const kind of ['noise', 'frames'] as const) {
      this.#left[kind] = Math.min(BURST[kind], this.#left[kind] + filled) - work[kind];
      pauseMs = Math.max(pauseMs, -this.#left[kind] / (1000 * share));
    }
    if (pauseMs === 0) return 0;
    this.#shared.overdrawn(this, now + pauseMs);
    return Math.min(Math.ceil(pauseMs), LONGEST_PAUSE_MS);
  }

  /** The frames have ended a turn: its work was worth it. */
  restore(): void {
    this.#left.frames = BURST.frames;
  }

  close(): void {
    this.#shared.close(this);
  }
}
