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
/**
 * Part of it that each pod has for itself: some 13 MB of frames, or what the runner of a ten-hour turn has sent, which each new leader
 * reads again. All pods together have one burst for the rest, so that many that begin at once do not take the time of all others.
 */
const OWN: Work = { noise: 10_000, frames: 100_000 };
/** Frames that a pod has for itself, as a multiple of those of its last turn that is stored. */
const OWN_TURNS = 1.25;
/** Part of one CPU that a pod can take for long. */
const SHARE = 0.02;
/** Part of one CPU for all pods together: half of what the chart requests for the controller. */
const SHARE_OF_ALL = 0.1;
/** Longest pause, milliseconds: the next one makes up for the rest. */
const LONGEST_PAUSE_MS = 2_000;

const KINDS = ['noise', 'frames'] as const;

/** Shares the controller's time among the pods that print more than runners do. */
export class Allowances {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Allowances that fill, by the time at which they are full, monotonic milliseconds. */
  readonly #filling = new Map<Allowance, number>();
  /** The rest of the common burst, and the debts of pods that are gone. */
  readonly #common: Work = { ...BURST };
  readonly #lost: Work = { noise: 0, frames: 0 };
  #at: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  /** Returns the allowance of one pod. */
  open(): Allowance {
    return new Allowance({
      now: () => this.#clock.monotonic(),
      share: (allowance) => {
        const now = this.#clock.monotonic();
        for (const [other, until] of this.#filling) if (until <= now) this.#filling.delete(other);
        const all = this.#filling.size + (this.#filling.has(allowance) ? 0 : 1);
        return Math.min(SHARE, SHARE_OF_ALL / all);
      },
      borrow: (kind, work) => {
        this.#fill();
        const lent = Math.min(work, this.#common[kind]);
        this.#common[kind] -= lent;
        return lent;
      },
      giveBack: (kind, work) => {
        this.#common[kind] += work;
      },
      fills: (allowance, until) => this.#filling.set(allowance, until),
      close: (allowance, borrowed) => {
        this.#filling.delete(allowance);
        for (const kind of KINDS) this.#lost[kind] += borrowed[kind];
      },
    });
  }

  /** Makes up for what pods owe that are gone, as one of them would. */
  #fill(): void {
    const now = this.#clock.monotonic();
    const filled = (now - this.#at) * 1000 * SHARE;
    this.#at = now;
    for (const kind of KINDS) {
      const back = Math.min(filled, this.#lost[kind]);
      this.#lost[kind] -= back;
      this.#common[kind] += back;
    }
  }
}

interface Shared {
  now(): number;
  share(allowance: Allowance): number;
  borrow(kind: keyof Work, work: number): number;
  giveBack(kind: keyof Work, work: number): void;
  fills(allowance: Allowance, until: number): void;
  close(allowance: Allowance, borrowed: Work): void;
}

/** What one pod may still cost: a bucket for each kind of work, which fills with time. */
export class Allowance {
  readonly #shared: Shared;
  readonly #own: Work = { ...OWN };
  readonly #left: Work = { ...OWN };
  /** Work lent by the common burst, at most the rest of one burst. */
  readonly #borrowed: Work = { noise: 0, frames: 0 };
  /** Frames since the last end of a turn that is stored. */
  #frames = 0;
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
    this.#frames += work.frames;
    let [pauseMs, fullMs] = [0, 0];
    for (const kind of KINDS) {
      this.#fill(kind, filled);
      this.#left[kind] -= work[kind];
      if (this.#left[kind] < 0) this.#borrow(kind);
      pauseMs = Math.max(pauseMs, -this.#left[kind] / (1000 * share));
      fullMs = Math.max(fullMs, (this.#own[kind] - this.#left[kind] + this.#borrowed[kind]) / (1000 * share));
    }
    this.#shared.fills(this, now + fullMs);
    return Math.min(Math.ceil(pauseMs), LONGEST_PAUSE_MS);
  }

  /** The frames have ended a turn that is stored: their work was worth it, and the next turn may bring as much. */
  restore(): void {
    this.#own.frames = Math.max(OWN.frames, Math.min(BURST.frames, OWN_TURNS * this.#frames));
    this.#frames = 0;
    this.#left.frames = this.#own.frames;
    this.#shared.giveBack('frames', this.#borrowed.frames);
    this.#borrowed.frames = 0;
  }

  close(): void {
    this.#shared.close(this, this.#borrowed);
  }

  /** Fills the bucket, and then makes up for what was borrowed. */
  #fill(kind: keyof Work, filled: number): void {
    const own = Math.min(filled, this.#own[kind] - this.#left[kind]);
    const back = Math.min(filled - own, this.#borrowed[kind]);
    this.#left[kind] += own;
    this.#borrowed[kind] -= back;
    if (back > 0) this.#shared.giveBack(kind, back);
  }

  #borrow(kind: keyof Work): void {
    const most = BURST[kind] - this.#own[kind] - this.#borrowed[kind];
    const lent = this.#shared.borrow(kind, Math.max(0, Math.min(most, -this.#left[kind])));
    this.#borrowed[kind] += lent;
    this.#left[kind] += lent;
  }
}
