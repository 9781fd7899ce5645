import { ObjectSyntax } from './json-syntax.ts';

/** Text that turns out not to be an object is looked through again, line by line, up to so many times all that came. */
const RESCANS = 8;
/** What is told of a text that is no object. */
const QUOTED_BYTES = 4096;
const LINE_FEED = 0x0a;
const OPEN_OBJECT = 0x7b;

export interface ObjectScannerOptions {
  /** Bytes of one object that are held. */
  maxBytes: number;
  /** A whole object, laid out over as many lines as its writer liked. false: it is log like the text around it. */
  onObject: (bytes: Buffer) => boolean;
  /** An object that cannot be held, by its length; its text is log. */
  onTooLarge: (bytes: number) => void;
  /** The text from a brace beyond where it can be no object any more, or that was given up while open; it is log. */
  onBroken: (text: string, why: 'Syntax' | 'NeverClosed') => void;
  onLog: (bytes: Buffer) => void;
}

/**
 * Finds the JSON objects that begin on a line of their own, however they are cut into pieces. An object is complete with
 * its closing brace: another may follow on the same line. Everything else is log, as soon as it is known to be.
 */
export class ObjectScanner {
  readonly #options: ObjectScannerOptions;
  #at: 'LineStart' | 'InLine' | 'InObject' | 'AfterObject' | 'InTooLarge' = 'LineStart';
  #syntax = new ObjectSyntax();
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** What of a piece is log: handed on together, as a call for every line would cost more than its text. */
  #log: Buffer[] = [];
  /** Bytes that may be looked at again: more would take a time that grows with the square of the text. */
  #allowance = 0;

  constructor(options: ObjectScannerOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    this.#allowance += RESCANS * chunk.length;
    // What comes next stands on top.
    this.#takeAll([chunk]);
  }

  #takeAll(pending: Buffer[]): void {
    for (let piece = pending.pop(); piece; piece = pending.pop()) {
      for (const rest of this.#take(piece)) if (rest.length) pending.push(rest);
    }
    this.#handOnLog();
  }

  /** An object has begun and not ended. */
  get isOpen(): boolean {
    return this.#at === 'InObject' || this.#at === 'InTooLarge';
  }

  /** True where a line of the open object is a whole object itself that `matches`. */
  hasInside(matches: (line: string) => boolean): boolean {
    if (this.#at !== 'InObject') return false;
    const [, ...lines] = Buffer.concat(this.#held).toString('utf8').split('\n');
    return lines.some((line) => matches(line));
  }

  /** The open object is not waited for any more: it is log, the lines after its first may be objects. */
  abandon(): void {
    if (this.#at === 'InTooLarge') {
      const bytes = this.#heldBytes;
      this.#release();
      this.#at = 'InLine';
      this.#options.onTooLarge(bytes);
    } else if (this.#at === 'InObject') {
      this.#takeAll(this.#broken(Buffer.alloc(0), 'NeverClosed').filter(({ length }) => length > 0));
    }
  }

  /** Nothing follows: an open object is log after all. */
  end(): void {
    if (this.#at !== 'InObject') return;
    const held = this.#release();
    this.#at = 'InLine';
    this.#options.onBroken(held.toString('utf8', 0, QUOTED_BYTES), 'NeverClosed');
    this.#log.push(held);
    this.#handOnLog();
  }

  /** Takes some of the bytes and returns the others, the next ones last. */
  #take(bytes: Buffer): Buffer[] {
    switch (this.#at) {
      case 'LineStart':
      case 'AfterObject':
        return this.#begin(bytes);
      case 'InLine': {
        const end = bytes.indexOf(LINE_FEED) + 1;
        if (end > 0) this.#at = 'LineStart';
        this.#log.push(end > 0 ? bytes.subarray(0, end) : bytes);
        return end > 0 ? [bytes.subarray(end)] : [];
      }
      case 'InObject':
      case 'InTooLarge':
        return this.#object(bytes);
    }
  }

  #begin(bytes: Buffer): Buffer[] {
    let i = 0;
    while (bytes[i] === 0x20 || bytes[i] === 0x09 || bytes[i] === 0x0d) i++;
    if (bytes[i] === OPEN_OBJECT) {
      if (this.#at === 'LineStart' && i > 0) this.#log.push(bytes.subarray(0, i));
      this.#at = 'InObject';
      this.#syntax = new ObjectSyntax();
      return [bytes.subarray(i)];
    }
    if (i === bytes.length) {
      if (this.#at === 'LineStart') this.#log.push(bytes);
      return [];
    }
    // The line feed behind an object belongs to it.
    const own = this.#at === 'AfterObject' && bytes[i] === LINE_FEED;
    this.#at = own ? 'LineStart' : 'InLine';
    return [own ? bytes.subarray(i + 1) : bytes];
  }

  #object(bytes: Buffer): Buffer[] {
    for (let i = 0; i < bytes.length; i++) {
      const verdict = this.#syntax.push(bytes[i] as number);
      if (verdict === 'More') continue;
      const end = verdict === 'Done' ? i + 1 : i;
      this.#hold(bytes.subarray(0, end));
      const rest = bytes.subarray(end);
      return verdict === 'Done' ? this.#done(rest) : this.#broken(rest);
    }
    this.#hold(bytes);
    return [];
  }

  #hold(bytes: Buffer): void {
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > this.#options.maxBytes) {
      this.#at = 'InTooLarge';
      this.#log.push(...this.#held, bytes);
      this.#held = [];
    } else if (bytes.length) {
      // A copy: a slice would keep the whole chunk that it came in.
      this.#held.push(Buffer.from(bytes));
    }
  }

  #done(rest: Buffer): Buffer[] {
    const tooLarge = this.#at === 'InTooLarge';
    const bytes = this.#heldBytes;
    const held = this.#release();
    this.#at = 'AfterObject';
    this.#handOnLog();
    if (tooLarge) this.#options.onTooLarge(bytes);
    else if (!this.#options.onObject(held)) {
      this.#log.push(held);
      this.#at = 'InLine';
    }
    return [rest];
  }

  #broken(rest: Buffer, why: 'Syntax' | 'NeverClosed' = 'Syntax'): Buffer[] {
    const tooLarge = this.#at === 'InTooLarge';
    const held = this.#release();
    this.#at = 'InLine';
    if (tooLarge) return [rest];
    this.#options.onBroken(beginning(held, rest), why);
    // The lines after its first may be objects. Once too much was looked at again only the last of them is.
    this.#allowance -= held.length;
    const cut = (this.#allowance < 0 ? held.lastIndexOf(LINE_FEED) : held.indexOf(LINE_FEED)) + 1;
    if (cut === 0) {
      this.#log.push(held);
      return [rest];
    }
    this.#log.push(held.subarray(0, cut));
    this.#at = 'LineStart';
    return [rest, held.subarray(cut)];
  }

  #handOnLog(): void {
    if (this.#log.length)
      this.#options.onLog(this.#log.length === 1 ? (this.#log[0] as Buffer) : Buffer.concat(this.#log));
    this.#log = [];
  }

  #release(): Buffer {
    const held = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }
}

/** A line that may be a whole object itself. */
const OBJECT_LINE = /\n[ \t]*\{.*\}[ \t\r]*(\n|$)/;

/** Text of a broken object and of the rest of its line, without lines that are objects themselves. */
function beginning(held: Buffer, rest: Buffer): string {
  const end = rest.indexOf(LINE_FEED);
  const line = rest.subarray(0, Math.min(end === -1 ? rest.length : end, QUOTED_BYTES));
  const text = Buffer.concat([held.subarray(0, QUOTED_BYTES), line]).toString('utf8', 0, QUOTED_BYTES);
  return text.slice(0, OBJECT_LINE.exec(text)?.index);
}
