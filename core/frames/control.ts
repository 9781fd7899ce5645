/** The runner's side of its stdin: bytes in, in any pieces; control messages out, each at most once. */
import { Assembly } from './assembly.ts';
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

/** A bind holds at most what two Kubernetes objects, the Session and its class, can say. */
const MAX_BIND_BYTES = 4 * 1024 * 1024;

const KINDS: Record<ControlKind, true> = {
  bind: true,
  restore: true,
  turn: true,
  approval: true,
  cancel: true,
  ack: true,
  resend: true,
  snapshot: true,
  suspend: true,
  resume: true,
  ping: true,
  shutdown: true,
};

export type ControlEvent =
  /** Answer `ready`. */
  | { type: 'empty' }
  /** To be carried out. A `bind` is in clear and can come again. */
  | { type: 'control'; control: Control }
  /** Of a deposed leader: answer `refused` with StaleEpoch. */
  | { type: 'stale'; epoch: number; n: number }
  /** Sealed by a leader, but no message of this protocol: answer `refused` with Malformed. */
  | { type: 'malformed'; n: number; problem: string };

/** How many lines had no effect, and why. Only ever grows. */
export interface ControlCounters {
  /** No header and body: the rest of a line that another writer left. */
  torn: number;
  /** Not later than what was seen. */
  repeated: number;
  stale: number;
  forged: number;
  /** Of another session, incarnation or boot. */
  foreign: number;
  tooLarge: number;
  /** Sealed, before there was a key. */
  unkeyed: number;
  malformed: number;
}

/**
 * One for each runner process. Never throws on any bytes. Holds one line and the parts of one message: a part of a later
 * message voids the parts of an earlier one.
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
  /** Apart, so that what is in clear cannot void what is sealed. */
  readonly #clearParts = new Assembly(MAX_BIND_BYTES);
  #channel: (Address & { key: Buffer }) | undefined;
  /** The newest message of which a part was seen, whole or not. */
  #seen: Position = { epoch: 0, n: 0 };
  #seenWhole = true;
  #events: ControlEvent[] = [];

  /** `boot` is the nonce that this process tells in `ready`. */
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

  /**
   * Called when a `bind` is accepted, before the bytes after it are decoded: from now on sealed lines with this key
   * count, as far as they come after it.
   */
  bound(channel: { session: string; incarnation: number; key: Buffer }, bind: Position): void {
    this.#channel = { ...channel, boot: this.#boot };
    this.#seen = { epoch: bind.epoch, n: bind.n };
    this.#seenWhole = true;
  }

  /** Calls `onEvent` for each event in order, between the lines, so that what it does holds for the next line. */
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
    // The header is JSON without spaces; a session's UID has none either.
    const space = text.indexOf(' ');
    const header = lost === 0 && space !== -1 ? parseControlHeader(text.slice(0, space)) : undefined;
    if (!header) this.counters.torn += 1;
    else if (header.boot !== this.#boot) this.counters.foreign += 1;
    else if (header.parts > this.#maxParts) this.counters.tooLarge += 1;
    else {
      const body = Buffer.from(text.slice(space + 1), 'base64');
      // In clear and unauthenticated: it changes nothing here but is handed over.
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
    const { epoch, n } = header;
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
    this.#seen = { epoch, n };
    this.#seenWhole = this.#add(this.#sealedParts, header, plain);
  }

  /** Whether the message came to its end with this part. */
  #add(assembly: Assembly, header: ControlHeader, piece: Buffer): boolean {
    const { epoch, n, kind, part, parts } = header;
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
    if (unpacked && Object.hasOwn(KINDS, kind)) {
      const control = { epoch, n, kind: kind as ControlKind, ...unpacked } as unknown as Control;
      this.#events.push({ type: 'control', control });
    } else {
      this.counters.malformed += 1;
      const problem = unpacked ? `there is no message "${kind}"` : `"${kind}" does not begin with a JSON object`;
      this.#events.push({ type: 'malformed', n, problem });
    }
    return true;
  }
}
