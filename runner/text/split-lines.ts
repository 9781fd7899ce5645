const LINE_FEED = 0x0a;

export interface LineSplitterOptions {
  /** Bytes of one line that are held. */
  maxBytes: number;
  /** A whole line, its line feed included, if it has one. */
  onLine: (line: Buffer) => void;
  /** Pieces of a line that cannot be held, as they come. */
  onTooLong: (piece: Buffer) => void;
}

/** Cuts what comes in pieces into lines. */
export class LineSplitter {
  readonly #options: LineSplitterOptions;
  #held: Buffer[] = [];
  #bytes = 0;

  constructor(options: LineSplitterOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(LINE_FEED); end !== -1; end = rest.indexOf(LINE_FEED)) {
      this.#hold(rest.subarray(0, end + 1));
      this.end();
      rest = rest.subarray(end + 1);
    }
    if (rest.length) this.#hold(rest);
  }

  /** The line at hand is over. */
  end(): void {
    if (this.#bytes > 0 && this.#bytes <= this.#options.maxBytes) this.#options.onLine(Buffer.concat(this.#held));
    this.#held = [];
    this.#bytes = 0;
  }

  #hold(bytes: Buffer): void {
    const held = this.#held;
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#options.maxBytes) {
      // A copy: a slice would keep the whole chunk that it came in.
      held.push(Buffer.from(bytes));
      return;
    }
    this.#held = [];
    for (const piece of [...held, bytes]) this.#options.onTooLong(piece);
  }
}
