import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { EMPTY_ARCHIVE } from '../state/archive.ts';
import { archivedBytes, bytesOfFile, headerOf } from '../state/header.ts';
import { MAX_PLAIN_BYTES } from '../state/limits.ts';
import { walk } from '../state/walk.ts';
import { ifThere } from '../system/if-there.ts';

/** How much of what its class allows the state takes, as it was counted once and with what was written since. */
export class StateRoom {
  readonly #directory: string;
  readonly #limit: number;
  #bytes: number;

  /** Throws a TurnFailure for a state that cannot be stored anyway. `maxBytes`: persistence.maxState. */
  constructor(directory: string, maxBytes: number | undefined) {
    this.#directory = directory;
    this.#limit = Math.min(maxBytes ?? MAX_PLAIN_BYTES, MAX_PLAIN_BYTES);
    this.#bytes = EMPTY_ARCHIVE.length;
    for (const entry of walk(directory)) {
      if (entry.type !== 'other') this.#bytes += archivedBytes(headerOf({ ...entry, type: entry.type }));
    }
  }

  /** Why a file of this size has no room in place of what is at the path, in words; undefined where it has. */
  problem(path: string, bytes: number): string | undefined {
    const total = this.#bytes + this.#change(path, bytes);
    if (total <= this.#limit) return undefined;
    return `with ${path} the state would have ${total} bytes as an archive; at most ${this.#limit} can be stored (persistence.maxState)`;
  }

  /** Counts a file that is about to be put at the path. */
  add(path: string, bytes: number): void {
    this.#bytes += this.#change(path, bytes);
  }

  #change(path: string, bytes: number): number {
    const there = ifThere(() => lstatSync(join(this.#directory, path)));
    return bytesOfFile(bytes) - (there?.isFile() ? bytesOfFile(there.size) : 0);
  }
}
