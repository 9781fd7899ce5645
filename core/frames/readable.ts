import { END, START } from './wire.ts';

/**
 * Limit of a held line, characters: a longer line is returned before its end arrives. It is text wherever it stands, as the
 * lines of frames are shorter.
 */
const MAX_LINE = 64 * 1024;
/** The shortest body of a frame: IV, tag and two bytes, in base64. */
const BODY = /^[A-Za-z0-9+/]{38,}={0,2}$/;

/**
 * Extracts the readable text of a pod's log. Frames share the log with the agent's text line by line, so a line of text
 * can stand within a frame.
 */
export class ReadableText {
  readonly #decoder = new TextDecoder();
  readonly #hasRunner: boolean;
  #rest = '';
  #inFrame = false;
  /** True while a line goes on whose beginning was returned. */
  #isCut = false;

  /** Reads the log of a pod; without a runner it has no frames, and all of it is text. */
  constructor({ hasRunner }: { hasRunner: boolean }) {
    this.#hasRunner = hasRunner;
  }

  /** Returns the readable text that this piece of the log completes. */
  push(chunk: Buffer): string {
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() as string;
    let text = '';
    for (const line of lines) if (this.#isText(line)) text += `${line}\n`;
    if (this.#rest.length > MAX_LINE) {
      text += this.#rest;
      this.#rest = '';
      this.#isCut = true;
    }
    return text;
  }

  /** Returns the rest at the end of the log: a line without a line feed. */
  end(): string {
    const rest = this.#rest + this.#decoder.decode();
    this.#rest = '';
    return rest !== '' && this.#isText(rest) ? rest : '';
  }

  #isText(line: string): boolean {
    if (!this.#hasRunner) return true;
    const isCut = this.#isCut;
    this.#isCut = false;
    if (line.startsWith(`${START}{`)) {
      this.#inFrame = true;
      return false;
    }
    if (line.startsWith(END)) {
      this.#inFrame = false;
      return false;
    }
    return isCut || !(this.#inFrame && BODY.test(line));
  }
}
