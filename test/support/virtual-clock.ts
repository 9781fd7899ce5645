import type { Clock } from '../../core/runtime.ts';

interface Timer {
  due: number;
  order: number;
  fn: () => void;
}

/** A clock that only moves when it is advanced. Timers fire in order of their due time, then of their creation. */
export class VirtualClock implements Clock {
  #monotonic = 0;
  #offset: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(now = Date.UTC(2030, 0, 1)) {
    this.#offset = now;
  }

  now(): number {
    return this.#monotonic + this.#offset;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimer(ms: number, fn: () => void): () => void {
    const timer = { due: this.#monotonic + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Number of timers that have not fired yet. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due; undefined when there is none. */
  get nextIn(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : next.due - this.#monotonic;
  }

  /** Sets the wall clock to another time; nothing else changes. */
  jump(ms: number): void {
    this.#offset += ms;
  }

  /** Advances time by `ms` and fires due timers. Before and after each timer all code that can run has run. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settled();
    for (let next = this.#next(); next !== undefined && next.due <= end; next = this.#next()) {
      this.#monotonic = Math.max(this.#monotonic, next.due);
      this.#timers.delete(next);
      next.fn();
      await settled();
    }
    this.#monotonic = end;
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.due < next.due || (timer.due === next.due && timer.order < next.order))
        next = timer;
    }
    return next;
  }
}

/** Resolves when every promise has settled that can settle without the outside world. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
