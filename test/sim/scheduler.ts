import type { Clock } from '../../core/runtime.ts';
import type { Dice } from './random.ts';
import type { Trace } from './trace.ts';

/** The owner of events. Its events are dropped once it is dead, and wait while it is paused. */
export interface Owner {
  readonly name: string;
  readonly alive: boolean;
  /** Time before which no event of the owner happens; virtual milliseconds. */
  readonly pausedUntil: number;
}

interface Event {
  due: number;
  /** Random number that orders events due at the same moment. */
  tie: number;
  owner: Owner | undefined;
  what: string;
  run: (() => void) | undefined;
}

/** Events of one virtual second from which time is considered to stand still: something asks for itself again without a pause. */
const SPIN = 50_000;

/** Virtual time and the one queue of future events. */
export class Scheduler {
  /** Virtual milliseconds since the start. */
  now = 0;
  steps = 0;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #heap: Event[] = [];
  /** The second that runs, and the number of its events. */
  #second = { number: 0, steps: 0 };
  /** Called after every event, once the promises that it settled have run. */
  onStep: () => void = () => {};
  /** Called when time stands still; `what` is an event that happens again and again. */
  onSpin: (what: string) => void = (what) => {
    throw new Error(what);
  };

  constructor(dice: Dice, trace: Trace) {
    this.#dice = dice;
    this.#trace = trace;
  }

  /** Schedules `run` in `ms` milliseconds; returns the function that cancels it. */
  after(ms: number, owner: Owner | undefined, what: string, run: () => void): () => void {
    const event: Event = { due: this.now + Math.max(0, ms), tie: this.#dice.uniform(), owner, what, run };
    this.#push(event);
    return () => {
      event.run = undefined;
    };
  }

  /** Runs events until `done` holds, `limitMs` of virtual time is reached, or no event is left. */
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
      this.#count(event);
      this.#trace.line(() => [event.owner?.name ?? '·', event.what]);
      const { run } = event;
      event.run = undefined;
      run();
      await settled();
      this.onStep();
    }
  }

  #count({ owner, what }: Event): void {
    const number = Math.floor(this.now / 1000);
    if (number !== this.#second.number) this.#second = { number, steps: 0 };
    if (++this.#second.steps !== SPIN) return;
    this.onSpin(`${SPIN} events within a second, among them "${what}" of ${owner?.name ?? 'the world'}`);
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

/** Resolves once every promise that needs no further event has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Start of every simulation: 2030-01-01, in the middle of a second. */
const EPOCH = Date.UTC(2030, 0, 1) + 345;

/** A simulated process that can be killed and paused. Its clock is the virtual one. */
export class Process implements Owner, Clock {
  readonly name: string;
  alive = true;
  pausedUntil = 0;
  /** Error of the wall clock, milliseconds. */
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

  /** Returns the virtual time that lies `ms` of the process's own time before `time`. Pauses do not count. */
  ownTimeBefore(time: number, ms: number): number {
    return this.pausedUntil > time - ms ? Math.min(time, this.#pausedAt) - ms : time - ms;
  }

  /** Ends the process: none of its events happens any more. */
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
