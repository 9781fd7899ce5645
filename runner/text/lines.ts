const LINE_FEED = 0x0a;

export interface LineSplitterOptions {
  /** Limit of the bytes of one line that are held. */
  maxBytes: number;
  /** Handler of each whole line, with its line feed if it has one. */
  onLine: (line: Buffer) => void;
  /** Handler of the pieces of a line that is too long to hold, as they arrive. */
  onTooLong: (piece: Buffer) => void;
}

/** Cuts text that arrives in pieces into lines. */
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

  /** Ends the current line. */
  end(): void {
    if (this.#bytes > 0 && this.#bytes <= this.#options.maxBytes) this.#options.onLine(Buffer.concat(this.#held));
    this.#held = [];
    this.#bytes = 0;
  }

  #hold(bytes: Buffer): void {
    const held = this.#held;
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#options.maxBytes) {
      // The bytes are copied: a slice would keep the whole chunk in memory.
      held.push(Buffer.from(bytes));
      return;
    }
    this.#held = [];
    for (const piece of [...held, bytes]) this.#options.onTooLong(piece);
  }
}

/** Limit of a line; a longer one is cut. */
const MAX_LINE = 64 * 1024;

/** Puts a prefix before every line of a text that arrives in pieces, and passes on whole lines only. */
export class PrefixLines {
  readonly #prefix: string;
  readonly #write: (lines: string) => void;
  #open = '';

  constructor(prefix: string, write: (lines: string) => void) {
    this.#prefix = prefix;
    this.#write = write;
  }

  push(text: string): void {
    const lines = (this.#open + text).split('\n');
    this.#open = lines.pop() ?? '';
    if (this.#open.length > MAX_LINE) {
      lines.push(this.#open);
      this.#open = '';
    }
    if (lines.length) this.#write(lines.map((line) => `${this.#prefix}${line}\n`).join(''));
  }

  end(): void {
    if (this.#open) this.push('\n');
  }
}
