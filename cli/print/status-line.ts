/** Writes to stderr of a terminal: lines, and under them one that is replaced in place. */
export class StatusLine {
  readonly #write: (text: string) => void;
  readonly #columns: () => number;
  #shown = '';
  #isPaused = false;

  constructor(write: (text: string) => void, columns: () => number) {
    this.#write = write;
    this.#columns = columns;
  }

  /** Shows the line in place of the one before; an empty one shows none. */
  show(line: string): void {
    if (this.#isPaused) return;
    // A line that is broken by the terminal cannot be erased as one.
    const cut = [...line].slice(0, this.#columns() - 1).join('');
    if (cut === this.#shown) return;
    this.#write(`\r\x1b[K${cut}`);
    this.#shown = cut;
  }

  /** Erases the line, for something else that is to be written. */
  clear(): void {
    if (this.#shown !== '') this.#write('\r\x1b[K');
    this.#shown = '';
  }

  /** Shows no line while somebody types an answer. */
  async without<T>(answer: () => Promise<T>): Promise<T> {
    this.clear();
    this.#isPaused = true;
    try {
      return await answer();
    } finally {
      this.#isPaused = false;
    }
  }
}
