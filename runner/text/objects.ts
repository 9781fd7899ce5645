import { ObjectSyntax } from './json-syntax.ts';

/**
 * Limit of repeated scans, as a multiple of all text: text that is not an object after all is scanned again, line by
 * line.
 */
const RESCANS = 8;
/** Bytes of a broken object that are reported. */
const QUOTED_BYTES = 4096;
const LINE_FEED = 0x0a;
const OPEN_OBJECT = 0x7b;

export interface ObjectScannerOptions {
  /** Limit of the bytes of one object that are held. */
  maxBytes: number;
  /**
   * Handler of each whole object, which may have any number of lines. It returns false for an object that is log like
   * the text around it.
   */
  onObject: (bytes: Buffer) => boolean;
  /** Handler of an object that is too large to hold, with its length. Its text is log. */
  onTooLarge: (bytes: number) => void;
  /** Handler of text that is no object: from a brace to the first syntax error, or an object that stays open. It is log. */
  onBroken: (text: string, why: 'Syntax' | 'NeverClosed') => void;
  onLog: (bytes: Buffer) => void;
}

/**
 * Finds the JSON objects that begin on a line of their own in text that arrives in pieces. An object ends with its
 * closing brace: another may follow on the same line. All other text is log, as soon as that is certain.
 */
export class ObjectScanner {
  readonly #options: ObjectScannerOptions;
  #at: 'LineStart' | 'InLine' | 'InObject' | 'AfterObject' | 'InTooLarge' = 'LineStart';
  #syntax = new ObjectSyntax();
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Log of the current piece, passed on together, because a call per line would cost more than its text. */
  #log: Buffer[] = [];
  /** Bytes that may still be scanned again: without a limit the time would grow with the square of the text. */
  #allowance = 0;

  constructor(options: ObjectScannerOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    this.#allowance += RESCANS * chunk.length;
    // New bytes are on top of the stack.
    this.#takeAll([chunk]);
  }

  #takeAll(pending: Buffer[]): void {
    for (let piece = pending.pop(); piece; piece = pending.pop()) {
      for (const rest of this.#take(piece)) if (rest.length) pending.push(rest);
    }
    this.#handOnLog();
  }

  /** True while an object has begun and not ended. */
  get isOpen(): boolean {
    return this.#at === 'InObject' || this.#at === 'InTooLarge';
  }

  /** Reports whether a line of the open object is itself a whole object that `matches`. */
  hasInside(matches: (line: string) => boolean): boolean {
    if (this.#at !== 'InObject') return false;
    const [, ...lines] = Buffer.concat(this.#held).toString('utf8').split('\n');
    return lines.some((line) => matches(line));
  }

  /** Gives up the open object: it becomes log, and the lines after its first may be objects. */
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

  /** Ends the text: an open object becomes log. */
  end(): void {
    if (this.#at !== 'InObject') return;
    const held = this.#release();
    this.#at = 'InLine';
    this.#options.onBroken(held.toString('utf8', 0, QUOTED_BYTES), 'NeverClosed');
    this.#log.push(held);
    this.#handOnLog();
  }

  /** Consumes some of the bytes and returns the others, the next ones last. */
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
    // The line feed after an object belongs to the object.
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
      // The bytes are copied: a slice would keep the whole chunk in memory.
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
    // The lines after the first may be objects. Once the limit of repeated scans is reached only the last of them may
    // be.
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

/** Matches a line that may be a whole object itself. */
const OBJECT_LINE = /\n[ \t]*\{.*\}[ \t\r]*(\n|$)/;

/** Returns the text of a broken object and the rest of its line, without lines that are objects themselves. */
function beginning(held: Buffer, rest: Buffer): string {
  const end = rest.indexOf(LINE_FEED);
  const line = rest.subarray(0, Math.min(end === -1 ? rest.length : end, QUOTED_BYTES));
  const text = Buffer.concat([held.subarray(0, QUOTED_BYTES), line]).toString('utf8', 0, QUOTED_BYTES);
  return text.slice(0, OBJECT_LINE.exec(text)?.index);
}
