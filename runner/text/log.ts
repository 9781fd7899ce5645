import { StringDecoder } from 'node:string_decoder';
import { MAX_LOG_BYTES } from '../../core/resources/limits.ts';
import { Redactor } from './redact.ts';
import { Tail } from './tail.ts';

/** The part of the agent's stderr that an error message quotes. */
const ERROR_TAIL_BYTES = 2048;

/** One of the agent's streams as redacted text. */
class TextStream {
  readonly #decoder = new StringDecoder('utf8');
  readonly #redactor: Redactor;
  readonly #onText: (text: string) => void;

  constructor(secrets: readonly string[], onText: (text: string) => void) {
    this.#redactor = new Redactor(secrets);
    this.#onText = onText;
  }

  push(bytes: Buffer): void {
    this.#emit(this.#redactor.push(this.#decoder.write(bytes)));
  }

  end(): void {
    this.#emit(this.#redactor.push(this.#decoder.end()) + this.#redactor.end());
  }

  #emit(text: string): void {
    if (text) this.#onText(text);
  }
}

/**
 * The readable text of one turn. All of it goes to the runner's stderr, as it comes; the end of it is kept for the
 * turn's `log` message. After `close` text still goes to stderr: a background process may write long after the turn.
 */
export class TurnLog {
  readonly #tail = new Tail(MAX_LOG_BYTES);
  readonly #errorTail = new Tail(ERROR_TAIL_BYTES);
  readonly #stdout: TextStream;
  readonly #stderr: TextStream;

  constructor(secrets: readonly string[], write: (text: string) => void) {
    const keep = (text: string, tails: Tail[]) => {
      write(text);
      for (const tail of tails) tail.push(text);
    };
    this.#stdout = new TextStream(secrets, (text) => keep(text, [this.#tail]));
    this.#stderr = new TextStream(secrets, (text) => keep(text, [this.#tail, this.#errorTail]));
  }

  stdout(bytes: Buffer): void {
    this.#stdout.push(bytes);
  }

  stderr(bytes: Buffer): void {
    this.#stderr.push(bytes);
  }

  /** Writes what is held back because a secret might go on in it. */
  flush(): void {
    this.#stdout.end();
    this.#stderr.end();
  }

  /** The turn's text ends here. */
  close(): { text: string; bytes: number; truncated: boolean } {
    this.flush();
    const text = this.#tail.text();
    return { text, bytes: this.#tail.bytes, truncated: Buffer.byteLength(text) < this.#tail.bytes };
  }

  /** The end of what the agent wrote to stderr. */
  errorTail(): string {
    this.#stderr.end();
    return this.#errorTail.text().trim();
  }
}
