/** Decoder of the runner's stdin: bytes come in, in any pieces; control messages go out, each at most once. */
import { Assembly } from './assembly.ts';
import { CONTROLS } from './catalogue.ts';
import type { Position } from './encode.ts';
import { LineSplitter } from './lines.ts';
import { type Control, type ControlKind, MAX_MESSAGE_BYTES } from './messages.ts';
import { open } from './seal.ts';
import {
  type Address,
  type ControlHeader,
  MAX_LINE_BYTES,
  PART_BYTES,
  parseControlHeader,
  sameAddress,
  unpackMessage,
} from './wire.ts';

/** Limit of a bind message. A bind holds at most the content of two Kubernetes objects, the Session and its class. */
const MAX_BIND_BYTES = 4 * 1024 * 1024;

export type ControlEvent =
  /** Answer `ready`. */
  | { type: 'empty' }
  /** A message to carry out. A `bind` is in clear and can be repeated. */
  | { type: 'control'; control: Control }
  /** A message of a deposed leader: answer `refused` with StaleEpoch. */
  | { type: 'stale'; epoch: number; n: number }
  /** A message that a leader sealed but this protocol does not have: answer `refused` with Malformed. */
  | { type: 'malformed'; n: number; problem: string };

/** Numbers of lines that had no effect, by cause. They only grow. */
export interface ControlCounters {
  /** Lines without header and body: the rest of a line that another writer left. */
  torn: number;
  /** Lines whose position is not later than the newest position seen. */
  repeated: number;
  stale: number;
  forged: number;
  /** Lines of another session, incarnation or boot. */
  foreign: number;
  tooLarge: number;
  /** Sealed lines that arrived before there was a key. */
  unkeyed: number;
  malformed: number;
}

/**
 * Decoder with one instance per runner process. Never throws on any bytes. Holds one line and the parts of one message:
 * a part of a later message discards the parts of an earlier one.
 */
export class ControlDecoder {
  readonly counters: ControlCounters = {
    torn: 0,
    repeated: 0,
    stale: 0,
    forged: 0,
    foreign: 0,
    tooLarge: 0,
    unkeyed: 0,
    malformed: 0,
  };
  readonly #boot: string;
  readonly #maxParts: number;
  readonly #lines = new LineSplitter(MAX_LINE_BYTES, 1);
  readonly #sealedParts: Assembly;
  /** Separate from the sealed parts, so that a clear line cannot discard sealed parts. */
  readonly #clearParts = new Assembly(MAX_BIND_BYTES);
  #channel: (Address & { key: Buffer }) | undefined;
  /** Position of the newest message that has come at least in part. */
  #seen: Position = { epoch: 0, n: 0 };
  #seenWhole = true;
  #events: ControlEvent[] = [];

  /** `boot` is the nonce that this process sends in `ready`. */
  constructor(options: { boot: string; maxMessageBytes?: number }) {
    const maxBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES;
    this.#boot = options.boot;
    this.#maxParts = Math.ceil(maxBytes / PART_BYTES);
    this.#sealedParts = new Assembly(maxBytes);
  }

  /** The highest leadership epoch seen, 0 if none. */
  get epoch(): number {
    return this.#seen.epoch;
  }

  /** The proof of this epoch that came with one of its lines; undefined when none did. */
  get proof(): string | undefined {
    return this.#seen.proof;
  }

  /**
   * Handler of a `bind` that is accepted, before the bytes after it are decoded. Sealed lines with this key count from now
   * on if their position is after the bind's.
   */
  bound(channel: { session: string; incarnation: number; key: Buffer }, bind: Position): void {
    this.#channel = { ...channel, boot: this.#boot };
    this.#seen = bind;
    this.#seenWhole = true;
  }

  /** Calls `onEvent` for each event in order and between the lines, so that its effects hold for the next line. */
  push(chunk: Buffer, onEvent: (event: ControlEvent) => void): void {
    this.#lines.push(chunk, (line, lost) => {
      this.#line(line, lost);
      const events = this.#events;
      this.#events = [];
      for (const event of events) onEvent(event);
    });
  }

  #line(line: Buffer, lost: number): void {
    if (line.length === 0) {
      this.#events.push({ type: 'empty' });
      return;
    }
    const text = line.toString('latin1');
    // A space separates header and body: the header is JSON without spaces, and a session's UID has no space either.
    const space = text.indexOf(' ');
    const header = lost === 0 && space !== -1 ? parseControlHeader(text.slice(0, space)) : undefined;
    if (!header) this.counters.torn += 1;
    else if (header.boot !== this.#boot) this.counters.foreign += 1;
    else if (header.parts > this.#maxParts) this.counters.tooLarge += 1;
    else {
      const body = Buffer.from(text.slice(space + 1), 'base64');
      // A bind is in clear and unauthenticated: the decoder passes it on and does not change by it.
      if (header.kind === 'bind') this.#add(this.#clearParts, header, body);
      else this.#sealed(header, body, line.subarray(0, space));
    }
  }

  #sealed(header: ControlHeader, body: Buffer, associated: Buffer): void {
    const channel = this.#channel;
    if (!channel) {
      this.counters.unkeyed += 1;
      return;
    }
    if (!sameAddress(header, channel)) {
      this.counters.foreign += 1;
      return;
    }
    const plain = open(channel.key, body, associated);
    if (!plain) {
      this.counters.forged += 1;
      return;
    }
    const { epoch, n, proof = epoch === this.#seen.epoch ? this.#seen.proof : undefined } = header;
    if (epoch < this.#seen.epoch) {
      this.counters.stale += 1;
      if (header.part === 1) this.#events.push({ type: 'stale', epoch, n });
      return;
    }
    const isSeen = epoch === this.#seen.epoch && n === this.#seen.n;
    const isEarlier = epoch === this.#seen.epoch && n < this.#seen.n;
    if (isEarlier || (isSeen && this.#seenWhole)) {
      this.counters.repeated += 1;
      return;
    }
    this.#seen = { epoch, n, ...(proof !== undefined && { proof }) };
    this.#seenWhole = this.#add(this.#sealedParts, header, plain);
  }

  /** Reports whether the message is complete with this part. */
  #add(assembly: Assembly, header: ControlHeader, piece: Buffer): boolean {
    const { epoch, n, kind, part, parts, proof } = header;
    const whole = assembly.add(`${epoch} ${n} ${kind} ${parts}`, part, parts, piece);
    if (whole === 'Incomplete') return false;
    if (whole === 'Repeated') {
      this.counters.repeated += 1;
      return false;
    }
    if (whole === 'TooLarge') {
      this.counters.tooLarge += 1;
      return true;
    }
    const unpacked = unpackMessage(whole);
    if (unpacked && Object.hasOwn(CONTROLS, kind)) {
      const control = {
        epoch,
        n,
        ...(proof && { proof }),
        kind: kind as ControlKind,
        ...unpacked,
      } as unknown as Control;
      this.#events.push({ type: 'control', control });
    } else {
      this.counters.malformed += 1;
      const problem = unpacked ? `there is no message "${kind}"` : `"${kind}" does not begin with a JSON object`;
      this.#events.push({ type: 'malformed', n, problem });
    }
    return true;
  }
}
