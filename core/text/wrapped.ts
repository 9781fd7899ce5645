import { add, Dictionary, type Span } from './dictionary.ts';

/** Matches a line break, also as JSON writes it, and the indentation of the next line. */
const BREAK = /(?:\r?\n|(?:\\r)?\\n)[ \t]{0,16}/g;
const LONGEST_BREAK = 4 + 16;
/** Matches an end of a text that may become a line break with the text after it. */
const HALF_BREAK = /(?:\r|\\(?:r\\?)?)$/;
/**
 * Least number of a text's characters before a line break that counts as its beginning: otherwise every line would wait
 * for the next.
 */
const LEAST_BEGUN = 3;
/** Length of the text before a piece that is kept: enough for the start of any match that counts in the piece. */
export const CONTEXT_CHARS = (LEAST_BEGUN - 1) * (1 + LONGEST_BREAK);

/** Alphabet of texts that are searched across lines: base64 in either alphabet, hexadecimal, most tokens. */
const LETTERS = /^[A-Za-z0-9+/_-]*$/;
const IS_LETTER = Uint8Array.from({ length: 128 }, (_, code) => Number(LETTERS.test(String.fromCharCode(code))));

/** Letters of the text without the line breaks, and the place of each piece in the text. */
interface Joined {
  /** Letters of all pieces, with a line feed between pieces that do not belong together. */
  letters: string;
  /** Places of the pieces in `letters`, rising; the last is behind the end. */
  at: number[];
  /** Places of the pieces in the text. */
  from: number[];
}

/**
 * Finds texts of letters, digits and `+ / - _` with line breaks inside. One or two characters before the first line
 * break do not count, so that such a line need not wait for the next.
 */
export class Wrapped {
  readonly #texts: Dictionary;
  readonly #heads: ReadonlySet<string>;
  readonly #longest: number;

  /** Texts with other characters are ignored. */
  constructor(texts: readonly string[]) {
    const known = texts.filter((text) => LETTERS.test(text));
    this.#texts = new Dictionary(known);
    this.#heads = new Set(known.map((text) => text.slice(0, LEAST_BEGUN)));
    this.#longest = known.reduce((most, { length }) => Math.max(most, length), 0);
  }

  /**
   * Returns the ranges of the texts across line breaks in `before + text`, as places in `text`. Only the part from the
   * beginning of `text` on counts.
   */
  find(before: string, text: string): Span[] {
    const spans: Span[] = [];
    const all = before + text;
    if (this.#longest === 0 || !(all.includes('\n') || all.includes('\\n'))) return spans;
    const joined = this.#join(all);
    this.#texts.each(joined.letters, joined.letters.length, (first, end) => {
      const piece = pieceOf(joined, first);
      const last = pieceOf(joined, end - 1);
      const start = countedFrom(joined, first, piece) - before.length;
      if (piece === last || start < 0) return;
      add(spans, start, placeOf(joined, end - 1, last) + 1 - before.length);
    });
    return spans;
  }

  /**
   * Returns the index in `text` from which one of the texts may have begun that continues behind the end; the length of
   * `text` if there is none.
   */
  begun(before: string, text: string): number {
    if (this.#longest === 0) return text.length;
    const room = this.#longest * (1 + LONGEST_BREAK);
    const skipped = Math.max(0, text.length - room) - (text.length < room ? before.length : 0);
    const near = skipped < 0 ? before + text : text.slice(skipped);
    const joined = this.#join(near.replace(HALF_BREAK, ''));
    const { letters } = joined;
    const run = Math.max(letters.lastIndexOf('\n') + 1, letters.length - this.#longest + 1);
    for (let first = run; first + LEAST_BEGUN <= letters.length; first++) {
      if (!this.#heads.has(letters.slice(first, first + LEAST_BEGUN))) continue;
      if (!this.#texts.goesOn(letters.slice(first))) continue;
      const start = countedFrom(joined, first, pieceOf(joined, first)) + skipped;
      if (start >= 0) return start;
    }
    return text.length;
  }

  #join(text: string): Joined {
    const pieces: string[] = [];
    const at: number[] = [];
    const from: number[] = [];
    let length = 0;
    const take = (start: number, end: number) => {
      at.push(length);
      from.push(start);
      pieces.push(text.slice(start, end));
      length += end - start;
    };
    let line = 0;
    const addLine = (end: number) => {
      // Only the characters that can belong to a text with a line break are kept.
      const most = Math.max(line, end - this.#longest);
      let tail = end;
      while (tail > most && IS_LETTER[text.charCodeAt(tail - 1)]) tail -= 1;
      if (tail > line || tail === end) {
        const far = Math.min(end, line + this.#longest);
        let head = line;
        while (head < far && IS_LETTER[text.charCodeAt(head)]) head += 1;
        take(line, head);
        pieces.push('\n');
        length += 1;
      }
      take(tail, end);
    };
    BREAK.lastIndex = 0;
    for (let found = BREAK.exec(text); found; found = BREAK.exec(text)) {
      addLine(found.index);
      line = BREAK.lastIndex;
    }
    // An empty last line may continue.
    if (line < text.length) addLine(text.length);
    at.push(length);
    return { letters: pieces.join(''), at, from };
  }
}

/** Returns the index of the piece with this place in the letters. */
function pieceOf({ at }: Joined, place: number): number {
  let low = 0;
  let high = at.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((at[middle] as number) <= place) low = middle;
    else high = middle;
  }
  return low;
}

function placeOf({ at, from }: Joined, place: number, piece: number): number {
  return (from[piece] as number) + place - (at[piece] as number);
}

/** Returns the place in the text from which a match at a place in the letters counts. */
function countedFrom(joined: Joined, first: number, piece: number): number {
  let last = piece;
  while ((joined.at[last + 1] as number) < first + LEAST_BEGUN && last + 1 < joined.from.length) last += 1;
  return last === piece ? placeOf(joined, first, piece) : (joined.from[last] as number);
}
