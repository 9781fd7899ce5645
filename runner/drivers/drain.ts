import type { Readable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';
import type { Contained, Written } from '../process/contained.ts';

/** A background process may hold the streams open: this long without output ends the wait for it, */
const QUIET_MS = 100;
/** and this long ends it in any case, */
const DRAIN_MS = 1000;
/** but for what was written before the process ended: a keeper that has not handed that on by then is being stopped. */
const OWED_MS = 30_000;

/** Whether who reads what comes of the agent's output can take more. */
export interface Flow {
  readonly full: boolean;
  /** Calls back once it is not full. */
  whenRoom(fn: () => void): void;
}

/** There is room where each of them has it. */
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

/** Reads a process's streams. Nobody who stops reading the text can make it lose any of its last output. */
export class OutputReader {
  readonly #process: Contained;
  readonly #streams: Readable[];
  readonly #read: Written = { stdout: 0, stderr: 0 };
  readonly #flow: Flow;
  readonly #clock: Clock;
  #open: number;
  /** Who waits for the last output: an answered server can end while what it wrote before its answer is still read. */
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
      // The keeper can be killed by its agent; what was read until then counts.
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

  /** What the process wrote before it ended is still on its way. */
  get #owed(): boolean {
    const { written } = this.#process;
    return written !== undefined && (this.#read.stdout < written.stdout || this.#read.stderr < written.stderr);
  }

  /**
   * Resolves when the last output has been read: all that the process wrote before it ended, and what others of its
   * family write as far as it is waited for, until all is closed, nothing came for `quietMs`, or `mostMs` are over. Called
   * when the process has ended, or has answered.
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
