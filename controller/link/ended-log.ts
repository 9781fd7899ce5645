import { MAX_MESSAGE_BYTES } from '../../core/frames/messages.ts';
import { open } from '../../core/frames/seal.ts';
import {
  CLOSE,
  END,
  type FrameHeader,
  MAX_BODY_CHARS,
  MAX_HEADER_BYTES,
  PART_BYTES,
  parseFrameHeader,
  START,
} from '../../core/frames/wire.ts';

/** Maximum bytes of a line in the container runtime's log; a longer line is split into several. */
const RUNTIME_LINE = 16 * 1024;
/** Longest end line of a frame, bytes. */
const MAX_END_BYTES = 64;
/**
 * Maximum ends of frames whose beginnings are looked for at once. Frames are written one after the other; only text that looks like
 * the end of one can come between.
 */
const MAX_OPEN = 4;
/** Maximum lines between the beginning and the end of a frame that are tried as its body: those next to the beginning. */
const MAX_BODIES = 32;
/** Characters of the shortest body: IV and tag in base64. */
const MIN_BODY_CHARS = 40;
/** Maximum boot nonces tried. A container has one; text that looks like frames may name others. */
const MAX_BOOTS = 16;
const MAX_PARTS = Math.ceil(MAX_MESSAGE_BYTES / PART_BYTES);
/** Work on one log: attempts to open a body, and bytes of these. A log of 10 MiB with nothing but small frames needs less. */
const MAX_TRIES = 64 * 1024;
const MAX_TRIED_BYTES = 64 * 1024 * 1024;
/** Bytes and lines read, attempts, and bytes of these between two pauses: a few milliseconds of work. */
const STEP = { bytes: 256 * 1024, lines: 8 * 1024, tries: 256, triedBytes: 1024 * 1024 };
/** Characters of the shortest line of a frame. */
const MIN_LINE = END.length + '1/1'.length + CLOSE.length;

/** A whole message of the runner. */
export interface LoggedMessage {
  seq: number;
  kind: string;
  packed: Buffer;
}

/** The runner's messages found in the log of an ended container. */
export interface LoggedFrames {
  /** Messages in the order of their numbers, each once. Some are missing where the log has lost their frames. */
  messages: LoggedMessage[];
  /** Boot nonce that the frames name, and the index of the key that opens them among the keys of that nonce. */
  boot: string;
  key: number;
}

/** What is asked of the reading of a log. */
export interface LogRequest {
  session: string;
  incarnation: number;
  /** Returns the keys to try for a boot nonce. */
  keysOf(boot: string): Buffer[];
  /** Waits between two pieces of work, so that others have their turn. */
  pause(): Promise<void>;
  /** Handler of a log with more text that looks like frames than is tried: its beginning is not read. */
  onCut(): void;
}

/** The parts of a message that have opened, by their numbers. */
interface Gathered {
  kind: string;
  parts: number;
  pieces: Map<number, Buffer>;
}

/** An end of a frame, or the end of the log, and the lines before it that may be the frame's body: those next to the beginning. */
interface Ended {
  seq: number;
  part: number;
  bodies: Buffer[];
}

/**
 * Finds the frames of a session in a log that also has stderr: by line, or, where a line of text is longer than the runtime's limit,
 * behind a full piece of it. A frame is a header, a body that opens with it, and the end of the same number, with any text between
 * them, even text that looks like parts of a frame. The log is read once, from its end, as the last frames matter most.
 */
export async function framesInLog(log: Buffer, request: LogRequest): Promise<LoggedFrames | undefined> {
  const reading = new Reading(request);
  let [bytes, lines] = [0, 0];
  for (let end = log.length; end >= 0; ) {
    const start = end === 0 ? 0 : log.lastIndexOf(0x0a, end - 1) + 1;
    if (end - start >= MIN_LINE && !reading.line(log.subarray(start, end))) {
      request.onCut();
      break;
    }
    bytes += end - start + 1;
    lines += 1;
    end = start - 1;
    if (bytes < STEP.bytes && lines < STEP.lines && !reading.needsPause) continue;
    [bytes, lines] = [0, 0];
    reading.paused();
    await request.pause();
  }
  return reading.found();
}

class Reading {
  readonly #request: LogRequest;
  readonly #keys = new Map<string, Buffer[]>();
  #found: { boot: string; key: number } | undefined;
  /** The last end first. A frame whose end the container did not live to print stands at the end of the log. */
  #open: Ended[] = [{ seq: -1, part: -1, bodies: [] }];
  /** Message number → the parts that opened. */
  readonly #messages = new Map<number, Gathered>();
  readonly #work = { tries: 0, triedBytes: 0 };
  #atPause = { tries: 0, triedBytes: 0 };

  constructor(request: LogRequest) {
    this.#request = request;
  }

  get needsPause(): boolean {
    const { tries, triedBytes } = this.#work;
    return tries - this.#atPause.tries >= STEP.tries || triedBytes - this.#atPause.triedBytes >= STEP.triedBytes;
  }

  paused(): void {
    this.#atPause = { ...this.#work };
  }

  /** Takes the line before all that were taken. Returns false once the log has cost as much as one may. */
  line(line: Buffer): boolean {
    if (line.length >= CLOSE.length && line.toString('latin1', line.length - CLOSE.length) === CLOSE) {
      const end = endIn(line);
      if (end) this.#ends(end);
      else if (this.#open.length > 0) this.#begins(line);
    } else if (this.#open.length > 0) {
      const body = line.subarray(line.length - (line.length % RUNTIME_LINE));
      if (!isBody(body)) return true;
      for (const { bodies } of this.#open) if (bodies.unshift(body) > MAX_BODIES) bodies.pop();
    }
    return this.#work.tries < MAX_TRIES && this.#work.triedBytes < MAX_TRIED_BYTES;
  }

  found(): LoggedFrames | undefined {
    if (!this.#found) return undefined;
    const messages: LoggedMessage[] = [];
    for (const [seq, { kind, parts, pieces }] of [...this.#messages].sort(([a], [b]) => a - b)) {
      if (pieces.size < parts) continue;
      const whole = Array.from({ length: parts }, (_, index) => pieces.get(index + 1) as Buffer);
      messages.push({ seq, kind, packed: Buffer.concat(whole) });
    }
    return { messages, ...this.#found };
  }

  #ends({ seq, part }: { seq: number; part: number }): void {
    if (this.#has(seq, part) || this.#open.some((other) => other.seq === seq && other.part === part)) return;
    this.#open = [{ seq, part, bodies: [] }, ...this.#open].slice(0, MAX_OPEN);
  }

  #begins(line: Buffer): void {
    const begun = beginning(line);
    if (!begun) return;
    const { header, associated } = begun;
    const { session, incarnation } = this.#request;
    if (header.session !== session || header.incarnation !== incarnation || header.seq === 0) return;
    if (header.parts > MAX_PARTS || this.#has(header.seq, header.part)) return;
    const ended =
      this.#open.find(({ seq, part }) => seq === header.seq && part === header.part) ??
      this.#open.find(({ seq }) => seq === -1);
    if (!ended) return;
    // Only the frame that was printed last can be without its end.
    if (ended.seq === -1) this.#open = this.#open.filter((other) => other !== ended);
    for (const body of ended.bodies) {
      // All parts but the last are full.
      if (header.part < header.parts && body.length !== MAX_BODY_CHARS) continue;
      const plain = this.#opened(header, associated, body);
      if (!plain) continue;
      this.#keep(header, plain);
      this.#open = this.#open.filter((other) => other !== ended);
      for (const other of this.#open) other.bodies = other.bodies.filter((one) => one !== body);
      return;
    }
  }

  #opened({ boot }: FrameHeader, associated: Buffer, body: Buffer): Buffer | undefined {
    if (this.#found && this.#found.boot !== boot) return undefined;
    if (!this.#keys.has(boot) && this.#keys.size < MAX_BOOTS) this.#keys.set(boot, this.#request.keysOf(boot));
    const sealed = Buffer.from(body.toString('latin1'), 'base64');
    for (const [key, secret] of (this.#keys.get(boot) ?? []).entries()) {
      if (this.#found && this.#found.key !== key) continue;
      this.#work.tries += 1;
      this.#work.triedBytes += sealed.length;
      const plain = open(secret, sealed, associated);
      if (!plain) continue;
      this.#found = { boot, key };
      return plain;
    }
    return undefined;
  }

  #has(seq: number, part: number): boolean {
    return this.#messages.get(seq)?.pieces.has(part) === true;
  }

  #keep({ seq, kind, part, parts }: FrameHeader, plain: Buffer): void {
    const message = this.#messages.get(seq) ?? { kind, parts, pieces: new Map() };
    if (message.kind !== kind || message.parts !== parts) return;
    message.pieces.set(part, plain);
    this.#messages.set(seq, message);
  }
}

function endIn(line: Buffer): { seq: number; part: number } | undefined {
  const text = line.toString('latin1', Math.max(0, line.length - MAX_END_BYTES));
  const at = text.lastIndexOf(END);
  const [, seq, part] = (at !== -1 && /^(\d{1,15})\/(\d{1,9})$/.exec(text.slice(at + END.length, -CLOSE.length))) || [];
  return seq === undefined ? undefined : { seq: Number(seq), part: Number(part) };
}

function beginning(line: Buffer): { header: FrameHeader; associated: Buffer } | undefined {
  const tail = line.subarray(Math.max(0, line.length - MAX_HEADER_BYTES));
  const at = tail.lastIndexOf(START);
  if (at === -1) return undefined;
  const associated = tail.subarray(at + START.length, -CLOSE.length);
  const header = parseFrameHeader(associated.toString());
  return header && { header, associated };
}

function isBody(body: Buffer): boolean {
  if (body.length < MIN_BODY_CHARS || body.length > MAX_BODY_CHARS || body.length % 4 !== 0) return false;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(body.toString('latin1'));
}
