/**
 * Frames between a client of a running session and its runner, by way of the helper that the kubelet starts: a type of
 * one byte, the payload's length as a 32-bit big-endian number, and the payload. Positions are 64-bit big-endian numbers of
 * bytes. The same frames go both ways and over the helper's socket.
 */

/** Version of these frames and of Hello. */
export const ENTER_PROTOCOL = 1;

/** Limit of a payload, bytes; a peer that sends a longer one is not understood. */
export const MAX_PAYLOAD = 65_536;

/** Input, bytes, that a client may have sent beyond the position up to which it was taken. */
export const INPUT_WINDOW = 262_144;

/**
 * Bytes of a connection to a port that either side may send before the other gives credit for more. Whoever gets more than that
 * closes the connection.
 */
export const PORT_WINDOW = 262_144;

/** Limit of the connections to ports over one connection to the session. */
export const MAX_PORT_CONNECTIONS = 128;

const HEADER = 5;

/** Bytes of a frame of data, which with its header are as many as travel at once: 64 KiB, or two messages of 32 KiB. */
export const DATA_BYTES = MAX_PAYLOAD - HEADER;

/** What the bytes of a frame are about, by the letter that begins it. */
export const FRAMES = {
  /** Client: what it wants; the first frame of a connection. JSON, a Hello. */
  hello: 'H',
  /** Client: input of a command. Position of its first byte, then bytes. */
  input: 'I',
  /** Client: the command's input ends at this position. */
  inputEnd: 'E',
  /** Client: it has output up to this position and will not ask for it again. */
  acknowledge: 'K',
  /** Client: size of its terminal. Rows and columns, 16 bits each. */
  resize: 'W',
  /** Client: a signal for the command, by its name. */
  signal: 'S',
  /** Runner or helper: the answer to a hello that is accepted. JSON. */
  ready: 'R',
  /** Runner or helper: why a hello, or what it began, is not carried out; the last frame. JSON, a Refusal. */
  refused: 'X',
  /** Runner: output of a command. Stream (1 stdout, 2 stderr), position of its first byte, then bytes. */
  output: 'O',
  /** Runner: positions whose output is kept no more: from, to (exclusive). */
  lost: 'L',
  /** Runner: input was taken up to this position. */
  taken: 'A',
  /**
   * Runner: the command ended, after its last output. JSON, a CommandExit. Client, without a payload: it has the exit, and
   * nobody needs to keep the command any longer.
   */
  exit: 'Q',
  /** Both: bytes of a file, of an archive, or of a list. */
  data: 'D',
  /**
   * Both: the data ended; without this frame it was cut. Runner or helper: JSON, a FileEnd. Client: the SHA-256 of a file in hex, or
   * nothing.
   */
  end: 'F',
  /** Both: still there. Sent every HEARTBEAT_MS. */
  beat: 'B',
  /** Runner to its helper: what to do with files or ports by itself. Fields that end with NUL. */
  order: 'G',
  /** Client: connect to a port. Id of the connection (32 bits), which the client never uses again, and port (16 bits). */
  connect: 'C',
  /** Helper: the port has answered. Id. */
  connected: 'N',
  /** Both: bytes of a connection to a port. Id, then bytes. The client may send some before `connected`. */
  bytes: 'P',
  /** Both: this side sends no more bytes on the connection. Id. */
  halfClose: 'U',
  /**
   * Helper: the connection is over. Id, then the text of why; without a text both sides had ended it. Client: it is to be reset. Id.
   */
  closed: 'Z',
  /** Both: this many more bytes of the connection may come. Id and number, 32 bits each. */
  credit: 'M',
  /** Helper to its runner: bytes of ports have moved, told at most once a second. */
  moved: 'V',
  /**
   * Client: what comes next into a folder; fields that end with NUL: file, folder or link, path below the folder, permissions in
   * decimal, time of the last change in ms or nothing, length or a link's target. Helper to the runner: path below the root.
   */
  entry: 'T',
  /** Helper to the runner: what it has beside its place is whole and is to be renamed. Answered by `ready` or `refused`. */
  place: 'Y',
} as const;

export type FrameKind = keyof typeof FRAMES;

export interface EnterFrame {
  kind: FrameKind;
  payload: Buffer;
}

export const HEARTBEAT_MS = 10_000;
/** Time without a frame after which a connection is given up; its command goes on. */
export const SILENCE_MS = 30_000;

const KINDS = new Map(Object.entries(FRAMES).map(([kind, letter]) => [letter.charCodeAt(0), kind as FrameKind]));

/** Returns the bytes of a frame. Throws a RangeError where the payload is longer than MAX_PAYLOAD. */
export function encodeFrame(kind: FrameKind, ...parts: readonly Buffer[]): Buffer {
  return Buffer.concat(frameParts(kind, ...parts));
}

/** Returns the bytes of a frame in pieces, without a copy of the payload's. Throws as `encodeFrame` does. */
export function frameParts(kind: FrameKind, ...parts: readonly Buffer[]): Buffer[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length > MAX_PAYLOAD) throw new RangeError(`a frame of ${length} bytes; at most ${MAX_PAYLOAD}`);
  const header = Buffer.allocUnsafe(HEADER);
  header.write(FRAMES[kind], 'latin1');
  header.writeUInt32BE(length, 1);
  return [header, ...parts];
}

export function encodeJson(kind: FrameKind, value: unknown): Buffer {
  return encodeFrame(kind, jsonPayload(value));
}

export function jsonPayload(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Returns a payload of fields, each with NUL at its end. */
export function fieldsPayload(fields: readonly (string | number)[]): Buffer {
  return Buffer.from(fields.map((field) => `${field}\0`).join(''));
}

/** Least share of the memory of a chunk that a payload fills to be left there: it keeps all of that memory from being freed. */
const SHARED = 1 / 4;

/**
 * Takes the bytes of a stream apart into frames, however they arrive. A chunk must not change any more: a large payload that is whole in it
 * is not copied.
 */
export class FrameDecoder {
  /** The frame that is coming: room for its header, then for all of it. */
  #frame: Buffer = Buffer.allocUnsafe(HEADER);
  /** Bytes of it that have come. */
  #filled = 0;

  /** Returns the frames that are complete now. Throws an Error at bytes that are no frame; nothing after them is understood. */
  push(chunk: Buffer): EnterFrame[] {
    const frames: EnterFrame[] = [];
    for (let at = 0; at < chunk.length; ) {
      const shared = this.#filled === 0 ? sharedFrame(chunk, at) : undefined;
      if (shared) {
        frames.push(shared);
        at += HEADER + shared.payload.length;
        continue;
      }
      const count = chunk.copy(this.#frame, this.#filled, at);
      at += count;
      this.#filled += count;
      if (this.#filled < this.#frame.length) break;
      const { kind, length } = headerAt(this.#frame, 0);
      if (this.#filled < HEADER + length) {
        const header = this.#frame;
        this.#frame = Buffer.allocUnsafe(HEADER + length);
        header.copy(this.#frame);
      } else {
        frames.push({ kind, payload: this.#frame.subarray(HEADER) });
        this.#frame = Buffer.allocUnsafe(HEADER);
        this.#filled = 0;
      }
    }
    return frames;
  }

  /** True between two frames: a stream that ends elsewhere was cut. */
  get isComplete(): boolean {
    return this.#filled === 0;
  }
}

/** Reads the HEADER bytes at `at`. Throws an Error where they are none. */
function headerAt(bytes: Buffer, at: number): { kind: FrameKind; length: number } {
  const kind = KINDS.get(bytes[at] as number);
  const length = bytes.readUInt32BE(at + 1);
  if (kind === undefined || length > MAX_PAYLOAD) throw new Error('bytes that are no frame of a session');
  return { kind, length };
}

/** Returns the frame that begins at `at`, where all of it is there and it fills enough of the chunk to share its memory. */
function sharedFrame(chunk: Buffer, at: number): EnterFrame | undefined {
  if (chunk.length - at < HEADER) return undefined;
  const { kind, length } = headerAt(chunk, at);
  const end = at + HEADER + length;
  if (end > chunk.length || length < SHARED * chunk.buffer.byteLength) return undefined;
  return { kind, payload: chunk.subarray(at + HEADER, end) };
}

export function positionBytes(...positions: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(8 * positions.length);
  for (const [at, position] of positions.entries()) bytes.writeBigUInt64BE(BigInt(position), 8 * at);
  return bytes;
}

/** Reads the position at `offset`. Throws a RangeError where the payload is too short. */
export function positionAt(payload: Buffer, offset = 0): number {
  return Number(payload.readBigUInt64BE(offset));
}
