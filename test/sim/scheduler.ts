import type { Clock } from '../../core/runtime.ts';
import type { Dice } from './random.ts';
import type { Trace } from './trace.ts';

/** What happens belongs to somebody: it does not happen once they are dead, and waits while they are paused. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  /** Virtual milliseconds; nothing of the owner happens before. */
  readonly pausedUntil: number;
}

interface Event {
  due: number;
  /** Drawn: decides among what is due at the same moment. */
  tie: number;
  owner: Owner | undefined;
  what: string;
  run: (() => void) | undefined;
}

/** Virtual time, and the one queue of everything that is going to happen. */
export class Scheduler {
  /** Virtual milliseconds since the start. */
  now = 0;
  steps = 0;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #heap: Event[] = [];
  /** Called after every event, when everything that followed from it at once has happened. */
  onStep: () => void = () => {};

  constructor(dice: Dice, trace: Trace) {
    this.#dice = dice;
    this.#trace = trace;
  }

  /** Lets `run` happen in `ms` milliseconds; returns what takes it back. */
  after(ms: number, owner: Owner | undefined, what: string, run: () => void): () => void {
    const event: Event = { due: this.now + Math.max(0, ms), tie: this.#dice.uniform(), owner, what, run };
    this.#push(event);
    return () => {
      event.run = undefined;
    };
  }

  /** Lets things happen until `done` holds, `limitMs` of virtual time has been reached, or nothing is left to happen. */
  async run(done: () => boolean, limitMs: number): Promise<'Done' | 'Limit' | 'Empty'> {
    for (;;) {
      if (done()) return 'Done';
      const event = this.#pop();
      if (!event) return 'Empty';
      if (event.run === undefined || event.owner?.alive === false) continue;
      if (event.owner && event.owner.pausedUntil > event.due) {
        event.due = event.owner.pausedUntil;
        this.#push(event);
        continue;
      }
      if (event.due > limitMs) {
        this.#push(event);
        this.now = limitMs;
        return 'Limit';
      }
      this.now = event.due;
      this.steps++;
      this.#trace.line(() => [event.owner?.name ?? '·', event.what]);
      const { run } = event;
      event.run = undefined;
      run();
      await settled();
      this.onStep();
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (!top || !last || heap.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.due !== b.due ? a.due < b.due : a.tie < b.tie;
}

/** Resolves when every promise that could be settled without a further event has been. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** 2030-01-01, in the middle of a second: where every simulation starts. */
const EPOCH = Date.UTC(2030, 0, 1) + 345;

/** A simulated process: it can be killed, and paused while the world goes on. Its clock is the virtual one. */
export class Process implements Owner, Clock {
  readonly name: string;
  alive = true;
  pausedUntil = 0;
  /** What its wall clock is off by, milliseconds. */
  skewMs = 0;
  readonly scheduler: Scheduler;
  #pausedAt = 0;
  readonly #onDeath: (() => void)[] = [];

  constructor(name: string, scheduler: Scheduler) {
    this.name = name;
    this.scheduler = scheduler;
  }

  now(): number {
    return Math.floor(EPOCH + this.scheduler.now + this.skewMs);
  }

  monotonic(): number {
    return this.scheduler.now;
  }

  setTimer(ms: number, fn: () => void): () => void {
    return this.after(ms, 'timer', fn);
  }

  after(ms: number, what: string, run: () => void): () => void {
    return this.scheduler.after(ms, this, what, run);
  }

  pause(ms: number): void {
    if (this.pausedUntil <= this.scheduler.now) this.#pausedAt = this.scheduler.now;
    this.pausedUntil = Math.max(this.pausedUntil, this.scheduler.now + ms);
  }

  /** When the process had `ms` to live until `time`: what it was paused for does not count. Virtual milliseconds. */
  ownTimeBefore(time: number, ms: number): number {
    return this.pausedUntil > time - ms ? Math.min(time, this.#pausedAt) - ms : time - ms;
  }

  /** From now on nothing of it happens. */
  kill(): void {
    if (!this.alive) return;
    this.alive = false;
    for (const tell of this.#onDeath.splice(0)) tell();
  }

  onDeath(tell: () => void): void {
    this.#onDeath.push(tell);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, 'sleep', resolve));
  }
}
