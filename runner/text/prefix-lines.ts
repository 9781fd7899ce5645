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
