/** Decoder of a pod's stdout: bytes come in, in any pieces; frames go out, in order. */
import { Assembly } from './assembly.ts';
import { LineSplitter } from './lines.ts';
import { unpackLog } from './log-text.ts';
import { type Dropped, type Frame, type FrameKind, type Log, MAX_MESSAGE_BYTES, type Ready } from './messages.ts';
import { open } from './seal.ts';
import { validateFrame } from './validate.ts';
import {
  type Address,
  CLOSE,
  END,
  type FrameHeader,
  isCount,
  MAX_BODY_CHARS,
  MAX_HEADER_BYTES,
  MAX_LINE_BYTES,
  PART_BYTES,
  parseFrameHeader,
  START,
  sameAddress,
  unpackMessage,
} from './wire.ts';

export type FrameEvent =
  /** The next frame in order, and the length of its message. */
  | { type: 'frame'; frame: Frame; bytes: number }
  /** The runner no longer holds from..to; the next frame is `to + 1`. `from` can be lower than the expected number. */
  | { type: 'dropped'; dropped: Dropped }
  /**
   * A later frame arrived while from..to is missing: ask `resend {from}`. Reported again whenever a later frame arrives
   * again.
   */
  | { type: 'gap'; from: number; to: number }
  /** A part of the next frame was dropped because there is no room for the frame; ask `resend` once there is. */
  | { type: 'noRoom' }
  /** A ready frame is in clear and unauthenticated: it alone must not cause any action. */
  | { type: 'ready'; ready: Ready }
  /** The runner sealed a message that this protocol does not have. The cursor has moved past it. */
  | { type: 'malformed'; seq: number; kind: string; problem: string };

/** Answer to the question whether there is room for a message; `TooLarge`: there never will be. */
export type Room = 'Taken' | 'Wait' | 'TooLarge';

/**
 * Limits of the JSON of a message, bytes; to parse much more would take long. A result has the output, and a log of old runners
 * its text.
 */
const MAX_JSON_BYTES: Partial<Record<string, number>> = { result: 16 * 1024 * 1024, log: 8 * 1024 * 1024 };
const MAX_OTHER_JSON_BYTES = 1024 * 1024;

/** Numbers of pieces that had no effect, by cause. They only grow. */
export type DecoderCounters = ReturnType<typeof noneRefused>;

export const noneRefused = () => ({
  /** Frames without header, body or end. */
  torn: 0,
  repeated: 0,
  /** Frames that are not sealed with the key of this pod, or that are sealed with another header. */
  forged: 0,
  /** Frames of another session, incarnation or boot. */
  foreign: 0,
  tooLarge: 0,
  /** Frames that arrived before the keys were known. */
  unkeyed: 0,
  /** Frames that arrived while an earlier frame was missing. */
  early: 0,
  malformed: 0,
  /** Bytes of lines that are not part of a frame. */
  junkBytes: 0,
});

/**
 * Estimates of what a piece of output costs its reader, microseconds of a CPU (measured on one of 2024), besides each byte of a frame's
 * body. What comes at once is worth a reconcile. A line and a byte of junk cost the runtime's log, the kubelet and the API server
 * more than their reader; a runner has no reason to print any.
 */
const COST = {
  line: 1,
  torn: 0.3,
  lineByte: 0.001,
  junkByte: 0.05,
  header: 6,
  frame: 12,
  bodyByte: 0.003,
  message: 60,
  reconcile: 440,
  ignored: 30,
};

interface Piece {
  header: FrameHeader;
  /** The header's bytes as they were received. */
  associated: Buffer;
}

const START_BYTES = Buffer.from(START);
const HEADER_START = Buffer.from('{"v":');
const HEADER_END = Buffer.from(`}${CLOSE}`);

/** Reports whether the rest of a line that begins a frame can be a header: a look at its ends is cheaper than to parse it. */
function isHeader(rest: Buffer): boolean {
  if (rest.length < HEADER_START.length + HEADER_END.length || rest.length > MAX_HEADER_BYTES) return false;
  const end = rest.length - HEADER_END.length;
  return (
    rest.compare(HEADER_START, 0, HEADER_START.length, 0, HEADER_START.length) === 0 &&
    rest.compare(HEADER_END, 0, HEADER_END.length, end) === 0
  );
}

/**
 * Decoder with one instance per pod and boot nonce: its cursor outlives the connections that carry the bytes. Frames
 * are delivered in the order of their numbers, without a gap. A missing frame is reported, and later frames are dropped
 * because the resend brings them. Never throws on any bytes. Holds one line and the parts of one message.
 */
export class FrameDecoder {
  readonly counters: DecoderCounters;
  readonly #maxParts: number;
  readonly #takeRoom: (bytes: number) => Room;
  readonly #lines = new LineSplitter(MAX_LINE_BYTES, MAX_HEADER_BYTES);
  readonly #assembly: Assembly;
  #channel: (Address & { key: Buffer }) | undefined;
  #next = 1;
  #piece: Piece | undefined;
  #body: Buffer | undefined;
  /** Last part that arrived early. The same part or an earlier one means that the frame is being sent again. */
  #early = { seq: 0, part: 0 };
  #events: FrameEvent[] = [];
  #spent = { noise: 0, frames: 0 };

  /**
   * `counters` may be shared with other decoders; default: own counters. `takeRoom` is asked before the parts of a message are
   * gathered, with the most bytes that it can have; default: there is always room.
   */
  constructor(
    options: {
      maxMessageBytes?: number;
      counters?: DecoderCounters | undefined;
      takeRoom?: (bytes: number) => Room;
    } = {},
  ) {
    const maxBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.counters = options.counters ?? noneRefused();
    this.#takeRoom = options.takeRoom ?? (() => 'Taken');
    this.#maxParts = Math.ceil(maxBytes / PART_BYTES);
    this.#assembly = new Assembly(maxBytes);
  }

  /** Number of the next frame; `resend {from: next}` asks for every missing frame. */
  get next(): number {
    return this.#next;
  }

  /**
   * Sets the address whose frames count, and the key of the upward direction. Only `ready` is delivered before this
   * call.
   */
  setChannel(channel: Address & { key: Buffer }): void {
    this.#channel = channel;
  }

  /**
   * Takes a whole message that was found elsewhere than in the stream, as where it has ended. Messages before it will not come and are
   * not awaited; one that came before has no effect.
   */
  take({ seq, kind, packed }: { seq: number; kind: string; packed: Buffer }): FrameEvent[] {
    if (seq < this.#next || kind === 'dropped') return [];
    this.#next = seq;
    this.#assembly.clear();
    this.#deliver({ seq, kind }, packed);
    return this.#taken();
  }

  /**
   * Returns an estimate of the work since the last call, microseconds: for frames that opened with the key, and for everything else.
   */
  takeSpent(): { noise: number; frames: number } {
    const spent = this.#spent;
    this.#spent = { noise: 0, frames: 0 };
    return spent;
  }

  /** Moves the cursor back to this number: frames from it on are delivered once more. */
  rewindTo(seq: number): void {
    this.#next = Math.min(this.#next, seq);
    this.#assembly.clear();
  }

  push(chunk: Buffer): FrameEvent[] {
    const { dropped } = this.#lines;
    this.#lines.push(chunk, (line, lost) => this.#line(line, lost));
    // A line that never ends costs all the same.
    this.#spent.noise += (this.#lines.dropped - dropped) * (COST.lineByte + COST.junkByte);
    if (this.#events.some(({ type }) => type === 'frame')) this.#spent.frames += COST.reconcile;
    return this.#taken();
  }

  #taken(): FrameEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #line(line: Buffer, lost: number): void {
    this.#spent.noise += COST.line + line.length * COST.lineByte;
    // A frame may begin behind junk without a line feed, and in place of the torn rest of another frame.
    const at = line.length < START.length ? -1 : line.lastIndexOf(START_BYTES);
    if (at !== -1) {
      if (this.#piece) this.#torn();
      this.#junk(at, lost);
      this.#begin(line.subarray(at + START.length));
    } else if (this.#piece && !this.#body) {
      if (lost > 0 || line.length > MAX_BODY_CHARS) this.#torn();
      else this.#body = Buffer.from(line.toString('latin1'), 'base64');
    } else if (this.#piece && this.#body) {
      const { seq, part } = this.#piece.header;
      if (lost === 0 && line.toString('latin1') === `${END}${seq}/${part}${CLOSE}`) {
        this.#take(this.#piece, this.#body);
        this.#piece = undefined;
        this.#body = undefined;
      } else {
        this.#torn();
      }
    } else {
      this.#junk(line.length + 1, lost);
    }
  }

  /** Notes bytes that are not part of a frame. Those that were lost are paid for already. */
  #junk(bytes: number, lost: number): void {
    this.counters.junkBytes += bytes + lost;
    this.#spent.noise += bytes * COST.junkByte;
  }

  #torn(): void {
    this.counters.torn += 1;
    this.#piece = undefined;
    this.#body = undefined;
  }

  #begin(rest: Buffer): void {
    this.#spent.noise += COST.torn;
    const couldBe = isHeader(rest);
    if (couldBe) this.#spent.noise += COST.header;
    const header = couldBe ? parseFrameHeader(rest.toString('utf8', 0, rest.length - CLOSE.length)) : undefined;
    if (header) this.#piece = { header, associated: Buffer.from(rest.subarray(0, -CLOSE.length)) };
    else this.#torn();
  }

  #take({ header, associated }: Piece, body: Buffer): void {
    const channel = this.#channel;
    const cost = COST.frame + body.length * COST.bodyByte;
    this.#spent.noise += cost;
    if (header.kind === 'ready') this.#ready(header, body);
    else if (!channel) this.counters.unkeyed += 1;
    else if (!sameAddress(header, channel)) this.counters.foreign += 1;
    else if (header.seq < this.#next) this.counters.repeated += 1;
    else if (header.parts > this.#maxParts) this.counters.tooLarge += 1;
    else {
      const plain = open(channel.key, body, associated);
      if (plain) {
        const whole = cost + COST.header + 3 * COST.line + (associated.length + (body.length * 4) / 3) * COST.lineByte;
        this.#spent.noise -= whole;
        this.#spent.frames += whole;
      }
      if (!plain) this.counters.forged += 1;
      else if (header.kind === 'dropped') this.#dropped(header, plain);
      else if (header.seq > this.#next) this.#missing(header, header.seq - 1);
      else this.#add(header, plain);
    }
  }

  #ready(header: FrameHeader, body: Buffer): void {
    const checked = header.parts === 1 ? this.#check('ready', unpackMessage(body)?.message) : { problem: 'parts' };
    this.#spent.noise += COST.ignored;
    if ('problem' in checked) this.counters.malformed += 1;
    else this.#events.push({ type: 'ready', ready: checked.message as Ready });
  }

  /** The number of a `dropped` message is that of the last frame in whose place it comes. */
  #dropped(header: FrameHeader, plain: Buffer): void {
    const checked = this.#check('dropped', unpackMessage(plain)?.message);
    const dropped = 'message' in checked ? (checked.message as Dropped) : undefined;
    if (!dropped || header.parts !== 1 || !isCount(dropped.from) || dropped.to !== header.seq) {
      this.#malformed(header, 'problem' in checked ? checked.problem : 'from or to does not fit the header');
    } else if (dropped.from > this.#next) {
      this.#missing(header, dropped.from - 1);
    } else {
      this.#assembly.clear();
      this.#next = dropped.to + 1;
      this.#events.push({ type: 'dropped', dropped });
    }
  }

  #missing({ seq, part }: FrameHeader, to: number): void {
    this.counters.early += 1;
    const goesOn = seq === this.#early.seq && part > this.#early.part;
    this.#early = { seq, part };
    if (!goesOn) this.#events.push({ type: 'gap', from: this.#next, to });
  }

  #add(header: FrameHeader, plain: Buffer): void {
    const { seq, kind, part, parts } = header;
    const id = `${seq} ${kind} ${parts}`;
    if (parts > 1 && !this.#assembly.gathers(id)) {
      const room = this.#takeRoom(parts * PART_BYTES);
      if (room === 'TooLarge') this.#malformed(header, 'it is larger than what is kept of one pod');
      if (room === 'Wait') {
        this.counters.early += 1;
        this.#events.push({ type: 'noRoom' });
      }
      if (room !== 'Taken') return;
    }
    const whole = this.#assembly.add(id, part, parts, plain);
    if (whole === 'Repeated') this.counters.repeated += 1;
    else if (whole === 'TooLarge') this.counters.tooLarge += 1;
    else if (whole !== 'Incomplete') this.#deliver(header, whole);
  }

  #deliver({ seq, kind }: Pick<FrameHeader, 'seq' | 'kind'>, packed: Buffer): void {
    // An event of an old runner is of no consequence.
    this.#spent.frames += (kind === 'event' ? COST.ignored : COST.message) + packed.length * COST.bodyByte;
    const read = this.#read(kind, packed);
    if ('problem' in read) {
      this.#malformed({ seq, kind }, read.problem);
    } else {
      this.#next = seq + 1;
      const frame = { seq, kind: kind as FrameKind, ...read } as Frame;
      this.#events.push({ type: 'frame', frame, bytes: packed.length });
    }
  }

  #read(kind: string, packed: Buffer): { message: object; binary: Buffer } | { problem: string } {
    const { message, binary = Buffer.alloc(0) } =
      unpackMessage(packed, MAX_JSON_BYTES[kind] ?? MAX_OTHER_JSON_BYTES) ?? {};
    const checked = this.#check(kind, message);
    if ('problem' in checked) return checked;
    if (kind !== 'log') return { message: checked.message, binary };
    const log = unpackLog(checked.message as Log, binary);
    return log ? { message: log, binary } : { problem: 'its binary part is no compressed text' };
  }

  #check(kind: string, message: Record<string, unknown> | undefined): ReturnType<typeof validateFrame> {
    return message
      ? validateFrame(kind, message)
      : { problem: 'it does not begin with a JSON object, or that is too long' };
  }

  /** The cursor moves, because a resend would bring the same message. */
  #malformed({ seq, kind }: Pick<FrameHeader, 'seq' | 'kind'>, problem: string): void {
    this.counters.malformed += 1;
    if (seq !== this.#next) return;
    this.#next = seq + 1;
    this.#assembly.clear();
    this.#events.push({ type: 'malformed', seq, kind, problem });
  }
}
