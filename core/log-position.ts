/** How far a log with a time before each line was read, so that opened again it goes on there. */

const NEWLINE = 0x0a;
const SPACE = 0x20;
/** No time is longer, bytes. */
const MAX_STAMP = 64;
/** stdout and stderr get their times apart: by so much lines may stand in another order than their times, milliseconds. */
const DISORDER_MS = 1_000;

/** Nanoseconds since the epoch of an RFC 3339 time, undefined when it is none. */
function instantOf(stamp: string): bigint | undefined {
  const [, seconds, fraction = '', zone] = /^([\dT:-]{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(stamp) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

export class LogPosition {
  /** The time of the newest line that was read, how many lines from it on, and how many bytes of the last of them. */
  #newest = -1n;
  #lines = 0;
  #bytes = 0;
  /** In a log that was opened again, how many of its lines were read; undefined until the newest is found. */
  #known: number | undefined = 0;
  /** Bytes of the present line that are not handed on. */
  #skip = 0;
  /** Of the present line's time, until it is whole. */
  #stamp: string | undefined = '';

  /** The log comes anew. Returns from when on it is needed, RFC 3339; undefined when nothing was read yet. */
  reopen(): string | undefined {
    this.#stamp = '';
    if (this.#lines === 0) return undefined;
    this.#known = undefined;
    return new Date(Number(this.#newest / 1_000_000n) - DISORDER_MS).toISOString();
  }

  /** What of this piece was not read before, without the times. What the kubelet itself says has none and is left out. */
  push(chunk: Buffer): Buffer {
    const unread: Buffer[] = [];
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
      if (this.#stamp === undefined) unread.push(this.#rest(chunk.subarray(at, end)));
      if (newline >= 0) this.#stamp = '';
      at = end;
    }
    return Buffer.concat(unread);
  }

  /** A line begins. */
  #begin(time: bigint | undefined): void {
    this.#skip = Number.POSITIVE_INFINITY;
    if (time === undefined) return;
    if (this.#known === undefined) {
      if (time < this.#newest) return;
      // Where it is not there any more everything is new.
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
