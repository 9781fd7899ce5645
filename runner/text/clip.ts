import { Tail } from '../../core/text/tail.ts';
import { headOf } from '../../core/text/utf8.ts';

/** Shortened form of a text of any length. */
export interface Clipped {
  text: string;
  /** Bytes of the whole text. */
  bytes: number;
  /** Bytes missing in the middle, where the text says so. */
  leftOut: number;
}

/** Keeps the beginning and the end of a text, because errors are at either. */
export class Clip {
  readonly #headBytes: number;
  readonly #tail: Tail;
  #head = '';
  #held = 0;
  #isFull = false;

  /** Takes the numbers of bytes to keep at either end. */
  constructor(headBytes: number, tailBytes: number) {
    this.#headBytes = headBytes;
    this.#tail = new Tail(tailBytes);
  }

  push(piece: string): void {
    let rest = piece;
    if (!this.#isFull) {
      const taken = headOf(piece, this.#headBytes - this.#held);
      this.#head += taken;
      this.#held += Buffer.byteLength(taken);
      rest = piece.slice(taken.length);
      this.#isFull = rest !== '';
    }
    this.#tail.push(rest);
  }

  result(): Clipped {
    const tail = this.#tail.text();
    const bytes = this.#held + this.#tail.bytes;
    const leftOut = this.#tail.bytes - Buffer.byteLength(tail);
    const gap = leftOut ? `\n[berth: ${leftOut} bytes are left out here]\n` : '';
    return { text: this.#head + gap + tail, bytes, leftOut };
  }
}
