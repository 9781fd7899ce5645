/** A lock that the kernel holds for a process, and takes from it when it ends, however it ends. */

import type { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY: another connection holds the lock. */
const BUSY = 5;

/**
 * Node has no flock, but SQLite locks its files with fcntl: an exclusive transaction on an empty database that is never
 * written to is a lock. The kernel grants it to one process at a time. It ends with the process, is not inherited by a
 * fork, and cannot be stale. The file has to stay: where it is removed, the next process locks another file of its name.
 */
export class KernelLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** undefined: another process, or another part of this one, holds it. Throws when the file cannot be used. */
  static take(path: string): KernelLock | undefined {
    // Loaded only here: most commands lock nothing, and the module warns that it is experimental.
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    const database = new DatabaseSync(path);
    try {
      database.exec('BEGIN EXCLUSIVE');
      return new KernelLock(database);
    } catch (error) {
      database.close();
      if ((error as { errcode?: number }).errcode === BUSY) return undefined;
      throw error;
    }
  }

  release(): void {
    this.#database.close();
  }
}
