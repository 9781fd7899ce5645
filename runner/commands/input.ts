import type { Writable } from 'node:stream';

/** Input of a command by positions: each byte is taken once, however often a client sends it. */
export class CommandInput {
  readonly #stdin: Writable;
  #next = 0;
  #isOver = false;

  /** `open` is false for a command whose stdin is empty. */
  constructor(stdin: Writable, open: boolean) {
    this.#stdin = stdin;
    // A program need not read its input. What it does not read counts as taken, so that its client goes on.
    stdin.on('error', () => {
      this.#isOver = true;
    });
    if (!open) this.end(0);
  }

  /** Position of the next byte. */
  get next(): number {
    return this.#next;
  }

  /** Bytes that the command has yet to read. */
  get waiting(): number {
    return this.#stdin.writableLength;
  }

  /**
   * Takes the bytes that are new. `done` is called with the position up to which the command, or its pipe, has them. False:
   * bytes before these are missing.
   */
  take(position: number, bytes: Buffer, done: (position: number) => void): boolean {
    if (position > this.#next) return false;
    const fresh = bytes.subarray(Math.min(bytes.length, this.#next - position));
    this.#next += fresh.length;
    const taken = this.#next;
    if (this.#isOver || fresh.length === 0) done(taken);
    else this.#stdin.write(fresh, () => done(taken));
    return true;
  }

  /** Ends the input at its position. False: bytes before it are missing. */
  end(position: number): boolean {
    if (position > this.#next) return false;
    this.#isOver = true;
    this.#stdin.end();
    return true;
  }
}
