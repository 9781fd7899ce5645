import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/runtime.ts';

/** Checks within the time that a reader may stall. */
const CHECKS = 4;

interface Progress {
  /** Bytes that the operating system has taken from the connection's buffer. */
  taken: number;
  /** Monotonic time since which it has taken none, although some were there; milliseconds. */
  since: number;
}

/**
 * Disconnects clients that take nothing of their answer for `limitMs`, whatever the answer is. An answer that has nothing
 * to send, as a log without new text, does not stall.
 */
export class StalledClients {
  readonly #open = new Map<ServerResponse, Progress>();
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onCut: (response: ServerResponse) => void;
  #cancel: () => void;

  constructor(options: { clock: Clock; limitMs: number; onCut: (response: ServerResponse) => void }) {
    this.#clock = options.clock;
    this.#limitMs = options.limitMs;
    this.#onCut = options.onCut;
    this.#cancel = this.#schedule();
  }

  /** Watches an answer until `forget`. */
  watch(response: ServerResponse): void {
    this.#open.set(response, { taken: -1, since: 0 });
  }

  forget(response: ServerResponse): void {
    this.#open.delete(response);
  }

  stop(): void {
    this.#cancel();
  }

  #schedule(): () => void {
    return this.#clock.setTimer(this.#limitMs / CHECKS, () => {
      this.#check();
      this.#cancel = this.#schedule();
    });
  }

  #check(): void {
    const now = this.#clock.monotonic();
    for (const [response, progress] of this.#open) {
      // A pipelined answer has no socket before its turn.
      const { socket } = response;
      // Node counts bytes as written once they are given to the socket, and as waiting until the system has taken them.
      const taken = socket ? socket.bytesWritten - socket.writableLength : -1;
      if (!socket || socket.writableLength === 0 || taken !== progress.taken) {
        this.#open.set(response, { taken, since: now });
      } else if (now - progress.since >= this.#limitMs) {
        this.#open.delete(response);
        this.#onCut(response);
        socket.destroy();
      }
    }
  }
}
