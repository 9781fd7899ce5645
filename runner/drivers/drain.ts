import type { Readable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';
import type { Contained, Written } from '../process/contained.ts';

/** Silence after which the wait ends for a background process that holds the streams open, milliseconds. */
const QUIET_MS = 100;
/** Time after which that wait ends in any case, milliseconds. */
const DRAIN_MS = 1000;
/**
 * Time to wait for output written before the process ended. A keeper that has not passed it on by then has been
 * stopped; milliseconds.
 */
const OWED_MS = 30_000;

/** Backpressure of a reader of the agent's output. */
export interface Flow {
  readonly full: boolean;
  /** Calls back once `full` is false. */
  whenRoom(fn: () => void): void;
}

/** Combines flows: there is room when each of them has room. */
export function together(...flows: Flow[]): Flow {
  const whenRoom = (fn: () => void): void => {
    const full = flows.find((flow) => flow.full);
    if (full) full.whenRoom(() => whenRoom(fn));
    else fn();
  };
  return {
    get full() {
      return flows.some((flow) => flow.full);
    },
    whenRoom,
  };
}

/** Reads a process's streams. A reader that stops reading the text cannot make it lose any of the last output. */
export class OutputReader {
  readonly #process: Contained;
  readonly #streams: Readable[];
  readonly #read: Written = { stdout: 0, stderr: 0 };
  readonly #flow: Flow;
  readonly #clock: Clock;
  #open: number;
  /**
   * Waiters for the last output. There can be several: a server can end after its answer, while its earlier output is
   * still being read.
   */
  readonly #drains = new Set<() => void>();

  constructor(
    process: Contained,
    flow: Flow,
    clock: Clock,
    on: { stdout: (bytes: Buffer) => void; stderr: (bytes: Buffer) => void; end: () => void },
  ) {
    this.#process = process;
    this.#streams = [process.stdout, process.stderr];
    this.#flow = flow;
    this.#clock = clock;
    this.#open = this.#streams.length;
    const read = (name: keyof Written, take: (bytes: Buffer) => void) => {
      const stream = process[name];
      stream.on('data', (bytes: Buffer) => {
        this.#read[name] += bytes.length;
        take(bytes);
        this.#onEvent();
        this.#pauseIfFull();
      });
      // The agent can kill its keeper; the output read until then counts.
      stream.on('error', () => {});
      stream.once('close', () => {
        this.#read[name] = Number.POSITIVE_INFINITY;
        this.#open -= 1;
        this.#onEvent();
        if (this.#open === 0) on.end();
      });
    };
    read('stdout', on.stdout);
    read('stderr', on.stderr);
  }

  /** True while output that is known to have been written is still missing. */
  get #owed(): boolean {
    const { written } = this.#process;
    return written !== undefined && (this.#read.stdout < written.stdout || this.#read.stderr < written.stderr);
  }

  /**
   * Resolves when the last output has been read. All output that the process wrote before its end is awaited. Output of
   * other processes of its family is awaited until all streams are closed, none came for `quietMs`, or `mostMs` have
   * passed. Called when the process has ended, or has answered.
   */
  drain(quietMs = QUIET_MS, mostMs = DRAIN_MS): Promise<void> {
    return new Promise((resolve) => {
      let cancelQuiet = () => {};
      let isOver = false;
      const finish = () => {
        cancelQuiet();
        cancelDrain();
        cancelOwed();
        this.#drains.delete(look);
        resolve();
      };
      const look = () => {
        cancelQuiet();
        if (this.#open === 0) finish();
        else if (this.#owed) return;
        else if (isOver) finish();
        else cancelQuiet = this.#clock.setTimer(quietMs, finish);
      };
      const cancelOwed = this.#clock.setTimer(OWED_MS, finish);
      const cancelDrain = this.#clock.setTimer(mostMs, () => {
        isOver = true;
        look();
      });
      this.#drains.add(look);
      for (const stream of this.#streams) stream.resume();
      look();
    });
  }

  /**
   * Resolves when the output that the process is known to have written has been read. False if it is not known how much
   * that is, or has not come for long.
   */
  caughtUp(): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (isRead: boolean) => {
        cancelOwed();
        this.#drains.delete(look);
        resolve(isRead);
      };
      const look = () => {
        if (this.#open === 0 || !this.#owed) finish(this.#process.written !== undefined);
      };
      const cancelOwed = this.#clock.setTimer(OWED_MS, () => finish(false));
      this.#drains.add(look);
      for (const stream of this.#streams) stream.resume();
      look();
    });
  }

  #onEvent(): void {
    for (const look of this.#drains) look();
  }

  #pauseIfFull(): void {
    if (this.#drains.size > 0 || !this.#flow.full) return;
    for (const stream of this.#streams) stream.pause();
    this.#flow.whenRoom(() => {
      for (const stream of this.#streams) stream.resume();
    });
  }
}
