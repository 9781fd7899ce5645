/** Finds the place where a text stops being JSON. The engine's own message has no position for short texts. */

export interface JsonProblem {
  /** Line number, from 1. */
  line: number;
  /** Column number, from 1, in characters. */
  column: number;
  problem: string;
}

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const STRING_TEXT = /(?:[^"\\\p{Cc}]|[\x7f-\x9f])*/uy;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Returns the first problem in a text that `JSON.parse` has refused. */
export function findJsonProblem(text: string): JsonProblem {
  const { offset, problem } = new Scanner(text).scan();
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: [...(before.at(-1) as string)].length + 1, problem };
}

interface Found {
  offset: number;
  problem: string;
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Keeps the open brackets on its own stack, because a text may nest deeper than the call stack. */
  scan(): Found {
    const open: ('{' | '[')[] = [];
    let want: 'value' | 'value or ]' | 'key' | 'key or }' | 'end' = 'value';
    for (;;) {
      this.#match(SPACE);
      if (want === 'end') {
        const bracket = open.at(-1);
        if (!bracket) return this.#unexpected('nothing more');
        const close = bracket === '{' ? '}' : ']';
        if (this.#take(close)) open.pop();
        else if (this.#take(',')) want = bracket === '{' ? 'key' : 'value';
        else return this.#unexpected(`"," or "${close}"`);
      } else if (want === 'key' || want === 'key or }') {
        if (want === 'key or }' && this.#take('}')) {
          open.pop();
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
        open.pop();
        want = 'end';
      } else if (this.#take('{')) {
        open.push('{');
        want = 'key or }';
      } else if (this.#take('[')) {
        open.push('[');
        want = 'value or ]';
      } else if (this.#peek() === '"') {
        const wrong = this.#string();
        if (wrong) return wrong;
        want = 'end';
      } else if (this.#match(SCALAR)) {
        want = 'end';
      } else {
        return this.#unexpected('a value');
      }
    }
  }

  #string(): Found | undefined {
    this.#at++;
    do this.#match(STRING_TEXT);
    while (this.#match(ESCAPE));
    if (this.#take('"')) return undefined;
    const next = this.#peek();
    if (next === undefined) return { offset: this.#at, problem: 'the string is not closed' };
    if (next === '\\') return { offset: this.#at, problem: 'this escape does not exist in JSON' };
    return { offset: this.#at, problem: 'a control character must be escaped in a string, for example \\n' };
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
    const found = point === undefined ? 'the text ends' : `found ${JSON.stringify(String.fromCodePoint(point))}`;
    return { offset: this.#at, problem: `expected ${expected}, ${found}` };
  }
}
