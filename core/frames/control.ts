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

/**
 * Decoder with one instance per runner process. Never throws on any bytes. Holds one line and the parts of one message:
 * a part of a later message discards the parts of an earlier one.
 */
export class ControlDecoder {
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
    // Other lines are torn, for another boot of the pod, or part of a message that is too large.
    if (header?.boot !== this.#boot || header.parts > this.#maxParts) return;
    const body = Buffer.from(text.slice(space + 1), 'base64');
    // A bind is in clear and unauthenticated: the decoder passes it on and does not change by it.
    if (header.kind === 'bind') this.#add(this.#clearParts, header, body);
    else this.#sealed(header, body, line.subarray(0, space));
  }

  #sealed(header: ControlHeader, body: Buffer, associated: Buffer): void {
    const channel = this.#channel;
    const plain = channel && sameAddress(header, channel) ? open(channel.key, body, associated) : undefined;
    if (!plain) return;
    const { epoch, n, proof = epoch === this.#seen.epoch ? this.#seen.proof : undefined } = header;
    if (epoch < this.#seen.epoch) {
      if (header.part === 1) this.#events.push({ type: 'stale', epoch, n });
      return;
    }
    const isSeen = epoch === this.#seen.epoch && n === this.#seen.n;
    const isEarlier = epoch === this.#seen.epoch && n < this.#seen.n;
    if (isEarlier || (isSeen && this.#seenWhole)) return;
    this.#seen = { epoch, n, ...(proof !== undefined && { proof }) };
    this.#seenWhole = this.#add(this.#sealedParts, header, plain);
  }

  /** Reports whether the message is complete with this part. */
  #add(assembly: Assembly, header: ControlHeader, piece: Buffer): boolean {
    const { epoch, n, kind, part, parts, proof } = header;
    const whole = assembly.add(`${epoch} ${n} ${kind} ${parts}`, part, parts, piece);
    if (whole === 'Incomplete' || whole === 'Repeated') return false;
    if (whole === 'TooLarge') return true;
    const unpacked = unpackMessage(whole);
    if (unpacked && Object.hasOwn(CONTROLS, kind)) {
      const control = { epoch, n, ...(proof && { proof }), kind: kind as ControlKind, ...unpacked };
      this.#events.push({ type: 'control', control: control as unknown as Control });
    } else {
      const problem = unpacked ? `there is no message "${kind}"` : `"${kind}" does not begin with a JSON object`;
      this.#events.push({ type: 'malformed', n, problem });
    }
    return true;
  }
}
