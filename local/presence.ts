/** Detects whether a process, or a forked child that has not begun its program yet, still exists. */

import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, statSync } from 'node:fs';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * Named pipe whose reading end a cluster holds open. A fork inherits it, and exec closes it, as Node opens every file
 * close-on-exec. Without a reader the pipe cannot be opened for writing. Then the process has ended, and each of its
 * children has ended too or runs its program, whose environment identifies it.
 */
export class Presence {
  readonly #path: string;
  #file: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** True while any process holds it. */
  isHeld(): boolean {
    try {
      closeSync(openSync(this.#path, O_WRONLY | O_NONBLOCK));
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENXIO' || code === 'ENOENT') return false;
      throw error;
    }
  }

  /** Holds the pipe until `letGo`, or until this process and every fork of it has ended or begun another program. */
  hold(): void {
    if (!statSync(this.#path, { throwIfNoEntry: false })?.isFIFO()) {
      rmSync(this.#path, { force: true });
      execFileSync('mkfifo', ['-m', '600', this.#path]);
    }
    this.#file = openSync(this.#path, O_RDONLY | O_NONBLOCK);
  }

  letGo(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
