import type { Random } from '../../core/runtime.ts';
import type { Room, RoomUser } from './room.ts';
import { MAX_RECORD, type OutputRecord, type OutputStream, RECORD_HEADER, Segment } from './segment.ts';

/** Unacknowledged bytes at which a command waits for its reader. */
export const WINDOW_BYTES = 8 * 1024 * 1024;
/** Bytes that are written at once, as many as Node reads from a pipe. */
const CHUNK_BYTES = 65_536;
/** Newest bytes that are kept of a command that waits for no reader. */
export const KEPT_BYTES = 64 * 1024 * 1024;

export interface CommandLogOptions {
  /** Directory of the files. */
  directory: string;
  /** Room of all logs of the session. */
  room: Room;
  /** True: the oldest bytes are given up for new ones. False: they stay until they are acknowledged. */
  drops: boolean;
  /** Limit of the bytes on disk. Default: WINDOW_BYTES, and KEPT_BYTES for a log that drops. */
  limit?: number;
  random: Random;
}

/**
 * Output of a command, on disk. A position counts the bytes of stdout and stderr together, in the order in which they
 * were appended.
 */
export class CommandLog implements RoomUser {
  readonly #options: CommandLogOptions;
  readonly #limit: number;
  readonly #segments: Segment[] = [];
  #first = 0;
  #next = 0;
  #isClosed = false;
  /** True once nobody will read. */
  #isUnread = false;
  #appending: Promise<void> = Promise.resolve();
  readonly #waiting = new Set<() => void>();

  constructor(options: CommandLogOptions) {
    this.#options = options;
    this.#limit = options.limit ?? (options.drops ? KEPT_BYTES : WINDOW_BYTES);
    options.room.enter(this);
  }

  /** Position of the oldest byte that is kept. */
  get first(): number {
    return this.#first;
  }

  /** Position of the next byte. */
  get next(): number {
    return this.#next;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { size }) => sum + size, 0);
  }

  /** Resolves when bytes may be added: at once in a log that drops, and once nobody reads it. */
  async whenRoom(): Promise<void> {
    while (!this.#isClosed && !this.#isUnread && !this.#options.drops && !this.#hasRoom()) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        this.#options.room.whenFreed(resolve);
      });
    }
  }

  /** Makes it wait for no reader any more. */
  stopWaiting(): void {
    this.#isUnread = true;
    this.#wake();
  }

  /** Adds bytes, however many. Resolves when they can be read; what is added to a closed log is dropped. Never rejects. */
  append(stream: OutputStream, bytes: Buffer): Promise<void> {
    this.#appending = this.#appending.then(async () => {
      for (let at = 0; at < bytes.length && !this.#isClosed; at += CHUNK_BYTES) {
        const chunk = bytes.subarray(at, at + CHUNK_BYTES);
        await this.#place(recordsOf(stream, this.#next, chunk));
        this.#next += chunk.length;
      }
    });
    return this.#appending;
  }

  /**
   * Returns records from a position on, at least a byte; undefined where the byte is kept no more, or is not there
   * yet.
   */
  async read(from: number): Promise<OutputRecord[] | undefined> {
    const segment = from < this.#first ? undefined : this.#segments.find(({ end }) => from < end);
    return segment?.read(from).catch((error) => {
      // The segment was given up meanwhile.
      if (from < this.#first || this.#isClosed) return undefined;
      throw error;
    });
  }

  /** Frees what its readers will not ask for again. The last file stays, as it is written. */
  acknowledge(through: number): void {
    if (this.#options.drops) return;
    while (this.#segments.length > 0 && (this.#segments[0] as Segment).end <= through) {
      if (this.#segments.length === 1 && !this.#segments[0]?.isInMemory) break;
      this.#dropOldest();
    }
    this.#wake();
  }

  giveUp(): boolean {
    if (!this.#options.drops || this.#segments.length < 2) return false;
    this.#dropOldest();
    return true;
  }

  /** Frees everything. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await this.#appending;
    while (this.#segments.length > 0) this.#dropOldest();
    this.#options.room.leave(this);
  }

  /** Writes records to the last file, to a new one, or keeps them in memory where the disk is full. */
  async #place(records: readonly OutputRecord[]): Promise<void> {
    const { directory, drops, random, room } = this.#options;
    const start = this.#next;
    const length = records.reduce((sum, { bytes }) => sum + RECORD_HEADER + bytes.length, 0);
    if (drops) {
      while (this.#segments.length > 1 && (this.bytes + length > this.#limit || !room.has(length))) this.#dropOldest();
    }
    for (;;) {
      if (await this.#segments.at(-1)?.write(records)) return;
      const fresh = await Segment.create(directory, start, random).catch(() => undefined);
      if (await fresh?.write(records)) {
        this.#segments.push(fresh as Segment);
        return;
      }
      await fresh?.close();
      if (!drops || this.#segments.length === 0) {
        this.#segments.push(Segment.inMemory(start, records));
        return;
      }
      this.#dropOldest();
    }
  }

  /** A record in memory means that the disk is full: its reader comes first. */
  #hasRoom(): boolean {
    if (this.#segments.some(({ isInMemory }) => isInMemory)) return false;
    return this.bytes < this.#limit && this.#options.room.has(CHUNK_BYTES);
  }

  #dropOldest(): void {
    const oldest = this.#segments.shift();
    this.#first = oldest?.end ?? this.#first;
    void oldest?.close();
    this.#options.room.freed();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const fn of waiting) fn();
  }
}

function recordsOf(stream: OutputStream, position: number, chunk: Buffer): OutputRecord[] {
  const records: OutputRecord[] = [];
  for (let at = 0; at < chunk.length; at += MAX_RECORD) {
    records.push({ stream, position: position + at, bytes: chunk.subarray(at, at + MAX_RECORD) });
  }
  return records;
}
