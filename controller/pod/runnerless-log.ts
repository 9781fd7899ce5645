import { StringDecoder } from 'node:string_decoder';
import { BrokenMarks } from '../../core/pod-log/marks.ts';
import { MAX_LOG_BYTES } from '../../core/resources/limits.ts';
import { hiddenByRules, type RedactionRules } from '../../core/resources/redaction.ts';
import { type Conclusion, conclude } from '../../core/result/conclude.ts';
import { ENVELOPE_EXAMPLE, type Envelope, parseEnvelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { foundInstead, NoResult, OtherMarker } from '../../core/result/no-result.ts';
import { MAX_RAW_BYTES, tooLarge } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { type Block, MarkerScanner } from '../../core/text/markers.ts';
import { Redactor } from '../../core/text/redact.ts';
import { Tail } from '../../core/text/tail.ts';

/** Bytes at the end of the log that an error message quotes. */
const ERROR_TAIL_BYTES = 2048;
const ADVICE = `Print $BERTH_RESULT_START_MARKER, an envelope such as ${ENVELOPE_EXAMPLE}, and $BERTH_RESULT_END_MARKER`;
const ROTATED =
  'A kubelet serves only the newest file of a log (10 MiB by default), so print the result last, and less around it';

/** Consumes the log of a runnerless pod and finds the turn's result in it. */
export class RunnerlessLog {
  readonly #scanner: MarkerScanner;
  readonly #decoder = new StringDecoder('utf8');
  readonly #hidden: Hidden;
  readonly #redactor: Redactor;
  readonly #tail = new Tail(MAX_LOG_BYTES);
  /** Nothing that the program printed is an event of Berth's, so it does not look like one. */
  readonly #marks = new BrokenMarks();
  readonly #other = new OtherMarker();
  #bytes = 0;

  /**
   * `rules` are the class's. The values of the agent's Secrets are unknown here; text that looks
   * like a secret is redacted all the same.
   */
  constructor(markers: { start: string; end: string }, rules: RedactionRules = { patterns: [] }) {
    this.#hidden = hiddenByRules(rules);
    this.#redactor = new Redactor(this.#hidden.logs);
    const onLog = (bytes: Buffer) => {
      this.#other.push(bytes);
      this.#tail.push(this.#marks.push(this.#redactor.push(this.#decoder.write(bytes))));
    };
    this.#scanner = new MarkerScanner({ ...markers, maxBytes: MAX_RAW_BYTES, onLog });
  }

  push(bytes: Buffer): void {
    this.#bytes += bytes.length;
    this.#scanner.push(bytes);
  }

  /** Ends the log; returns the result block and the redacted end of the log. */
  finish(): { block: Block; log: { text: string; bytes: number; truncated: boolean } } {
    const block = this.#scanner.end();
    this.#tail.push(this.#marks.push(this.#redactor.push(this.#decoder.end()) + this.#redactor.end()));
    const text = this.#tail.text();
    return { block, log: { text, bytes: this.#tail.bytes, truncated: Buffer.byteLength(text) < this.#tail.bytes } };
  }

  /**
   * Concludes the turn. `exitCode` is undefined for a program that was ended from outside: then the result decides.
   * `lateSeconds`: seconds from the program's start that are missing from the log, where that is more than a program is
   * silent at its start.
   */
  conclude(block: Block, text: string, exitCode: number | undefined, lateSeconds?: number): Conclusion {
    return conclude({
      exit: exitCode === undefined ? undefined : { code: exitCode, signal: null },
      stopped: undefined,
      result: this.#result(block, lateSeconds),
      errorTail: text.slice(-ERROR_TAIL_BYTES).trim(),
      secrets: this.#hidden,
    });
  }

  #result(block: Block, lateSeconds: number | undefined): Envelope | TurnFailure | NoResult {
    if (block.type === 'TooLarge') return tooLarge(block.bytes);
    if (block.type === 'None') return this.#noResult(block, lateSeconds);
    try {
      const envelope = parseEnvelope(block.bytes.toString('utf8'), 'the result between the markers', this.#hidden);
      if (envelope.status !== 'approval') return envelope;
      const message =
        'the result between the markers: "status" is "approval", but nobody can be asked with runner None';
      return new TurnFailure('InvalidResult', message);
    } catch (error) {
      if (error instanceof TurnFailure) return error;
      throw error;
    }
  }

  #noResult(block: Block & { type: 'None' }, lateSeconds: number | undefined): NoResult {
    const facts = { stream: 'log', bytes: this.#bytes } as const;
    if (block.seen === 'End') {
      const found = 'the end marker is there without its start, which has been rotated away or was never printed';
      return new NoResult({ ...facts, found, advice: ROTATED });
    }
    const found = foundInstead(block, this.#other);
    if (found !== undefined || lateSeconds === undefined) return new NoResult({ ...facts, found, advice: ADVICE });
    const late = `nothing of the program’s first ${lateSeconds} s is there: it printed nothing in that time, or that has been rotated away`;
    return new NoResult({ ...facts, found: late, advice: ROTATED });
  }
}
