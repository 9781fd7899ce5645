import { BrokenMarks } from '../../core/pod-log/marks.ts';

/**
 * The readable text of a pod, which turns, their background processes and the runner write into. What only the runner may
 * write is broken in all that others write, also where two of them write it together.
 */
export class PodText {
  readonly #write: (text: string) => void;
  #marks = new BrokenMarks();
  /** True while the last line has not ended. */
  #midLine = false;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Writes text of others. */
  push(text: string): void {
    if (text === '') return;
    this.#write(this.#marks.push(text));
    this.#midLine = !text.endsWith('\n');
  }

  /** Writes text of others on lines of its own. */
  lines(text: string): void {
    this.endLine();
    this.push(text);
  }

  /** Writes lines that the runner alone may write, on lines of their own. */
  own(lines: string): void {
    this.endLine();
    this.#write(lines);
    this.#marks = new BrokenMarks();
  }

  /** Ends the last line, so that what is written next begins on a line of its own. */
  endLine(): void {
    if (this.#midLine) this.push('\n');
  }
}
