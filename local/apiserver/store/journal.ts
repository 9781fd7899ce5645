import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseExact } from '../../../core/json.ts';
import type { ApiObject } from '../object.ts';
import type { Change, Sink, StoreContents } from './versioned.ts';
import { keyOf } from './versioned.ts';

/** A journal smaller than this is not worth a new snapshot; bytes. */
const smallJournal = 16 * 1024 * 1024;

interface Line {
  version: number;
  storage: string;
  /** Absent in the line that only tells the version. */
  object?: ApiObject;
  deleted?: true;
}

/**
 * Keeps the store in two files: a snapshot and the changes since. A line is handed to the operating system before the
 * write counts, so a killed server loses nothing; fsync is not used, a crash of the machine may lose the last changes.
 */
export class Journal implements Sink {
  readonly #snapshot: string;
  readonly #path: string;
  #file: number;
  #size: number;

  private constructor(dir: string) {
    this.#snapshot = join(dir, 'objects.snapshot.jsonl');
    this.#path = join(dir, 'objects.journal.jsonl');
    this.#file = openSync(this.#path, 'a', 0o600);
    this.#size = fstatSync(this.#file).size;
  }

  /** Reads what is there and opens the journal for more. Throws when a file cannot be read or written. */
  static open(dir: string): { journal: Journal; contents: StoreContents } {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const journal = new Journal(dir);
    const contents: StoreContents = { version: 1, collections: new Map() };
    replay(journal.#snapshot, contents);
    const whole = replay(journal.#path, contents);
    // A torn last line is a write that was never acknowledged.
    if (whole < journal.#size) truncateSync(journal.#path, whole);
    journal.#size = whole;
    return { journal, contents };
  }

  /** Throws when the line cannot be written; then it is as if nothing had been. */
  append(change: Change): void {
    try {
      this.#size += this.#write(this.#file, {
        version: change.version,
        storage: change.storage,
        object: change.object,
        ...(change.type === 'DELETED' ? { deleted: true } : {}),
      });
    } catch (error) {
      // A disk that is full takes a part of the line: the next one must not follow it.
      truncateSync(this.#path, this.#size);
      throw error;
    }
  }

  /** Writes a snapshot in place of a journal that has grown; cheap when it has not. Throws when it cannot: the journal stays. */
  snapshotIfLarge(contents: StoreContents): void {
    if (this.#size > smallJournal) this.snapshot(contents);
  }

  snapshot(contents: StoreContents): void {
    const temporary = `${this.#snapshot}.new`;
    const file = openSync(temporary, 'w', 0o600);
    try {
      this.#write(file, { version: contents.version, storage: '' });
      for (const [storage, objects] of contents.collections) {
        for (const object of objects.values()) {
          this.#write(file, { version: Number(object.metadata.resourceVersion), storage, object });
        }
      }
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    } finally {
      closeSync(file);
    }
    renameSync(temporary, this.#snapshot);
    // Lines of the old journal that survive a kill right here repeat what the snapshot has: replay skips them.
    truncateSync(this.#path, 0);
    this.#size = 0;
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(file: number, line: Line): number {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    for (let offset = 0; offset < bytes.length; ) offset += writeSync(file, bytes, offset);
    return bytes.length;
  }
}

/** A file of the store cannot be understood. Nothing is started on half of what was stored. */
export class JournalDamaged extends Error {
  readonly code = 'JournalDamaged';
  constructor(path: string, line: number, options: ErrorOptions) {
    super(
      `${path}, line ${line}, is not what was written there; restore the file, or remove the folder to start with an empty cluster`,
      options,
    );
    this.name = 'JournalDamaged';
  }
}

/** Applies the lines of a file; returns how many bytes of it are whole lines. */
function replay(path: string, contents: StoreContents): number {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
  const snapshotVersion = contents.version;
  let start = 0;
  let count = 0;
  for (let end = bytes.indexOf(10); end >= 0; start = end + 1, end = bytes.indexOf(10, start)) {
    count += 1;
    const line = parseLine(bytes.toString('utf8', start, end), path, count);
    if (line.object === undefined || line.version > snapshotVersion) apply(line, contents);
  }
  return start;
}

function parseLine(text: string, path: string, number: number): Line {
  try {
    return parseExact(text) as Line;
  } catch (cause) {
    throw new JournalDamaged(path, number, { cause });
  }
}

function apply(line: Line, contents: StoreContents): void {
  contents.version = Math.max(contents.version, line.version);
  if (line.object === undefined) return;
  let collection = contents.collections.get(line.storage);
  if (!collection) {
    collection = new Map();
    contents.collections.set(line.storage, collection);
  }
  const key = keyOf(line.object.metadata.namespace, line.object.metadata.name);
  if (line.deleted) collection.delete(key);
  else collection.set(key, line.object);
}
