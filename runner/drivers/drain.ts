import type { Readable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';
import type { Contained } from '../process/contained.ts';

/** A background process may hold the streams open: this long without output ends the wait for it, */
const QUIET_MS = 100;
/** and this long ends it in any case. */
const DRAIN_MS = 1000;

/** Whether the reader of the agent's text can take more. */
export interface Flow {
  readonly full: boolean;
  whenRoom(fn: () => void): void;
}

/** Reads a process's streams. Nobody who stops reading the text can make it lose any of its last output. */
export class OutputReader {
  readonly #streams: Readable[];
  readonly #flow: Flow;
  readonly #clock: Clock;
  #open: number;
  #draining = false;
  #onEvent = () => {};

  constructor(
    process: Contained,
    flow: Flow,
    clock: Clock,
    on: { stdout: (bytes: Buffer) => void; stderr: (bytes: Buffer) => void; end: () => void },
  ) {
    this.#streams = [process.stdout, process.stderr];
    this.#flow = flow;
    this.#clock = clock;
    this.#open = this.#streams.length;
    const read = (stream: Readable, take: (bytes: Buffer) => void) => {
      stream.on('data', (bytes: Buffer) => {
        take(bytes);
        this.#onEvent();
        this.#pauseIfFull();
      });
      // The keeper can be killed by its agent; what was read until then counts.
      stream.on('error', () => {});
      stream.once('close', () => {
        this.#open -= 1;
        this.#onEvent();
        if (this.#open === 0) on.end();
      });
    };
    read(process.stdout, on.stdout);
    read(process.stderr, on.stderr);
  }

  /** Called when the process has ended. Resolves when its last output has been read, as far as it is waited for. */
  drain(): Promise<void> {
    this.#draining = true;
    for (const stream of this.#streams) stream.resume();
    return new Promise((resolve) => {
      let cancelQuiet = () => {};
      const finish = () => {
        cancelQuiet();
        cancelDrain();
        this.#draining = false;
        this.#onEvent = () => {};
        resolve();
      };
      const cancelDrain = this.#clock.setTimer(DRAIN_MS, finish);
      this.#onEvent = () => {
        cancelQuiet();
        if (this.#open === 0) finish();
        else cancelQuiet = this.#clock.setTimer(QUIET_MS, finish);
      };
      this.#onEvent();
    });
  }

  #pauseIfFull(): void {
    if (this.#draining || !this.#flow.full) return;
    for (const stream of this.#streams) stream.pause();
    this.#flow.whenRoom(() => {
      for (const stream of this.#streams) stream.resume();
    });
  }
}
