/**
 * Finds the text that an agent prints between its result markers, anywhere in its stdout, which arrives in
 * pieces. The last complete pair counts; a start marker within a pair starts the pair anew. Text that is not part of
 * the result is returned as log.
 */

export type Block =
  /** `seen`: a marker without the other one of its pair. */
  | { type: 'None'; seen?: 'Start' | 'End' }
  | { type: 'Found'; bytes: Buffer }
  /** Result that was too long to hold, and was returned as log; `bytes` is its length. */
  | { type: 'TooLarge'; bytes: number };

export interface MarkerScannerOptions {
  start: string;
  end: string;
  /** Limit of the bytes held between the markers. */
  maxBytes: number;
  onLog: (bytes: Buffer) => void;
}

export class MarkerScanner {
  readonly #start: Buffer;
  readonly #end: Buffer;
  readonly #maxBytes: number;
  readonly #onLog: (bytes: Buffer) => void;
  /** End of the text so far, which can be the beginning of a marker. */
  #carry: Buffer = Buffer.alloc(0);
  #last: Block = { type: 'None' };
  /** True once an end marker stood where no pair was open, before the first complete pair. */
  #strayEnd = false;
  /** Text after an open start marker. */
  #inside: { pieces: Buffer[]; bytes: number } | undefined;
  /** True directly after an end marker: the line feed that ends its line is not log. */
  #afterEnd = false;

  constructor(options: MarkerScannerOptions) {
    this.#start = Buffer.from(options.start);
    this.#end = Buffer.from(options.end);
    this.#maxBytes = options.maxBytes;
    this.#onLog = options.onLog;
  }

  push(chunk: Buffer): void {
    let rest = this.#carry.length ? Buffer.concat([this.#carry, chunk]) : chunk;
    for (;;) {
      const start = rest.indexOf(this.#start);
      // An end marker outside of a pair is text; the search is for the first one only.
      const end = this.#inside || !this.#strayEnd ? rest.indexOf(this.#end) : -1;
      if (end !== -1 && (start === -1 || end < start)) {
        const after = end + this.#end.length;
        if (this.#inside) {
          this.#take(rest.subarray(0, end));
          this.#close();
        } else {
          this.#take(rest.subarray(0, after));
          this.#strayEnd = true;
        }
        rest = rest.subarray(after);
      } else if (start !== -1) {
        this.#take(rest.subarray(0, start));
        this.#giveBack();
        this.#afterEnd = false;
        this.#inside = { pieces: [], bytes: 0 };
        rest = rest.subarray(start + this.#start.length);
      } else {
        break;
      }
    }
    const hold = Math.max(begun(rest, this.#start), begun(rest, this.#end));
    this.#take(rest.subarray(0, rest.length - hold));
    this.#carry = Buffer.from(rest.subarray(rest.length - hold));
  }

  /** Ends the text: an open pair becomes log. */
  end(): Block {
    this.#take(this.#carry);
    this.#carry = Buffer.alloc(0);
    const seen = this.#inside ? 'Start' : this.#strayEnd ? 'End' : undefined;
    this.#giveBack();
    return this.#last.type === 'None' && seen ? { type: 'None', seen } : this.#last;
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const inside = this.#inside;
    if (!inside) {
      const log = this.#afterEnd && bytes[0] === 0x0a ? bytes.subarray(1) : bytes;
      this.#afterEnd = false;
      if (log.length) this.#onLog(log);
      return;
    }
    inside.bytes += bytes.length;
    // The bytes are copied: a slice would keep the whole chunk in memory.
    if (inside.bytes <= this.#maxBytes) inside.pieces.push(Buffer.from(bytes));
    else this.#spill(inside, bytes);
  }

  /** Turns the text of an open pair back into log, without losing any of it. */
  #spill(inside: { pieces: Buffer[] }, bytes: Buffer): void {
    for (const piece of inside.pieces) this.#onLog(piece);
    inside.pieces = [];
    this.#onLog(bytes);
  }

  #close(): void {
    const { pieces, bytes } = this.#inside ?? { pieces: [], bytes: 0 };
    this.#last =
      bytes > this.#maxBytes ? { type: 'TooLarge', bytes } : { type: 'Found', bytes: Buffer.concat(pieces, bytes) };
    this.#inside = undefined;
    this.#afterEnd = true;
  }

  #giveBack(): void {
    for (const piece of this.#inside?.pieces ?? []) this.#onLog(piece);
    this.#inside = undefined;
  }
}

/** Returns the number of bytes at the end of `bytes` that can begin the marker: only those must wait for more text. */
function begun(bytes: Buffer, marker: Buffer): number {
  let count = Math.min(bytes.length, marker.length - 1);
  while (count > 0 && !bytes.subarray(bytes.length - count).equals(marker.subarray(0, count))) count--;
  return count;
}
