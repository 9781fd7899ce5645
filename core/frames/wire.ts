/** Format of messages and headers in both directions. The README in this folder describes it. */
import { parseExact } from '../json.ts';
import { MAX_PROOF_CHARS } from './catalogue.ts';
import { type FrameKind, MAX_MESSAGE_BYTES } from './messages.ts';

const FRAME_VERSION = 1;
export const START = '<<<BERTH_START ';
export const END = '<<<BERTH_END ';
export const CLOSE = '>>>';

/** Characters of base64 in one part. */
export const MAX_BODY_CHARS = 12 * 1024;
/** IV and tag around a part's ciphertext. */
const SEAL_BYTES = 12 + 16;
/** Bytes of the plain message in one part. */
export const PART_BYTES = (MAX_BODY_CHARS / 4) * 3 - SEAL_BYTES;
/** Longest header, including marker and braces. A scanner must keep this much of a line's end. */
export const MAX_HEADER_BYTES = 1024;
/** The longest line of the format, either direction. */
export const MAX_LINE_BYTES = MAX_HEADER_BYTES + 1 + MAX_BODY_CHARS;

/** A message that cannot be sent. */
export class FrameError extends Error {
  readonly code: 'MessageTooLarge' | 'TooMuchHeld';
  constructor(code: FrameError['code'], message: string) {
    super(message);
    this.name = 'FrameError';
    this.code = code;
  }
}

/** Address in the headers of both directions. */
export interface Address {
  /** Session UID; empty while the pod is unbound. */
  session: string;
  incarnation: number;
  boot: string;
}

export interface FrameHeader extends Address {
  seq: number;
  /** Kind as it was received: a kind of a newer runner is not in `FrameKind`. */
  kind: FrameKind | (string & {});
  part: number;
  parts: number;
}

export interface ControlHeader extends Address {
  epoch: number;
  /** Proof of the epoch: see `epochProof`. Absent: an older controller wrote the line. */
  proof?: string;
  n: number;
  kind: string;
  part: number;
  parts: number;
}

/** Returns the JSON of a frame's header; its bytes are the associated data. */
export function frameHeader(h: FrameHeader): string {
  const { session: sid, incarnation: inc, boot, seq, kind, part, parts } = h;
  return JSON.stringify({ v: FRAME_VERSION, sid, inc, boot, seq, kind, part, parts });
}

/** Returns the JSON of a control line's header; its bytes are the associated data. */
export function controlHeader(h: ControlHeader): string {
  const { session: sid, incarnation: inc, boot, epoch, n, kind, part, parts, proof } = h;
  return JSON.stringify({ v: FRAME_VERSION, sid, inc, boot, epoch, n, kind, part, parts, proof });
}

/** Returns undefined when the text is not a header of this version. */
export function parseFrameHeader(text: string): FrameHeader | undefined {
  const raw = parseCommon(text);
  if (!raw || !isCount(raw.seq)) return undefined;
  return { ...raw.common, seq: raw.seq };
}

/** Returns undefined when the text is not a header of this version. */
export function parseControlHeader(text: string): ControlHeader | undefined {
  const raw = parseCommon(text);
  if (!raw || !isCount(raw.epoch) || !isCount(raw.n)) return undefined;
  const { proof } = raw;
  const isProof = typeof proof === 'string' && proof.length <= MAX_PROOF_CHARS;
  return { ...raw.common, epoch: raw.epoch, n: raw.n, ...(isProof && { proof }) };
}

function parseCommon(text: string) {
  const raw = parseObject(text);
  if (raw?.v !== FRAME_VERSION) return undefined;
  const { sid: session, inc: incarnation, boot, kind, part, parts } = raw;
  if (typeof session !== 'string' || typeof boot !== 'string' || typeof kind !== 'string') return undefined;
  if (!isCount(incarnation) || !isCount(part) || !isCount(parts) || part < 1 || part > parts) return undefined;
  return {
    common: { session, incarnation, boot, kind, part, parts },
    seq: raw.seq,
    epoch: raw.epoch,
    n: raw.n,
    proof: raw.proof,
  };
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function sameAddress(a: Address, b: Address): boolean {
  return a.session === b.session && a.incarnation === b.incarnation && a.boot === b.boot;
}

/** Packs a message before it is cut into parts: its JSON and, after a line feed, its binary part. */
export function packMessage(message: object, binary?: Buffer): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const packed = binary?.length ? Buffer.concat([json, Buffer.of(0x0a), binary]) : json;
  if (packed.length > MAX_MESSAGE_BYTES) {
    throw new FrameError('MessageTooLarge', `a message of ${packed.length} bytes is above ${MAX_MESSAGE_BYTES}`);
  }
  return packed;
}

/** Returns undefined when the bytes do not begin with a JSON object of at most so many bytes. */
export function unpackMessage(
  packed: Buffer,
  maxJsonBytes = MAX_MESSAGE_BYTES,
): { message: Record<string, unknown>; binary: Buffer } | undefined {
  const feed = packed.indexOf(0x0a);
  const end = feed === -1 ? packed.length : feed;
  const message = end > maxJsonBytes ? undefined : parseObject(packed.toString('utf8', 0, end));
  return message && { message, binary: feed === -1 ? Buffer.alloc(0) : packed.subarray(feed + 1) };
}

/** Cuts a packed message into pieces, at least one. */
export function cut(packed: Buffer): Buffer[] {
  const pieces = [];
  for (let at = 0; at < packed.length; at += PART_BYTES) pieces.push(packed.subarray(at, at + PART_BYTES));
  return pieces.length ? pieces : [packed];
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseExact(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
