import { tailOf } from './utf8.ts';

/** Keeps the end of a text of any length: the last `maxBytes` bytes, in at most twice that memory. */
export class Tail {
  readonly #maxBytes: number;
  #pieces: string[] = [];
  /** Bytes in `#pieces`. */
  #held = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the whole text. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Restores the end of a text that has `bytes` bytes in total. */
  resume(text: string, bytes: number): void {
    this.push(text);
    this.#bytes = bytes;
  }

  push(piece: string): void {
    if (!piece) return;
    const bytes = Buffer.byteLength(piece);
    this.#bytes += bytes;
    this.#held += bytes;
    this.#pieces.push(piece);
    // Many short pieces take more memory than their text, so they are joined now and then.
    if (this.#held > 2 * this.#maxBytes || this.#pieces.length > 1024) this.#join();
  }

  text(): string {
    this.#join();
    return this.#pieces[0] ?? '';
  }

  #join(): void {
    const text = tailOf(this.#pieces.join(''), this.#maxBytes);
    this.#pieces = [text];
    this.#held = Buffer.byteLength(text);
  }
}
