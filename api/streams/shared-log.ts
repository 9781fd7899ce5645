import { onAbort } from '../../core/abort.ts';
import type { LogStart } from '../../core/follow/pod-lines.ts';
import { type LogLine, podLogLines } from '../../core/pod-log/lines.ts';
import type { LogApi, LogPod } from '../../core/pod-log/open.ts';
import { BEFORE_ALL, instantOf, isLater, type LinePlace, timeBefore } from '../../core/pod-log/position.ts';
import type { Clock } from '../../core/runtime.ts';

/** Memory of a line beside its text or event, bytes. */
const LINE_BYTES = 200;
/** Memory of the parts of an event, bytes, as measured with events of many small parts. */
const OBJECT_BYTES = 80;
const MEMBER_BYTES = 64;
const ELEMENT_BYTES = 8;
const STRING_BYTES = 24;
/** Finds a character for which V8 keeps a text with two bytes for each. */
const WIDE = /[\u0100-\uffff]/;

export interface SharedLogOptions {
  api: LogApi;
  clock: Clock;
  pod: LogPod;
  /** Limit of the lines that are kept, bytes. */
  bytes: number;
}

/**
 * The log of a pod, read by one stream for any number of followers. The newest lines are kept. Who needs older ones, as one
 * that joins late or reads slowly, reads the log itself up to the lines that are kept.
 */
export class SharedLog {
  /** Resolves once the log is not read any more. */
  readonly ended: Promise<void>;
  readonly #options: SharedLogOptions;
  readonly #stop = new AbortController();
  /** The lines that are kept, by their number in this stream, with the memory that they take. */
  readonly #lines = new Map<number, { line: LogLine; bytes: number }>();
  #first = 0;
  #next = 0;
  #bytes = 0;
  /** Place of the newest line that is not kept any more. */
  #left = BEFORE_ALL;
  #end: { error?: unknown } | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(options: SharedLogOptions) {
    this.#options = options;
    this.ended = this.#read();
  }

  stop(): void {
    this.#stop.abort(new Error('nobody follows the log'));
  }

  /**
   * Yields the lines from `start` or an earlier event on, until the pod is gone. None is left out that the log has; events
   * can be repeated. Rejects as the shared stream does, and with the signal's reason.
   */
  async *follow(start: LogStart, signal: AbortSignal): AsyncGenerator<LogLine> {
    const cursor = new Cursor(start);
    for (let isKept = this.#keeps(start, cursor); ; isKept = !isLater(this.#left, cursor.place)) {
      if (!isKept) yield* this.#older(cursor, signal);
      else if (yield* this.#newest(cursor, signal)) return;
    }
  }

  /** Yields the lines that are kept and those that come. Returns true at the end, false when it has fallen behind. */
  async *#newest(cursor: Cursor, signal: AbortSignal): AsyncGenerator<LogLine, boolean> {
    cursor.begin();
    for (let at = this.#first; at >= this.#first; ) {
      const kept = this.#lines.get(at);
      if (kept) {
        at += 1;
        if (cursor.passes(kept.line)) yield kept.line;
      } else if (!this.#end) {
        await this.#change(signal);
      } else if ('error' in this.#end) {
        throw this.#end.error;
      } else {
        return true;
      }
    }
    return false;
  }

  /** Yields lines that are not kept, up to those that are. */
  async *#older(cursor: Cursor, signal: AbortSignal): AsyncGenerator<LogLine> {
    const { api, clock, pod } = this.#options;
    const left = this.#left;
    cursor.begin();
    const options = { sinceTime: timeBefore(cursor.place), follow: false, signal };
    for await (const lines of podLogLines(api, clock, pod, options)) {
      for (const line of lines) {
        if (isLater(line.place, this.#left)) return cursor.skipTo(this.#left);
        if (cursor.passes(line)) yield line;
      }
    }
    // Those up to there that the log did not have were rotated away.
    cursor.skipTo(left);
  }

  #keeps(start: LogStart, { place }: Cursor): boolean {
    if (!isLater(this.#left, place)) return true;
    if ('sinceTime' in start || start.line) return false;
    for (const { line } of this.#lines.values()) if (line.event) return line.event.seq <= start.seq;
    return false;
  }

  async #read(): Promise<void> {
    const { api, clock, pod } = this.#options;
    try {
      for await (const lines of podLogLines(api, clock, pod, { follow: true, signal: this.#stop.signal })) {
        for (const line of lines) this.#add(line);
        this.#wake();
      }
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#wake();
  }

  #add(line: LogLine): void {
    const bytes = LINE_BYTES + Math.max(line.length, memoryOf(line.event ? line.event.event : line.text));
    this.#lines.set(this.#next++, { line, bytes });
    this.#bytes += bytes;
    // The newest one is kept in any case, or each of those who wait for it would read the log itself.
    while (this.#bytes > this.#options.bytes && this.#first < this.#next - 1) {
      const oldest = this.#lines.get(this.#first) as { line: LogLine; bytes: number };
      this.#lines.delete(this.#first++);
      this.#bytes -= oldest.bytes;
      this.#left = oldest.line.place;
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Resolves when there is a line or the end; rejects with the signal's reason. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const remove = onAbort(signal, () => {
        this.#waiting.delete(wake);
        reject(signal.reason);
      });
      const wake = () => {
        remove();
        resolve();
      };
      if (!signal.aborted) this.#waiting.add(wake);
    });
  }
}

/**
 * Returns about how much memory a JSON value takes, bytes: up to thirty times its text. Iterative instead of recursive, as
 * any value that could be parsed can be kept.
 */
function memoryOf(value: unknown): number {
  let bytes = 0;
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === 'string') bytes += STRING_BYTES + (WIDE.test(next) ? 2 : 1) * next.length;
    if (typeof next !== 'object' || next === null) continue;
    bytes += OBJECT_BYTES;
    if (Array.isArray(next)) {
      bytes += ELEMENT_BYTES * next.length;
      for (const element of next) waiting.push(element);
    } else {
      for (const [key, member] of Object.entries(next)) {
        bytes += MEMBER_BYTES + key.length;
        waiting.push(member);
      }
    }
  }
  return bytes;
}

/** How far a follower has come in a log, whatever it reads it from. */
class Cursor {
  /** Place up to which the follower has what it needs. */
  place: LinePlace;
  /** True until the present source has come to the place. */
  #isBefore = true;
  /** True once the follower knows the number of an event, and leaves out those that it has. */
  #isNumbered: boolean;

  constructor(start: LogStart) {
    const instant = 'sinceTime' in start ? instantOf(start.sinceTime) : undefined;
    const line = 'seq' in start ? start.line : undefined;
    this.place = instant === undefined ? (line ?? BEFORE_ALL) : { newest: instant - 1n, line: Number.MAX_SAFE_INTEGER };
    this.#isNumbered = 'seq' in start;
  }

  /** Begins with another source, at its beginning. */
  begin(): void {
    // A long line that is known in part is read again as a whole: its parts differ between sources.
    this.#isBefore = Number.isInteger(this.place.line);
  }

  /** Reports whether the follower gets the line. */
  passes({ place, event }: LogLine): boolean {
    // Places can differ in lines whose predecessors were rotated away, numbers cannot.
    if (this.#isBefore && !isLater(place, this.place)) return this.#isNumbered && event !== undefined;
    this.#isBefore = false;
    this.#isNumbered ||= event !== undefined;
    this.place = Number.isInteger(place.line) ? place : { newest: place.newest, line: Math.floor(place.line) };
    return true;
  }

  skipTo(place: LinePlace): void {
    if (isLater(place, this.place)) this.place = place;
  }
}
