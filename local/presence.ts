/** Tells whether a process, or a child that it forked and that has not begun its program yet, is still there. */

import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, statSync } from 'node:fs';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * A named pipe whose reading end a cluster holds open. A fork inherits it, and exec closes it, as Node opens every file
 * close-on-exec. Without a reader the pipe cannot be opened for writing: then the process has ended, and all of its
 * children have ended too or run their programs, whose environments tell what they are.
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

  /** Holds it until `letGo`, or until this process and every fork of it has ended or begun another program. */
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
