import type { AgentSpec } from '../../core/frames/messages.ts';
import { isRawNumber, parseExact } from '../../core/json.ts';
import { describeProblem, findJsonProblem, type JsonProblem } from '../../core/json-problem.ts';
import { MAX_EVENT_BYTES } from '../../core/resources/limits.ts';
import { isObject } from '../../core/result/describe.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { NoResult } from '../../core/result/no-result.ts';
import { checkDepth, MAX_RAW_BYTES, tooLarge } from '../../core/result/output.ts';
import { LineSplitter } from '../text/lines.ts';

type JsonLines = NonNullable<AgentSpec['jsonLines']>;

/**
 * Finds the result among lines of JSON by the rules of `agent.jsonLines`. Every other line that is a JSON object is an
 * event, the rest is log.
 */
export class JsonLinesReader {
  readonly #spec: JsonLines;
  readonly #onLog: (bytes: Buffer) => void;
  readonly #onEvent: (event: Record<string, unknown>) => void;
  readonly #lines: LineSplitter;
  /** Last line of each kind. */
  #result: Record<string, unknown> | undefined;
  #output: Record<string, unknown> | undefined;
  #error: Record<string, unknown> | undefined;
  #tooLong = 0;
  #bytes = 0;
  /** Number of lines that are JSON objects. */
  #objects = 0;
  /** Number of lines that only begin like one, and the last of them. */
  #broken = 0;
  #lastBroken: Buffer | undefined;

  constructor(
    spec: JsonLines,
    on: { onLog: (bytes: Buffer) => void; onEvent: (event: Record<string, unknown>) => void },
  ) {
    this.#spec = spec;
    this.#onLog = on.onLog;
    this.#onEvent = on.onEvent;
    this.#lines = new LineSplitter({
      maxBytes: MAX_RAW_BYTES,
      onLine: (line) => this.#line(line),
      onTooLong: (piece) => {
        this.#tooLong += piece.length;
        this.#onLog(piece);
      },
    });
  }

  push(bytes: Buffer): void {
    this.#bytes += bytes.length;
    this.#lines.push(bytes);
  }

  /**
   * Returns the result. Throws a TurnFailure when it has no value at the pointer of the output.
   */
  finish(): Envelope | NoResult {
    this.#lines.end();
    const { error, output, usage = {} } = this.#spec;
    if (this.#error) {
      const value = valueAt(this.#error, error ?? '');
      checkDepth(this.#error, 'the error');
      return { status: 'error', error: textOf(value ?? this.#error), ...this.#usage(usage, this.#error) };
    }
    if (!this.#result && this.#tooLong) throw tooLarge(this.#tooLong);
    if (!this.#result) {
      return new NoResult({
        stream: 'stdout',
        bytes: this.#bytes,
        found: `none of the ${this.#objects} JSON objects in lines of stdout is the one that agent.jsonLines.resultWhen describes${this.#brokenLines()}`,
        advice: 'Print such a line, or correct resultWhen',
      });
    }
    const line = this.#spec.outputWhen ? this.#output : this.#result;
    if (!line) {
      throw new TurnFailure('InvalidResult', 'no line on stdout is the one that agent.jsonLines.outputWhen describes');
    }
    const value = valueAt(line, output ?? '');
    if (value === undefined) {
      throw new TurnFailure('InvalidResult', `the result has nothing at agent.jsonLines.output, ${output}`);
    }
    checkDepth(value, 'the output');
    return { status: 'success', output: value, ...this.#usage(usage, this.#result) };
  }

  /** Clause about lines that are no JSON objects, as the result may be one of them; empty if there is none. */
  #brokenLines(): string {
    if (!this.#lastBroken) return '';
    const { column, ...problem } = findJsonProblem(this.#lastBroken.toString('utf8'));
    const lines = this.#broken === 1 ? '1 line begins' : `${this.#broken} lines begin`;
    return `; ${lines} like an object and ${this.#broken === 1 ? 'is' : 'are'} no JSON, the last at column ${column}: ${describeProblem(problem as JsonProblem)}`;
  }

  #line(line: Buffer): void {
    const value = parsed(line);
    if (value === 'Broken') {
      this.#broken += 1;
      this.#lastBroken = line;
    }
    if (!value || value === 'Broken') {
      this.#onLog(line);
      return;
    }
    this.#objects += 1;
    const { resultWhen, outputWhen, errorWhen } = this.#spec;
    const isError = errorWhen !== undefined && matches(value, errorWhen);
    const isResult = matches(value, resultWhen);
    if (isResult) {
      this.#result = value;
      this.#error = undefined;
    }
    if (isError) this.#error = value;
    if (outputWhen && matches(value, outputWhen)) this.#output = value;
    if (isError || isResult) return;
    if (line.length > MAX_EVENT_BYTES) this.#onLog(line);
    else this.#onEvent(value);
  }

  #usage(pointers: Record<string, string>, line: Record<string, unknown>): Pick<Envelope, 'metadata'> {
    const found = Object.entries(pointers).flatMap(([name, pointer]) => {
      const value = valueAt(line, pointer);
      return typeof value === 'number' || isRawNumber(value) ? [[name, value] as const] : [];
    });
    return found.length ? { metadata: { usage: Object.fromEntries(found) } } : {};
  }
}

/** Returns the object of a line; `Broken` for one that only begins like an object. */
function parsed(line: Buffer): Record<string, unknown> | 'Broken' | undefined {
  if (!/^\s*\{/.test(line.toString('latin1', 0, 64))) return undefined;
  try {
    const value = parseExact(line.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return 'Broken';
  }
}

/** Reports whether each pointer finds a string, number, boolean or null with the expected text. */
function matches(line: Record<string, unknown>, when: Record<string, string>): boolean {
  return Object.entries(when).every(([pointer, expected]) => {
    const value = valueAt(line, pointer);
    if (isRawNumber(value)) return value.rawJSON === expected;
    return value !== undefined && typeof value !== 'object'
      ? String(value) === expected
      : value === null && expected === 'null';
  });
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Returns the value at a JSON pointer (RFC 6901); undefined where there is none. The empty pointer is the whole value.
 */
export function valueAt(value: unknown, pointer: string): unknown {
  let found = value;
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || isRawNumber(found) || !Object.hasOwn(found, key))
      return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}
