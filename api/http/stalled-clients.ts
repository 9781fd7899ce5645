import type { ServerResponse } from 'node:http';
import type { Clock } from '../../core/runtime.ts';

/** Checks within the time that a client may stall. */
const CHECKS = 4;

interface Progress {
  /** Bytes that the operating system has taken from the connection's buffer. */
  taken: number;
  /** Bytes that came on the connection. */
  come: number;
  /** Monotonic times since which the client has taken and sent none, although it should; milliseconds. */
  takenAt: number;
  comeAt: number;
  onSilent: () => void;
}

/**
 * Finds clients that take nothing of their answer for `limitMs`, and those that send nothing of their body. An answer that
 * has nothing to send, as a log without new text, does not stall. A body does not stall while the server has yet to read
 * what came.
 */
export class StalledClients {
  readonly #open = new Map<ServerResponse, Progress>();
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onCut: (response: ServerResponse) => void;
  #cancel: () => void;

  /** `onCut`: called for a client that takes nothing, before it is disconnected. */
  constructor(options: { clock: Clock; limitMs: number; onCut: (response: ServerResponse) => void }) {
    this.#clock = options.clock;
    this.#limitMs = options.limitMs;
    this.#onCut = options.onCut;
    this.#cancel = this.#schedule();
  }

  /** Watches a request and its answer until `forget`. `onSilent`: called once its body stalls, after which it is not watched. */
  watch(response: ServerResponse, onSilent: () => void): void {
    const now = this.#clock.monotonic();
    this.#open.set(response, { taken: -1, come: -1, takenAt: now, comeAt: now, onSilent });
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
      if (!socket || socket.writableLength === 0 || taken !== progress.taken) progress.takenAt = now;
      const come = socket?.bytesRead ?? -1;
      if (!isAwaited(response) || come !== progress.come) progress.comeAt = now;
      Object.assign(progress, { taken, come });
      if (socket && now - progress.takenAt >= this.#limitMs) {
        this.#open.delete(response);
        this.#onCut(response);
        socket.destroy();
      } else if (now - progress.comeAt >= this.#limitMs) {
        this.#open.delete(response);
        progress.onSilent();
      }
    }
  }
}

/** True while the client has more of the request's body to send, and the server has read what came of it. */
function isAwaited({ req }: ServerResponse): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = req.headers;
  return (length !== undefined || encoding !== undefined) && !req.complete && req.readableLength === 0;
}
