import { StringDecoder } from 'node:string_decoder';
import { BrokenMarks } from '../../core/pod-log/marks.ts';
import { MAX_LOG_BYTES } from '../../core/resources/limits.ts';
import type { Hidden, Rules } from '../../core/text/hidden.ts';
import { Redactor } from '../../core/text/redact.ts';
import { Tail } from '../../core/text/tail.ts';
import type { PodText } from './pod-text.ts';

/** Length of the end of stderr that an error message quotes, bytes. */
const ERROR_TAIL_BYTES = 2048;

/** A stream of the agent, redacted for each reader by the reader's own rules. */
class TextStream {
  readonly #decoder = new StringDecoder('utf8');
  readonly #readers: { redactor: Redactor; onText: (text: string) => void }[] = [];

  /** Passes on the redacted text, from now on. */
  read(rules: Rules, onText: (text: string) => void, onHidden?: () => void): void {
    this.#readers.push({ redactor: new Redactor(rules, onHidden), onText });
  }

  push(bytes: Buffer): void {
    const piece = this.#decoder.write(bytes);
    for (const { redactor, onText } of this.#readers) emit(redactor.push(piece), onText);
  }

  end(): void {
    const piece = this.#decoder.end();
    for (const { redactor, onText } of this.#readers) emit(redactor.push(piece) + redactor.end(), onText);
  }
}

function emit(text: string, onText: (text: string) => void): void {
  if (text) onText(text);
}

export interface WrittenText {
  /** End of the text. */
  text: string;
  /** Bytes of the whole text. */
  bytes: number;
  truncated: boolean;
}

/** Receives the text of a turn as it arrives, redacted like an output. */
export interface LogObserver {
  stdout(text: string): void;
  stderr(text: string): void;
  /** Handler of each value that was hidden in the text. */
  hidden(): void;
}

/**
 * Readable text of one turn. All of it goes to the pod's text as it arrives; its end is kept for the turn's `log`
 * message. After `close` text still goes to the pod's, because a background process may write long after the turn.
 */
export class TurnLog {
  readonly #tail = new Tail(MAX_LOG_BYTES);
  readonly #errorTail = new Tail(ERROR_TAIL_BYTES);
  readonly #stdout = new TextStream();
  readonly #stderr = new TextStream();
  readonly #secrets: Hidden;
  readonly #podText: PodText;
  #marks = new BrokenMarks();
  /** True while the last line of the turn's text has not ended. */
  #midLine = false;

  constructor(secrets: Hidden, podText: PodText) {
    this.#secrets = secrets;
    this.#podText = podText;
    const keep = (text: string) => {
      this.#podText.push(text);
      this.#keep(text);
    };
    const { logs, errors } = secrets;
    const quote = (text: string) => this.#errorTail.push(text);
    this.#stdout.read(logs, keep);
    if (errors === logs) {
      this.#stderr.read(logs, (text) => {
        keep(text);
        quote(text);
      });
    } else {
      this.#stderr.read(logs, keep);
      this.#stderr.read(errors, quote);
    }
  }

  /** Passes on the text of each stream, redacted like an output, from now on. */
  observe(observer: LogObserver): void {
    const { outputs } = this.#secrets;
    const onHidden = () => observer.hidden();
    this.#stdout.read(outputs, (text) => observer.stdout(text), onHidden);
    this.#stderr.read(outputs, (text) => observer.stderr(text), onHidden);
  }

  stdout(bytes: Buffer): void {
    this.#stdout.push(bytes);
  }

  stderr(bytes: Buffer): void {
    this.#stderr.push(bytes);
  }

  /** Writes the text that is held back because a secret might continue in it. */
  flush(): void {
    this.#stdout.end();
    this.#stderr.end();
  }

  /** Begins with the turn's earlier text, written by a process that ended. */
  goOn(before: WrittenText | undefined): void {
    if (before) this.#tail.resume(before.text, before.bytes);
  }

  /** Writes redacted text on lines of its own, also between output of the agent. */
  lines(text: string): void {
    this.#podText.lines(text);
    if (this.#midLine) this.#keep('\n');
    this.#keep(text);
  }

  /** Writes the line of an event. */
  event(line: string): void {
    this.#podText.own(line);
    if (this.#midLine) this.#keep('\n');
    this.#tail.push(line);
    this.#marks = new BrokenMarks();
  }

  #keep(text: string): void {
    this.#tail.push(this.#marks.push(text));
    this.#midLine = !text.endsWith('\n');
  }

  /** Ends the turn's text, and its last line in the pod's: a line that goes on is not printed, and the next turn has its own. */
  close(): WrittenText {
    this.flush();
    this.#podText.endLine();
    const text = this.#tail.text();
    return { text, bytes: this.#tail.bytes, truncated: Buffer.byteLength(text) < this.#tail.bytes };
  }

  /** Returns the end of the agent's stderr. */
  errorTail(): string {
    this.#stderr.end();
    return this.#errorTail.text().trim();
  }
}
