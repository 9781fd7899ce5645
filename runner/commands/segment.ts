import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../core/runtime.ts';

/** Stream of a command's output: 1 is stdout, 2 is stderr. */
export type OutputStream = 1 | 2;

/** Bytes that a command wrote to one stream. `position` counts the bytes of both streams before them. */
export interface OutputRecord {
  stream: OutputStream;
  position: number;
  bytes: Buffer;
}

/** Limit of a record's bytes. With its position it fits into a frame. */
export const MAX_RECORD = 32_768;
/** Stream in one byte and length in four, before a record's bytes. */
export const RECORD_HEADER = 5;
/** Limit of a file. The oldest file is freed as a whole. */
const SEGMENT_BYTES = 1_048_576;
/** Distance of the places in a file whose positions are remembered. */
const INDEX_BYTES = 32_768;
/** Bytes of one read. From a remembered place on, at least one record that is asked for is complete within them. */
const READ_BYTES = 4 * (RECORD_HEADER + MAX_RECORD);
/** Linux's bit of O_TMPFILE beside O_DIRECTORY (include/uapi/asm-generic/fcntl.h); Node has no name for it. */
const TMPFILE_BIT = 0o20_000_000;

/** Consecutive records in a file without a name, which is freed when it or the runner ends, and which no agent can open. */
export class Segment {
  /** Position of the first byte. */
  readonly start: number;
  /** Position after the last byte. */
  end: number;
  /** Bytes of the file. */
  size = 0;
  readonly #file: FileHandle | undefined;
  /** Content where there is no file. */
  #content: Buffer | undefined;
  readonly #index: { position: number; offset: number }[] = [];

  private constructor(start: number, file?: FileHandle) {
    this.start = start;
    this.end = start;
    this.#file = file;
  }

  /** Rejects with the file system's error. */
  static async create(directory: string, start: number, random: Random): Promise<Segment> {
    return new Segment(start, await openUnnamed(directory, random));
  }

  /** Returns a segment with records in memory: for a disk that is full. */
  static inMemory(start: number, records: readonly OutputRecord[]): Segment {
    const segment = new Segment(start);
    segment.#content = Buffer.concat(partsOf(records));
    segment.#wrote(records);
    return segment;
  }

  /** True where its records are in memory. */
  get isInMemory(): boolean {
    return this.#file === undefined;
  }

  /** Adds records. False where it has no room for them or the disk has none; nothing is changed then. */
  async write(records: readonly OutputRecord[]): Promise<boolean> {
    const parts = partsOf(records);
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (!this.#file || this.size + length > SEGMENT_BYTES) return false;
    try {
      let { bytesWritten: done } = await this.#file.writev(parts, this.size);
      // A disk takes a part when it gets full.
      const all = done < length ? Buffer.concat(parts) : undefined;
      while (all && done < length) {
        const { bytesWritten } = await this.#file.write(all, done, length - done, this.size + done);
        if (bytesWritten === 0) return false;
        done += bytesWritten;
      }
    } catch {
      return false;
    }
    this.#wrote(records);
    return true;
  }

  /** Returns records from a position within it on, at least a byte. Rejects once it is closed. */
  async read(from: number): Promise<OutputRecord[]> {
    const { position, offset } = this.#index.findLast((entry) => entry.position <= from) ?? {
      position: this.start,
      offset: 0,
    };
    const length = Math.min(READ_BYTES, this.size - offset);
    return recordsIn(this.#content ?? (await this.#bytesAt(offset, length)), position, from);
  }

  async close(): Promise<void> {
    this.#content = undefined;
    // Node waits for reads that are on their way.
    await this.#file?.close().catch(() => {});
  }

  async #bytesAt(offset: number, length: number): Promise<Buffer> {
    if (!this.#file) throw new Error('the segment is closed');
    const bytes = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await this.#file.read(bytes, done, length - done, offset + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  }

  #wrote(records: readonly OutputRecord[]): void {
    for (const { bytes } of records) {
      const last = this.#index.at(-1);
      if (!last || this.size - last.offset >= INDEX_BYTES) this.#index.push({ position: this.end, offset: this.size });
      this.size += RECORD_HEADER + bytes.length;
      this.end += bytes.length;
    }
  }
}

/** Returns the bytes of records in the file: of each its header, then what it holds. */
function partsOf(records: readonly OutputRecord[]): Buffer[] {
  return records.flatMap(({ stream, bytes }) => {
    const header = Buffer.allocUnsafe(RECORD_HEADER);
    header.writeUInt8(stream);
    header.writeUInt32BE(bytes.length, 1);
    return [header, bytes];
  });
}

/** Returns what the complete records hold from `from` on; neighbours of one stream become one record. `position` is the first one's. */
function recordsIn(content: Buffer, position: number, from: number): OutputRecord[] {
  const records: { stream: OutputStream; position: number; parts: Buffer[]; length: number }[] = [];
  let at = position;
  for (let offset = 0; offset + RECORD_HEADER <= content.length; ) {
    const stream = content.readUInt8(offset) as OutputStream;
    const length = content.readUInt32BE(offset + 1);
    const begin = offset + RECORD_HEADER;
    offset = begin + length;
    if (offset > content.length) break;
    const part = content.subarray(begin + Math.min(length, Math.max(0, from - at)), offset);
    at += length;
    if (part.length === 0) continue;
    const last = records.at(-1);
    if (last?.stream === stream && last.length + part.length <= MAX_RECORD) {
      last.parts.push(part);
      last.length += part.length;
    } else records.push({ stream, position: at - part.length, parts: [part], length: part.length });
  }
  return records.map(({ stream, position, parts }) => ({
    stream,
    position,
    bytes: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts),
  }));
}

/** Opens a file that has no name. Where the file system has no such files, it has one for a moment. */
async function openUnnamed(directory: string, random: Random): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_EXCL, O_DIRECTORY } = constants;
  if (process.platform === 'linux') {
    const file = await open(directory, O_RDWR | O_DIRECTORY | TMPFILE_BIT, 0o600).catch((error) => {
      if (!['EOPNOTSUPP', 'EISDIR', 'EINVAL'].includes(error.code)) throw error;
      return undefined;
    });
    if (file) return file;
  }
  const path = join(directory, `.command-${random.bytes(16).toString('hex')}`);
  const file = await open(path, O_RDWR | O_CREAT | O_EXCL, 0o600);
  await rm(path, { force: true });
  return file;
}
