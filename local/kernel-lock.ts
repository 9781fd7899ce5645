/** Lock that the kernel holds for a process, and releases when the process ends for any reason. */

import { chmodSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY: another connection holds the lock. */
const BUSY = 5;

/**
 * Lock on a file by SQLite, because Node has no flock. SQLite locks its files with fcntl: an exclusive transaction on
 * an empty database that is never written to is a lock. The kernel grants it to one process at a time. It ends with the
 * process, is not inherited by a fork, and cannot be stale. The file must stay: after a removal the next process locks
 * another file of the same name.
 */
export class KernelLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * Returns undefined while another process, or another part of this one, holds the lock. Throws when the file cannot
   * be used.
   */
  static take(path: string): KernelLock | undefined {
    // The module is loaded here, because most commands lock nothing and it warns that it is experimental.
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
    const database = new DatabaseSync(path);
    try {
      database.exec('BEGIN EXCLUSIVE');
      // Whoever can read the file can lock it. SQLite creates it as the umask says; to open it here would end the lock.
      chmodSync(path, 0o600);
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
