/** Reads a container's log file as the log endpoint serves it. */

import { closeSync, fstatSync, openSync, read as readCallback } from 'node:fs';
import { promisify } from 'node:util';
import type { LiveLog } from './log-file.ts';

export interface LogOptions {
  follow: boolean;
  timestamps: boolean;
  /** Number of entries from the end; undefined: all. */
  tailLines?: number | undefined;
  /** Time of the first entry, milliseconds since the epoch. */
  since?: number | undefined;
  /** Limit of the output, bytes. */
  limitBytes?: number | undefined;
}

const BLOCK = 64 * 1024;
const NEWLINE = 10;

const read = promisify(readCallback);

/** Returns the offset of the last `count` lines of the file. */
async function tailOffset(file: number, count: number): Promise<number> {
  const { size } = fstatSync(file);
  let missing = count + 1;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - BLOCK);
    const block = Buffer.alloc(end - start);
    const { bytesRead } = await read(file, block, 0, block.length, start);
    for (let at = bytesRead - 1; at >= 0; at--) {
      if (block[at] === NEWLINE && --missing === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

/** Converts entries `<time> <stream> <tag> <text>`, fed as latin1 text in any pieces, to served output. */
class Entries {
  readonly #options: LogOptions;
  #rest = '';
  /** True if the last entry was a piece of a line that continues. */
  #continued = false;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  serve(text: string): string {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop()!;
    let served = '';
    for (const line of lines) served += this.#line(line);
    return served;
  }

  #line(line: string): string {
    const { since, timestamps } = this.#options;
    const afterTime = line.indexOf(' ');
    const afterStream = line.indexOf(' ', afterTime + 1);
    if (afterTime < 0 || afterStream < 0) return '';
    const time = line.slice(0, afterTime);
    if (since !== undefined && Date.parse(time) < since) return '';
    const prefix = timestamps && !this.#continued ? `${time} ` : '';
    this.#continued = line[afterStream + 1] === 'P';
    return prefix + line.slice(afterStream + 3) + (this.#continued ? '' : '\n');
  }
}

/** Resolves at the log's next change, or when the signal aborts. */
function nextChange(log: LiveLog, signal: AbortSignal): { promise: Promise<void>; cancel: () => void } {
  let cancel = () => {};
  const promise = new Promise<void>((resolve) => {
    const off = log.onChange(() => cancel());
    cancel = () => {
      off();
      signal.removeEventListener('abort', cancel);
      resolve();
    };
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
  });
  return { promise, cancel };
}

/**
 * Yields the log at `path` in pieces. With `follow` and a `live` log it continues until that is closed; ends quietly
 * when the signal aborts. Rejects when the file cannot be read.
 */
export async function* readLog(
  path: string,
  live: LiveLog | undefined,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  // Nothing comes between the number of the file and its opening: another file under this number would be read twice.
  let generation = live?.generation;
  let file = openSync(path, 'r');
  try {
    let offset = options.tailLines === undefined ? 0 : await tailOffset(file, options.tailLines);
    const entries = new Entries(options);
    const block = Buffer.alloc(BLOCK);
    while (!signal.aborted && left > 0) {
      const change = options.follow && live && !live.closed ? nextChange(live, signal) : undefined;
      const moved = live !== undefined && live.generation !== generation;
      const { bytesRead } = await read(file, block, 0, BLOCK, offset);
      if (bytesRead === 0) {
        if (moved && options.follow) {
          const next = openSync(path, 'r');
          closeSync(file);
          file = next;
          generation = live.generation;
          offset = 0;
          change?.cancel();
        } else if (change) await change.promise;
        else return;
        continue;
      }
      change?.cancel();
      offset += bytesRead;
      const bytes = Buffer.from(entries.serve(block.toString('latin1', 0, bytesRead)), 'latin1');
      if (bytes.length > 0) yield bytes.length > left ? bytes.subarray(0, left) : bytes;
      left -= bytes.length;
    }
  } finally {
    closeSync(file);
  }
}
