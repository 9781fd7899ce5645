/**
 * Cuts a byte stream into lines in bounded memory. A line longer than `maxBytes` keeps only its end, at least
 * `tailBytes`, because a marker may follow junk without a line feed.
 */
export class LineSplitter {
  readonly #tailBytes: number;
  readonly #buffer: Buffer;
  #length = 0;
  #lost = 0;
  #dropped = 0;

  constructor(maxBytes: number, tailBytes: number) {
    this.#buffer = Buffer.alloc(maxBytes);
    this.#tailBytes = tailBytes;
  }

  /** Bytes that were not kept so far, also of a line that has not ended. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Calls `onLine` for every line that `chunk` completes, without its line feed, and with the number of bytes that were
   * not kept. The line is valid during the call only.
   */
  push(chunk: Buffer, onLine: (line: Buffer, lost: number) => void): void {
    let start = 0;
    while (start < chunk.length) {
      const end = chunk.indexOf(0x0a, start);
      if (end === -1) {
        this.#keep(chunk.subarray(start));
        return;
      }
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (this.#length === 0 && piece.length <= this.#buffer.length) {
        onLine(piece, 0);
        continue;
      }
      this.#keep(piece);
      const line = this.#buffer.subarray(0, this.#length);
      const lost = this.#lost;
      this.#length = 0;
      this.#lost = 0;
      onLine(line, lost);
    }
  }

  #keep(piece: Buffer): void {
    const total = this.#length + piece.length;
    if (total <= this.#buffer.length) {
      piece.copy(this.#buffer, this.#length);
      this.#length = total;
      return;
    }
    const fromBefore = Math.max(0, this.#tailBytes - piece.length);
    this.#buffer.copyWithin(0, this.#length - fromBefore, this.#length);
    piece.copy(this.#buffer, fromBefore, Math.max(0, piece.length - this.#tailBytes));
    this.#length = this.#tailBytes;
    this.#lost += total - this.#tailBytes;
    this.#dropped += total - this.#tailBytes;
  }
}
