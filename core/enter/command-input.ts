import type { FrameStream } from './client.ts';
import { INPUT_WINDOW, positionBytes } from './frames.ts';

/** Bytes of a frame of input. */
const PIECE_BYTES = 32_768;

/** Input of a command, kept until it was taken: what a lost connection had on its way is sent again. */
export class CommandInput {
  readonly #pieces: { position: number; bytes: Buffer }[] = [];
  #taken = 0;
  #next: number | undefined;
  #end: number | undefined;
  #changed = Promise.withResolvers<void>();

  /** Reads the source to its end, no further ahead of the command than the window. Rejects with the source's error. */
  async read(source: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
    for await (const chunk of source) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        // Positions are counted from where the command's input stands when this client has come.
        while (this.#next === undefined || this.#next - this.#taken > INPUT_WINDOW - 2 * PIECE_BYTES) {
          if (signal.aborted) return;
          await this.#changed.promise;
        }
        const bytes = chunk.subarray(at, at + PIECE_BYTES);
        this.#pieces.push({ position: this.#next, bytes });
        this.#next += bytes.length;
        this.#change();
      }
      if (signal.aborted) return;
    }
    while (this.#next === undefined && !signal.aborted) await this.#changed.promise;
    this.#end = this.#next;
    this.#change();
  }

  /** Sends what the command has not taken, and what is read later. Ends when the input has, or with the connection. */
  async send(stream: FrameStream, from: number, signal: AbortSignal): Promise<void> {
    this.#next ??= from;
    this.taken(from);
    let at = from;
    while (!signal.aborted) {
      const { promise: changed } = this.#changed;
      const piece = this.#pieces.find(({ position, bytes }) => position + bytes.length > at);
      if (piece) {
        const fresh = piece.bytes.subarray(Math.max(0, at - piece.position));
        await stream.send('input', positionBytes(at), fresh);
        at += fresh.length;
      } else if (this.#end !== undefined) {
        await stream.send('inputEnd', positionBytes(Math.max(at, this.#end)));
        return;
      } else await changed;
    }
  }

  /** Forgets what the command has. */
  taken(position: number): void {
    this.#taken = Math.max(this.#taken, position);
    while (this.#pieces.length > 0 && endOf(this.#pieces[0]) <= this.#taken) this.#pieces.shift();
    this.#change();
  }

  /** Wakes those that wait, so that they see an aborted signal. */
  wake(): void {
    this.#change();
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}

function endOf(piece: { position: number; bytes: Buffer } | undefined): number {
  return piece ? piece.position + piece.bytes.length : 0;
}
