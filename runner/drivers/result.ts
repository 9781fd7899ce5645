import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { MAX_OUTPUT_BYTES } from '../../core/resources/limits.ts';
import { ENVELOPE_EXAMPLE, type Envelope, parseEnvelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { foundInstead, NoResult, OtherMarker } from '../../core/result/no-result.ts';
import { MAX_RAW_BYTES, parseJson, tooLarge } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { type Block, MarkerScanner } from '../../core/text/markers.ts';
import { JsonLinesReader } from './json-lines.ts';

/** Reads the agent's stdout and finds the result. */
export interface ResultReader {
  push(bytes: Buffer): void;
  /**
   * Returns the result, at the end of the agent's stdout or of the wait for it; undefined if the reader looks for none.
   * Throws a TurnFailure when the result is invalid.
   */
  finish(): Envelope | NoResult | undefined;
}

export interface ReaderOptions {
  markers: { start: string; end: string };
  /** Path at which an agent can leave an envelope instead of printing it between the markers. */
  file: string;
  secrets: Hidden;
  /** Handler of the stdout that is not part of the result. */
  onLog: (bytes: Buffer) => void;
  /** Handler of the objects of JsonLines that are not the result. */
  onEvent: (event: Record<string, unknown>) => void;
}

export function resultReader({ result, jsonLines }: AgentSpec, options: ReaderOptions): ResultReader {
  if (result === 'Envelope') return new EnvelopeReader(options);
  if (result === 'JsonLines') return new JsonLinesReader(jsonLines ?? { resultWhen: {} }, options);
  if (result === 'Json') {
    return new WholeReader(MAX_RAW_BYTES, (text) =>
      parseJson(text, 'stdout', options.secrets, { advice: JSON_ADVICE }),
    );
  }
  return new WholeReader(MAX_OUTPUT_BYTES, (text) => text);
}

const TEXT_ADVICE = 'set agent.result to Text (berth run --result text) to take all of stdout as the result';
const JSON_ADVICE = `With agent.result Json all of stdout is the result: print everything else to stderr, or ${TEXT_ADVICE}`;
const ENVELOPE_ADVICE = `Print $BERTH_RESULT_START_MARKER, an envelope such as ${ENVELOPE_EXAMPLE}, and $BERTH_RESULT_END_MARKER; or write the envelope to the file $BERTH_RESULT_FILE; or ${TEXT_ADVICE}`;

/**
 * Reads an envelope from the result file or from between the markers. The file wins, because it is never written by
 * accident.
 */
class EnvelopeReader implements ResultReader {
  readonly #options: ReaderOptions;
  readonly #scanner: MarkerScanner;
  readonly #other = new OtherMarker();
  #bytes = 0;

  constructor(options: ReaderOptions) {
    this.#options = options;
    const onLog = (bytes: Buffer) => {
      this.#other.push(bytes);
      options.onLog(bytes);
    };
    this.#scanner = new MarkerScanner({ ...options.markers, maxBytes: MAX_RAW_BYTES, onLog });
  }

  push(bytes: Buffer): void {
    this.#bytes += bytes.length;
    this.#scanner.push(bytes);
  }

  finish(): Envelope | NoResult {
    const printed = this.#scanner.end();
    const filed = readResultFile(this.#options.file);
    const block = typeof filed === 'string' ? printed : filed;
    if (block.type === 'None') {
      const empty = filed === 'Empty' ? 'the file BERTH_RESULT_FILE is empty' : undefined;
      const found = foundInstead(block, this.#other) ?? empty;
      return new NoResult({ stream: 'stdout', bytes: this.#bytes, found, advice: ENVELOPE_ADVICE });
    }
    if (block.type === 'TooLarge') throw tooLarge(block.bytes);
    const where = block === printed ? 'the result between the markers' : 'the result in BERTH_RESULT_FILE';
    return parseEnvelope(block.bytes.toString('utf8'), where, this.#options.secrets);
  }
}

/** Reader for which all of stdout is the result. */
class WholeReader implements ResultReader {
  readonly #maxBytes: number;
  readonly #parse: (text: string) => unknown;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, parse: (text: string) => unknown) {
    this.#maxBytes = maxBytes;
    this.#parse = parse;
  }

  push(bytes: Buffer): void {
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#maxBytes) this.#pieces.push(bytes);
    else this.#pieces = [];
  }

  finish(): Envelope {
    if (this.#bytes > this.#maxBytes) throw tooLarge(this.#bytes);
    return { status: 'success', output: this.#parse(Buffer.concat(this.#pieces, this.#bytes).toString('utf8')) };
  }
}

/** Reads the result file. The agent created it: it may be a link, a pipe or of any size. */
function readResultFile(path: string): Exclude<Block, { type: 'None' }> | 'Absent' | 'Empty' {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'Absent';
    throw unreadable((error as NodeJS.ErrnoException).code);
  }
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile()) throw unreadable('it is not a regular file');
    if (size > MAX_RAW_BYTES) return { type: 'TooLarge', bytes: size };
    const bytes = Buffer.alloc(size);
    let length = 0;
    for (let n = -1; n !== 0 && length < size; length += n) n = readSync(fd, bytes, length, size - length, length);
    return length ? { type: 'Found', bytes: bytes.subarray(0, length) } : 'Empty';
  } finally {
    closeSync(fd);
  }
}

function unreadable(why: string | undefined): TurnFailure {
  return new TurnFailure('InvalidResult', `BERTH_RESULT_FILE cannot be read: ${why ?? 'unknown error'}`);
}
