import { StringDecoder } from 'node:string_decoder';
import { MAX_LOG_BYTES } from '../../core/resources/limits.ts';
import type { Hidden } from '../../core/text/redact.ts';
import { Redactor } from '../../core/text/redact.ts';
import { Tail } from '../../core/text/tail.ts';

/** The part of the agent's stderr that an error message quotes. */
const ERROR_TAIL_BYTES = 2048;

/** One of the agent's streams as redacted text. */
class TextStream {
  readonly #decoder = new StringDecoder('utf8');
  readonly #redactor: Redactor;
  readonly #onText: (text: string) => void;

  constructor(secrets: Hidden, onText: (text: string) => void) {
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

export interface WrittenText {
  /** The end of it. */
  text: string;
  /** Bytes of all of it. */
  bytes: number;
  truncated: boolean;
}

/** Takes redacted text, as it comes. */
export interface LogObserver {
  stdout(text: string): void;
  stderr(text: string): void;
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
  #observer: LogObserver | undefined;
  readonly #write: (text: string) => void;
  /** What came last did not end its line. */
  #midLine = false;

  constructor(secrets: Hidden, write: (text: string) => void) {
    this.#write = (text) => {
      write(text);
      this.#midLine = !text.endsWith('\n');
    };
    const keep = (text: string, tails: Tail[]) => {
      this.#write(text);
      for (const tail of tails) tail.push(text);
    };
    this.#stdout = new TextStream(secrets, (text) => {
      keep(text, [this.#tail]);
      this.#observer?.stdout(text);
    });
    this.#stderr = new TextStream(secrets, (text) => {
      keep(text, [this.#tail, this.#errorTail]);
      this.#observer?.stderr(text);
    });
  }

  /** Hands on the redacted text of each stream, from now on. */
  observe(observer: LogObserver): void {
    this.#observer = observer;
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

  /** Begins with what the turn wrote up to here, in a process that ended. */
  goOn(before: WrittenText | undefined): void {
    if (before) this.#tail.resume(before.text, before.bytes);
  }

  /** Redacted text that stands on lines of its own, also between what the agent writes. */
  lines(text: string): void {
    for (const piece of this.#midLine ? ['\n', text] : [text]) {
      this.#write(piece);
      this.#tail.push(piece);
    }
  }

  /** The turn's text ends here. */
  close(): WrittenText {
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
