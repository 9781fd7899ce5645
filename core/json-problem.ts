/**
 * Finds the place where a text stops being JSON. The engine's own message has no position for short texts, and quotes
 * the text. Time and memory stay linear in a text that an agent can have made up.
 */

export interface JsonProblem {
  /** Line number, from 1. */
  line: number;
  /** Column number, from 1, in characters. */
  column: number;
  /** Never quotes the text, which can contain a secret, but for words such as NaN. */
  problem: string;
  /** Character at the place; undefined if the problem needs none, or the text ends there. */
  found?: string;
}

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** What programs write for values that JSON does not have. */
const FOREIGN = /[-+]?(?:NaN|nan|Infinity|inf)\b|(?:None|undefined|nil|NULL|True|False)\b/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Describes the problem in words, with the character at its place. */
export function describeProblem({ problem, found }: JsonProblem): string {
  return found === undefined ? problem : `${problem}, found ${JSON.stringify(found)}`;
}

/** Returns the first problem in a text that `JSON.parse` has refused. */
export function findJsonProblem(text: string): JsonProblem {
  // Editors and programs of Windows write it, and it shows nowhere.
  if (text.startsWith('\uFEFF')) {
    return { line: 1, column: 1, problem: 'a byte order mark (U+FEFF); write UTF-8 without one' };
  }
  const { offset, ...found } = new Scanner(text).scan();
  return { ...placeOf(text, offset), ...found };
}

function placeOf(text: string, offset: number): Pick<JsonProblem, 'line' | 'column'> {
  let line = 1;
  let start = 0;
  for (let feed = text.indexOf('\n'); feed !== -1 && feed < offset; feed = text.indexOf('\n', start)) {
    line++;
    start = feed + 1;
  }
  let column = 1;
  for (let at = start; at < offset; at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1) column++;
  return { line, column };
}

interface Found extends Pick<JsonProblem, 'problem' | 'found'> {
  offset: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PLAIN = 0x20;
const OBJECT = 1;
const ARRAY = 2;

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Keeps the open brackets in an array, because a text may nest deeper than the call stack. */
  scan(): Found {
    const open = Buffer.alloc(this.#text.length);
    let depth = 0;
    let want: 'value' | 'value or ]' | 'key' | 'key or }' | 'end' = 'value';
    for (;;) {
      this.#match(SPACE);
      if (want === 'end') {
        if (depth === 0) return this.#unexpected('nothing more');
        const inObject = open[depth - 1] === OBJECT;
        const close = inObject ? '}' : ']';
        if (this.#take(close)) depth--;
        else if (this.#take(',')) want = inObject ? 'key' : 'value';
        else return this.#unexpected(`"," or "${close}"`);
      } else if (want === 'key' || want === 'key or }') {
        if (want === 'key or }' && this.#take('}')) {
          depth--;
          want = 'end';
          continue;
        }
        if (this.#peek() !== '"') return this.#unexpected('a key in double quotes');
        const wrong = this.#string();
        if (wrong) return wrong;
        this.#match(SPACE);
        if (!this.#take(':')) return this.#unexpected('":"');
        want = 'value';
      } else if (want === 'value or ]' && this.#take(']')) {
        depth--;
        want = 'end';
      } else if (this.#take('{')) {
        open[depth++] = OBJECT;
        want = 'key or }';
      } else if (this.#take('[')) {
        open[depth++] = ARRAY;
        want = 'value or ]';
      } else if (this.#peek() === '"') {
        const wrong = this.#string();
        if (wrong) return wrong;
        want = 'end';
      } else if (this.#match(SCALAR)) {
        want = 'end';
      } else {
        return this.#foreign() ?? this.#unexpected('a value');
      }
    }
  }

  #foreign(): Found | undefined {
    const offset = this.#at;
    if (!this.#match(FOREIGN)) return undefined;
    const word = this.#text.slice(offset, this.#at);
    const advice = /^(True|False)$/.test(word)
      ? word.toLowerCase()
      : /nan|inf/i.test(word)
        ? 'null or a string'
        : 'null';
    return { offset, problem: `JSON has no ${word}; write ${advice}` };
  }

  #string(): Found | undefined {
    this.#at++;
    do this.#skipPlain();
    while (this.#match(ESCAPE));
    if (this.#take('"')) return undefined;
    const next = this.#peek();
    if (next === undefined) return { offset: this.#at, problem: 'the string is not closed' };
    if (next === '\\') return { offset: this.#at, problem: 'this escape does not exist in JSON' };
    return { offset: this.#at, problem: 'a control character must be escaped in a string, for example \\n' };
  }

  /** Moves to the next quote, backslash or control character. A regular expression would exhaust its stack here. */
  #skipPlain(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === QUOTE || code === BACKSLASH || code < FIRST_PLAIN) return;
    }
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found || found[0] === '') return false;
    this.#at += found[0].length;
    return true;
  }

  #unexpected(expected: string): Found {
    const point = this.#text.codePointAt(this.#at);
    if (point === undefined) return { offset: this.#at, problem: `expected ${expected}, the text ends` };
    return { offset: this.#at, problem: `expected ${expected}`, found: String.fromCodePoint(point) };
  }
}
