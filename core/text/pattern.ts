/**
 * Patterns that an administrator gives for text to hide. They are a small part of regular expressions on purpose: text,
 * `.`, `[a-z]`, `[^"]`, `\d \w \s` and their capitals, `( )`, `|`, `?`, `{3}`, `{3,40}`, and `(?i)` in front for any
 * case. A match is never longer than MAX_MATCH_CHARS and never crosses a line, so text can be searched as it arrives.
 * All matches are followed at once: a character costs the same with any number of overlapping matches, so no text can make the
 * search hang.
 */

import { Automaton, type Node, PatternError, type Span } from './automaton.ts';
import { CharSet } from './char-set.ts';

export const MAX_MATCH_CHARS = 256;

const CLASSES = 'dwsDWS';
const PAIR = /^[\ud800-\udbff][\udc00-\udfff]$/;
const CONTROLS: Record<string, string> = { t: '\t', r: '\r', f: '\f', v: '\v' };

/** A compiled pattern. Throws a PatternError. */
export class Pattern {
  /** UTF-16 units of the longest match. */
  readonly maxLength: number;
  readonly #automaton: Automaton;

  constructor(source: string) {
    const node = new Parser(source).parse();
    const { least, most } = lengths(node);
    if (least === 0) throw new PatternError('it matches the empty text; make some of it obligatory');
    if (most > MAX_MATCH_CHARS) {
      throw new PatternError(
        `its matches can have ${most} characters; at most ${MAX_MATCH_CHARS} are looked at: bound its repeats, for example {1,200}`,
      );
    }
    this.maxLength = most;
    this.#automaton = new Automaton(node, most);
  }

  /** Returns all ranges of matches that begin before `before`, in order and disjoint. */
  cover(text: string, before = text.length): Span[] {
    return this.#automaton.cover(text, before);
  }
}

/** Returns the problem of a pattern's source; undefined when there is none. */
export function patternProblem(source: string): string | undefined {
  try {
    new Pattern(source);
    return undefined;
  } catch (error) {
    if (error instanceof PatternError) return error.message;
    throw error;
  }
}

class Parser {
  readonly #source: string;
  readonly #anyCase: boolean;
  readonly #sets = new Map<string, CharSet>();
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
    this.#anyCase = source.startsWith('(?i)');
    if (this.#anyCase) this.#at = 4;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw this.#wrong('")" closes nothing; write \\)');
    return node;
  }

  #choice(): Node {
    const parts = [this.#sequence()];
    while (this.#take('|')) parts.push(this.#sequence());
    return { type: 'choice', parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#next)) parts.push(this.#repeated());
    return { type: 'sequence', parts };
  }

  #repeated(): Node {
    const part = this.#atom();
    if (this.#take('?')) return { type: 'repeat', part, least: 0, most: 1 };
    if (this.#next === '*' || this.#next === '+') {
      throw this.#wrong(`"${this.#next}" has no end; bound it, for example {1,200}`);
    }
    const [braces, from = '', comma, to] = /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#source.slice(this.#at)) ?? [];
    if (!braces) return part;
    const least = Number(from);
    const most = comma === undefined ? least : to ? Number(to) : Number.NaN;
    if (Number.isNaN(most)) throw this.#wrong(`"${braces}" has no end; bound it, for example {1,200}`);
    if (most < least || most === 0) throw this.#wrong(`"${braces}" repeats nothing`);
    this.#at += braces.length;
    if ('?*+{'.includes(this.#next || ' ')) throw this.#wrong('a repeat of a repeat; put the first into ( )');
    return { type: 'repeat', part, least, most };
  }

  #atom(): Node {
    const char = this.#next;
    if (char === '(') return this.#group();
    if (char === '[') return this.#class();
    if ('?*+{'.includes(char)) throw this.#wrong(`"${char}" repeats nothing; write \\${char}`);
    if ('^$'.includes(char))
      throw this.#wrong(`"${char}" is not known: text is looked at as it comes; write \\${char} for the character`);
    this.#at += 1;
    if (char === '.') return this.#set('[^]');
    // A repeat takes both units of a character of two units together.
    if (PAIR.test(char + this.#next)) {
      this.#at += 1;
      const units = [char, this.#source[this.#at - 1] as string];
      return { type: 'sequence', parts: units.map((unit) => this.#set(`[${escaped(unit)}]`)) };
    }
    if (char !== '\\') return this.#set(`[${escaped(char)}]`);
    return this.#set(`[${this.#escape()}]`);
  }

  #group(): Node {
    this.#at += 1;
    if (this.#next === '?' && !this.#take('?:'))
      throw this.#wrong('of the groups that begin with "(?" only (?: ) is known');
    this.#depth += 1;
    if (this.#depth > 16) throw this.#wrong('it is nested too deeply');
    const node = this.#choice();
    if (!this.#take(')')) throw this.#wrong('a ")" is missing');
    this.#depth -= 1;
    return node;
  }

  #class(): Node {
    this.#at += 1;
    let text = this.#take('^') ? '[^' : '[';
    for (let first = true; first || this.#next !== ']'; first = false) {
      const char = this.#next;
      if (char === '') throw this.#wrong('a "]" is missing');
      this.#at += 1;
      if (PAIR.test(char + this.#next)) throw this.#wrong('a class has no characters above U+FFFF; write (a|b)');
      if (char === '[' && /[:.=]/.test(this.#next)) throw this.#wrong('names of classes are not known; write a-z');
      const range = char === '-' && !first && this.#next !== ']';
      text += char === '\\' ? this.#escape() : range ? '-' : escaped(char);
    }
    this.#at += 1;
    return this.#set(`${text}]`);
  }

  /** Reads the character after a backslash, as part of a class. */
  #escape(): string {
    const char = this.#next;
    this.#at += 1;
    if (char !== '' && CLASSES.includes(char)) return `\\${char}`;
    const control = CONTROLS[char];
    if (control) return escaped(control);
    if (char === '' || /[A-Za-z0-9]/.test(char)) throw this.#wrong(`"\\${char}" is not known`);
    return escaped(char);
  }

  /** Compiles a class of JavaScript, which matches one character only. */
  #set(source: string): Node {
    let set = this.#sets.get(source);
    if (!set) {
      try {
        set = new CharSet(new RegExp(source, this.#anyCase ? 'i' : ''));
      } catch {
        throw this.#wrong(`"${source}" is no class of characters`);
      }
      this.#sets.set(source, set);
    }
    return { type: 'set', set };
  }

  get #next(): string {
    return this.#source[this.#at] ?? '';
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #wrong(problem: string): PatternError {
    return new PatternError(`at character ${this.#at + 1}: ${problem}`);
  }
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function lengths(node: Node): { least: number; most: number } {
  if (node.type === 'set') return { least: 1, most: 1 };
  if (node.type === 'repeat') {
    const { least, most } = lengths(node.part);
    return { least: least * node.least, most: most * node.most };
  }
  const parts = node.parts.map(lengths);
  if (node.type === 'choice') {
    return { least: Math.min(...parts.map(({ least }) => least)), most: Math.max(...parts.map(({ most }) => most)) };
  }
  const sum = (of: 'least' | 'most') => parts.reduce((total, part) => total + part[of], 0);
  return { least: sum('least'), most: sum('most') };
}
