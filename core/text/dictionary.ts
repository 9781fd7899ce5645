/** Range of a text, in UTF-16 code units. */
export interface Span {
  start: number;
  end: number;
}

/** Number of first characters by which texts are indexed. No text may be shorter. */
export const HEAD_CHARS = 4;
const HASH = 0x9e3779b1;

/** Finds any of a set of texts in another text in one pass, in about the same time for any number of texts. */
export class Dictionary {
  readonly #texts: readonly string[];
  /** Texts by their first characters. */
  readonly #byHead = new Map<string, string[]>();
  /** True, by the hash of a head, if one of the texts may begin with that head. */
  readonly #mayBegin = new Uint8Array(1 << 16);

  /** Throws a RangeError for a text of fewer than four characters. */
  constructor(texts: readonly string[]) {
    const short = texts.find((text) => text.length < HEAD_CHARS);
    if (short !== undefined)
      throw new RangeError(`a text to look for has ${short.length} characters; at least 4 are needed`);
    this.#texts = texts;
    for (const text of texts) {
      const head = text.slice(0, HEAD_CHARS);
      const same = this.#byHead.get(head);
      if (same) same.push(text);
      else this.#byHead.set(head, [text]);
      this.#mayBegin[slot(head.split('').reduce((window, _, i) => slide(window, head, i), 0))] = 1;
    }
  }

  /** Returns the ranges of the texts that begin before `cut`; overlapping ones may be joined. */
  find(text: string, cut: number): Span[] {
    const spans: Span[] = [];
    this.each(text, cut, (start, end) => add(spans, start, end));
    return spans;
  }

  /** Calls `found` for each occurrence of one of the texts that begins before `cut`, ordered by its start. */
  each(text: string, cut: number, found: (start: number, end: number) => void): void {
    if (this.#texts.length === 0) return;
    const before = HEAD_CHARS - 1;
    const last = Math.min(text.length, cut + before);
    let window = 0;
    for (let i = 0; i < last; i++) {
      window = slide(window, text, i);
      if (i < before || this.#mayBegin[slot(window)] !== 1) continue;
      const start = i - before;
      for (const one of this.#byHead.get(text.slice(start, i + 1)) ?? []) {
        if (text.startsWith(one, start)) found(start, start + one.length);
      }
    }
  }

  /** True if a text of the dictionary begins with all of `text` and is longer. */
  goesOn(text: string): boolean {
    const some = text.length < HEAD_CHARS ? this.#texts : this.#byHead.get(text.slice(0, HEAD_CHARS));
    return some?.some((one) => one.length > text.length && one.startsWith(text)) ?? false;
  }
}

/** Shifts a character into the low bytes of the last four characters. */
function slide(window: number, text: string, i: number): number {
  return (window >>> 8) | ((text.charCodeAt(i) & 0xff) << 24);
}

function slot(window: number): number {
  return Math.imul(window, HASH) >>> 16;
}

/**
 * Adds a range. A range that overlaps the last one extends it, because texts that repeat themselves are found at every
 * place.
 */
export function add(spans: Span[], start: number, end: number): void {
  const last = spans.at(-1);
  if (last && last.start <= start && start <= last.end) last.end = Math.max(last.end, end);
  else spans.push({ start, end });
}
