import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseExact } from '../../../core/json.ts';
import type { ApiObject } from '../object.ts';
import type { Change, Sink, StoreContents } from './versioned.ts';
import { keyOf } from './versioned.ts';

/** Size of a journal below which no new snapshot is written; bytes. */
const smallJournal = 16 * 1024 * 1024;

/** Number of versions that are reserved on the disk at a time: one fsync per block. */
const VERSION_BLOCK = 100_000;

interface Line {
  /** Id of the run of the server that wrote the line. Absent in files of older releases. */
  boot?: string;
  version: number;
  storage: string;
  /** Upper bound of the versions assigned so far; in lines without an object. */
  ceiling?: number;
  /** Undefined in the line with which a run takes the journal over or raises its ceiling. */
  object?: ApiObject;
  deleted?: true;
}

/** Loss of the journal to another process, or of its file. Nothing can be stored any more. */
export class JournalLost extends Error {
  readonly code = 'JournalLost';
  constructor(path: string) {
    super(
      `${path} is no longer this server's own: another process writes to it, or it was replaced or removed; ` +
        'this server stores nothing more and has to be stopped',
    );
    this.name = 'JournalLost';
  }
}

export interface JournalOptions {
  /** Id of this run of the server; no other run has the same. */
  boot: string;
  /** Handler of the first write that finds that the file does not belong to this run any more; called once. */
  onLost?: (error: JournalLost) => void;
}

/**
 * Keeps the store in two files: a snapshot and the changes since.
 *
 * - A line is handed to the operating system before its write is acknowledged, so a killed server loses nothing. Lines
 *   are not fsynced: a power loss may take the last seconds of writes.
 * - Versions never repeat, also after a power loss. A block of versions is written as the ceiling and fsynced before the
 *   first of them is given out; a start begins at the ceiling that it finds.
 * - Two writers never both acknowledge. A run reads the journal, then takes it over by appending a line with its boot id.
 *   Every append, this one too, checks the file after its write and before it counts. The path must still name the open
 *   file, and the file must have only what was read and written here. So an acknowledged line was read by the run that
 *   took over after it; a line after a take-over is refused here and skipped by every replay.
 */
export class Journal implements Sink {
  readonly #snapshot: string;
  readonly #path: string;
  readonly #boot: string;
  readonly #onLost: (error: JournalLost) => void;
  #file: number;
  #size: number;
  #ceiling = 0;
  #lost: JournalLost | undefined;

  private constructor(dir: string, { boot, onLost }: JournalOptions) {
    this.#snapshot = join(dir, 'objects.snapshot.jsonl');
    this.#path = join(dir, 'objects.journal.jsonl');
    this.#boot = boot;
    this.#onLost = onLost ?? (() => {});
    this.#file = openSync(this.#path, 'a', 0o600);
    this.#size = fstatSync(this.#file).size;
  }

  /**
   * Reads the stored contents, takes the journal over and opens it for writing. Throws when a file cannot be read or
   * written, and `JournalLost` when another process writes to it.
   */
  static open(dir: string, options: JournalOptions): { journal: Journal; contents: StoreContents } {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const journal = new Journal(dir, options);
    try {
      const replay = new Replay();
      replay.file(journal.#snapshot);
      replay.endSnapshot();
      const whole = replay.file(journal.#path);
      // A torn last line is a write that was never acknowledged.
      if (whole < journal.#size) ftruncateSync(journal.#file, whole);
      journal.#size = whole;
      const { contents } = replay;
      contents.version = Math.max(contents.version, replay.ceiling);
      journal.#reserve(contents.version);
      syncFolder(dir);
      return { journal, contents };
    } catch (error) {
      journal.close();
      throw error;
    }
  }

  /**
   * Appends a line. Throws without any effect when the line cannot be written; after a `JournalLost` every append
   * fails.
   */
  append(change: Change): void {
    if (change.version > this.#ceiling) this.#reserve(change.version);
    this.#append({
      version: change.version,
      storage: change.storage,
      object: change.object,
      ...(change.type === 'DELETED' ? { deleted: true } : {}),
    });
  }

  /**
   * Replaces a journal that has grown by a snapshot; cheap when it has not. Throws when it cannot: the journal stays.
   */
  snapshotIfLarge(contents: StoreContents): void {
    if (this.#size > smallJournal) this.snapshot(contents);
  }

  snapshot(contents: StoreContents): void {
    const temporary = `${this.#snapshot}.new`;
    const file = openSync(temporary, 'w', 0o600);
    try {
      writeAll(file, this.#bytesOf({ version: contents.version, storage: '', ceiling: this.#ceiling }));
      for (const [storage, objects] of contents.collections) {
        for (const object of objects.values()) {
          writeAll(file, this.#bytesOf({ version: Number(object.metadata.resourceVersion), storage, object }));
        }
      }
      // The journal is emptied next, so the snapshot must be on the disk first.
      fsyncSync(file);
      this.#requireOwn(this.#size);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    } finally {
      closeSync(file);
    }
    renameSync(temporary, this.#snapshot);
    syncFolder(dirname(this.#snapshot));
    // After a kill right here, lines of the old journal repeat the snapshot's content: replay skips them.
    ftruncateSync(this.#file, 0);
    this.#size = 0;
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Reserves versions from `version` on: no later start assigns them again. */
  #reserve(version: number): void {
    const ceiling = version + VERSION_BLOCK;
    this.#append({ version, storage: '', ceiling });
    fsyncSync(this.#file);
    this.#ceiling = ceiling;
  }

  #append(line: Line): void {
    if (this.#lost) throw this.#lost;
    const bytes = this.#bytesOf(line);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(this.#file, bytes, written);
    } catch (error) {
      this.#requireOwn(this.#size + written);
      // A full disk may hold a part of the line, which the next line must not follow.
      ftruncateSync(this.#file, this.#size);
      throw error;
    }
    this.#requireOwn(this.#size + written);
    this.#size += written;
  }

  /** Throws, now and at every later write, unless only this run has written to the file and it is `size` bytes long. */
  #requireOwn(size: number): void {
    if (this.#lost) throw this.#lost;
    if (this.#isOwn() && fstatSync(this.#file).size === size) return;
    this.#lost = new JournalLost(this.#path);
    this.#onLost(this.#lost);
    throw this.#lost;
  }

  /** True while the path names the open file. */
  #isOwn(): boolean {
    const named = statSync(this.#path, { throwIfNoEntry: false });
    const open = fstatSync(this.#file);
    return named !== undefined && named.ino === open.ino && named.dev === open.dev;
  }

  #bytesOf(line: Line): Buffer {
    return Buffer.from(`${JSON.stringify({ boot: this.#boot, ...line })}\n`);
  }
}

function writeAll(file: number, bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length; ) offset += writeSync(file, bytes, offset);
}

/** Syncs a folder, so that the names in it survive a power loss. */
function syncFolder(dir: string): void {
  const folder = openSync(dir, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** A file of the store is damaged. The server does not start with incomplete data. */
class JournalDamaged extends Error {
  readonly code = 'JournalDamaged';
  constructor(path: string, line: number, options: ErrorOptions) {
    super(
      `${path}, line ${line}, is not what was written there; restore the file, or remove the folder to start with an empty cluster`,
      options,
    );
    this.name = 'JournalDamaged';
  }
}

/** Restores the contents from the lines of the snapshot and then of the journal. */
class Replay {
  readonly contents: StoreContents = { version: 1, collections: new Map() };
  ceiling = 0;
  #boot: string | undefined;
  #snapshotVersion = 1;

  /** Ends the snapshot: lines of the journal up to its version are skipped from here on. */
  endSnapshot(): void {
    this.#snapshotVersion = this.contents.version;
  }

  /** Applies the lines of a file; returns the number of bytes in whole lines. */
  file(path: string): number {
    let bytes: Buffer;
    try {
      bytes = readFileSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw error;
    }
    let start = 0;
    let count = 0;
    for (let end = bytes.indexOf(10); end >= 0; start = end + 1, end = bytes.indexOf(10, start)) {
      count += 1;
      this.#line(parseLine(bytes.toString('utf8', start, end), path, count));
    }
    return start;
  }

  #line(line: Line): void {
    if (line.object === undefined) {
      // A later line of an earlier run was never acknowledged.
      this.#boot = line.boot;
      this.ceiling = Math.max(this.ceiling, line.ceiling ?? 0);
      this.contents.version = Math.max(this.contents.version, line.version);
    } else if (line.boot === this.#boot && line.version > this.#snapshotVersion) {
      apply(line.object, line, this.contents);
    }
  }
}

function parseLine(text: string, path: string, number: number): Line {
  try {
    return parseExact(text) as Line;
  } catch (cause) {
    throw new JournalDamaged(path, number, { cause });
  }
}

function apply(object: ApiObject, { version, storage, deleted }: Line, contents: StoreContents): void {
  contents.version = Math.max(contents.version, version);
  let collection = contents.collections.get(storage);
  if (!collection) {
    collection = new Map();
    contents.collections.set(storage, collection);
  }
  const key = keyOf(object.metadata.namespace, object.metadata.name);
  if (deleted) collection.delete(key);
  else collection.set(key, object);
}
