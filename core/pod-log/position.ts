/**
 * Position in a log with a timestamp before each line, so that reading continues there when the log is opened again.
 */

const NEWLINE = 0x0a;
const SPACE = 0x20;
/** Longest timestamp, bytes. */
const MAX_STAMP = 64;
/**
 * Time by which the order of lines and of their timestamps may differ, milliseconds: stdout and stderr are stamped
 * separately.
 */
const DISORDER_MS = 1_000;

/** Place of a line in a log. All who read the log give a line the same place, wherever they began. */
export interface LinePlace {
  /** Newest timestamp up to this line, nanoseconds since the epoch. */
  newest: bigint;
  /** Number of the line, from the one with that timestamp on. A part of a line that goes on has half a number less. */
  line: number;
}

/** A piece of a line without its timestamp. */
export interface LinePiece {
  bytes: Buffer;
  place: LinePlace;
}

export const BEFORE_ALL: LinePlace = { newest: -1n, line: 0 };

/** Reports whether `a` is after `b`. */
export function isLater(a: LinePlace, b: LinePlace): boolean {
  return a.newest > b.newest || (a.newest === b.newest && a.line > b.line);
}

/** Returns the time from which a log is needed to have all lines after the place, RFC 3339; undefined for the whole log. */
export function timeBefore({ newest }: LinePlace): string | undefined {
  if (newest < 0n) return undefined;
  return new Date(Number(newest / 1_000_000n) - DISORDER_MS).toISOString();
}

/** Returns the nanoseconds since the epoch of an RFC 3339 time; undefined for other text. */
export function instantOf(stamp: string): bigint | undefined {
  const [, seconds, fraction = '', zone] = /^([\dT:-]{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(stamp) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

export class LogPosition {
  /** Timestamp of the newest line read, number of lines from it on, and bytes of the last of them. */
  #newest = -1n;
  #lines = 0;
  #bytes = 0;
  /** Number of known lines in a log that was opened again; undefined until the newest line is found. */
  #known: number | undefined = 0;
  /** Bytes of the current line that were returned before and are skipped. */
  #skip = 0;
  /** Part of the current line's timestamp that has arrived; undefined once the timestamp is complete. */
  #stamp: string | undefined = '';

  /**
   * Prepares for the log to be opened again. Returns the time from which it is needed, RFC 3339; undefined when nothing
   * was read yet.
   */
  reopen(): string | undefined {
    this.#stamp = '';
    if (this.#lines === 0) return undefined;
    this.#known = undefined;
    return timeBefore(this.#place());
  }

  /**
   * Returns the unread part of this chunk, a piece for each line. Lines of the kubelet itself have no timestamp and are
   * left out.
   */
  push(chunk: Buffer): LinePiece[] {
    const unread: LinePiece[] = [];
    for (let at = 0; at < chunk.length; ) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline < 0 ? chunk.length : newline + 1;
      if (this.#stamp !== undefined) {
        const space = chunk.subarray(at, end).indexOf(SPACE);
        const part = chunk.toString('latin1', at, space < 0 ? end : at + space);
        this.#stamp = (this.#stamp + part).slice(0, MAX_STAMP);
        at = space < 0 ? end : at + space + 1;
        if (space >= 0) {
          this.#begin(instantOf(this.#stamp));
          this.#stamp = undefined;
        }
      }
      const bytes = this.#stamp === undefined ? this.#rest(chunk.subarray(at, end)) : undefined;
      if (bytes?.length) unread.push({ bytes, place: this.#place() });
      if (newline >= 0) this.#stamp = '';
      at = end;
    }
    return unread;
  }

  /** Place of the newest line read. */
  #place(): LinePlace {
    return { newest: this.#newest, line: this.#lines };
  }

  /** Begins a line. */
  #begin(time: bigint | undefined): void {
    this.#skip = Number.POSITIVE_INFINITY;
    if (time === undefined) return;
    if (this.#known === undefined) {
      if (time < this.#newest) return;
      // All lines are new if the newest known line is not in the log any more.
      this.#known = time === this.#newest ? this.#lines : 0;
    }
    if (this.#known > 0) {
      this.#known--;
      if (this.#known === 0) this.#skip = this.#bytes;
      return;
    }
    this.#skip = 0;
    this.#bytes = 0;
    if (time > this.#newest) {
      this.#newest = time;
      this.#lines = 0;
    }
    this.#lines++;
  }

  #rest(piece: Buffer): Buffer {
    const skipped = Math.min(this.#skip, piece.length);
    this.#skip -= skipped;
    this.#bytes += piece.length - skipped;
    return piece.subarray(skipped);
  }
}
