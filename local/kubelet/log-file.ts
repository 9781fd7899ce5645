/**
 * A container's log in the form of the CRI: one line `<time> <stdout|stderr> <F|P> <text>` per line of output, `P` for
 * a piece that continues in the next entry of its stream. Lines are split at 16 KiB. After 10 MiB a new file is begun;
 * one old file is kept, and none of its text is served. Output that cannot be written, as on a full disk, is lost.
 */

import { closeSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs';
import type { Clock } from '../../core/runtime.ts';

export type StreamName = 'stdout' | 'stderr';

const MAX_LINE = 16 * 1024;
const MAX_FILE = 10 * 1024 * 1024;

/** Facts about a live log for a reader that follows. */
export interface LiveLog {
  readonly path: string;
  /** Generation of the file; grows by one whenever a new file is begun. */
  readonly generation: number;
  /** True once the container has ended and no more output comes. */
  readonly closed: boolean;
  /** Calls `listener` after every change of the above and every write. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
}

export class LogFile implements LiveLog {
  readonly path: string;
  generation = 0;
  closed = false;
  readonly #clock: Clock;
  readonly #maxFile: number;
  /** Text in latin1, one character per byte: the fastest way to split and join bytes in JavaScript. */
  readonly #partial: Record<StreamName, string> = { stdout: '', stderr: '' };
  readonly #listeners = new Set<() => void>();
  #fd: number;
  #size = 0;

  /** Begins the file anew. `maxFile` in bytes. */
  constructor(path: string, clock: Clock, maxFile = MAX_FILE) {
    this.path = path;
    this.#clock = clock;
    this.#maxFile = maxFile;
    this.#fd = openSync(path, 'w', 0o600);
  }

  /**
   * Adds output; incomplete lines are kept for later. Writes are synchronous, so that readers see a container's last
   * output before its end.
   */
  write(stream: StreamName, chunk: Buffer): void {
    if (this.closed) return;
    const lines = (this.#partial[stream] + chunk.toString('latin1')).split('\n');
    const entries: string[] = [];
    const full = this.#prefix(stream, 'F');
    const last = lines.pop()!;
    if (lines.every(({ length }) => length <= MAX_LINE)) {
      if (lines.length > 0) entries.push(full, lines.join(`\n${full}`), '\n');
    } else {
      for (const line of lines) entries.push(full, this.#split(entries, stream, line), '\n');
    }
    this.#partial[stream] = this.#split(entries, stream, last);
    this.#append(entries.join(''));
  }

  /** Writes the text without a final newline, and ends the log. */
  close(): void {
    if (this.closed) return;
    let entries = '';
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#partial[stream];
      if (rest.length > 0) entries += `${this.#prefix(stream, 'P')}${rest}\n`;
    }
    this.#append(entries);
    closeSync(this.#fd);
    this.closed = true;
    this.#changed();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #prefix(stream: StreamName, tag: 'F' | 'P'): string {
    const time = new Date(this.#clock.now()).toISOString().replace('Z', '000000Z');
    return `${time} ${stream} ${tag} `;
  }

  /** Adds the pieces of a line that is too long; returns the rest. */
  #split(entries: string[], stream: StreamName, line: string): string {
    let rest = line;
    for (; rest.length > MAX_LINE; rest = rest.slice(MAX_LINE)) {
      entries.push(this.#prefix(stream, 'P'), rest.slice(0, MAX_LINE), '\n');
    }
    return rest;
  }

  #append(entries: string): void {
    if (entries === '') return;
    const bytes = Buffer.from(entries, 'latin1');
    try {
      if (this.#size > 0 && this.#size + bytes.length > this.#maxFile) this.#rotate();
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(this.#fd, bytes, written, bytes.length - written, this.#size + written);
      }
    } catch {
      this.#cut();
      return;
    }
    this.#size += bytes.length;
    this.#changed();
  }

  /** Removes the part of an entry that a full disk took: the next entry must not follow it. */
  #cut(): void {
    try {
      ftruncateSync(this.#fd, this.#size);
    } catch {
      // The next entry is written over it.
    }
  }

  /** Throws when there can be no new file; the old one is then still the log. */
  #rotate(): void {
    const next = openSync(`${this.path}.new`, 'w', 0o600);
    try {
      renameSync(this.path, `${this.path}.1`);
      renameSync(`${this.path}.new`, this.path);
    } catch (error) {
      closeSync(next);
      throw error;
    }
    closeSync(this.#fd);
    this.#fd = next;
    this.#size = 0;
    this.generation += 1;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
