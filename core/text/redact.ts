/**
 * Removes text to hide from text that arrives in pieces: fixed texts, also with line breaks inside, the class's
 * patterns and, where the rules say so, text that looks like a secret. Matches that overlap are replaced by one
 * `[REDACTED]`.
 *
 * A bounded number of characters before and after a place decides whether a match begins there, and the characters that
 * follow decide where it ends. So the same text gives the same result for any cut into pieces, in linear time. No
 * more text is held back than the longest secret with the line breaks in it.
 */

import { Dictionary } from './dictionary.ts';
import { HEURISTIC_CHARS, heuristics } from './heuristics.ts';
import type { Rules } from './hidden.ts';
import { CONTEXT_CHARS, Wrapped } from './wrapped.ts';

const REPLACEMENT = '[REDACTED]';

/** `end` is undefined while the match continues beyond the text at hand. */
interface Match {
  start: number;
  end: number | undefined;
}

/** Search for the text to hide. */
interface Search {
  dictionary: Dictionary;
  wrapped: Wrapped;
  /** Number of characters that decide whether a match begins. */
  hold: number;
  /** A secret with a line feed can go on in the next line; patterns and heuristics cannot. */
  endsWithLine: boolean;
}

const searches = new WeakMap<Rules, Search>();

/** Cached search of the rules: a value is redacted string by string. */
function searchFor(rules: Rules): Search {
  let found = searches.get(rules);
  if (!found) {
    const { texts, wrapped, patterns } = rules;
    const longest = [...texts.map(({ length }) => length), ...patterns.map(({ maxLength }) => maxLength)];
    found = {
      dictionary: new Dictionary(texts),
      wrapped: new Wrapped(wrapped),
      hold: longest.reduce((most, chars) => Math.max(most, chars), HEURISTIC_CHARS),
      endsWithLine: !texts.some((text) => text.includes('\n')),
    };
    searches.set(rules, found);
  }
  return found;
}

const MAX_CONTEXT_CHARS = Math.max(CONTEXT_CHARS, HEURISTIC_CHARS);

export class Redactor {
  readonly #rules: Rules;
  readonly #search: Search;
  readonly #onHidden: () => void;
  #pending = '';
  /**
   * Index up to which `#pending` belongs to a match already replaced; 0 when one ended just before it, -1 without one.
   */
  #covered = -1;
  /** Kinds of characters that end such a match. */
  #open: RegExp[] = [];
  /** Text before `#pending`, as far as it can matter. */
  #before = '';

  /** `onHidden` is called for each `[REDACTED]`. */
  constructor(rules: Rules, onHidden: () => void = () => {}) {
    this.#rules = rules;
    this.#search = searchFor(rules);
    this.#onHidden = onHidden;
  }

  /** Returns the redacted text that this piece completes. */
  push(piece: string): string {
    this.#pending += piece;
    const { hold, endsWithLine, wrapped } = this.#search;
    let cut = Math.max(0, this.#pending.length - hold);
    if (endsWithLine) cut = Math.max(cut, this.#pending.lastIndexOf('\n') + 1);
    if (cut > 0) cut = Math.min(cut, wrapped.begun(this.#before, this.#pending));
    const last = this.#pending.charCodeAt(cut - 1);
    if (last >= 0xd800 && last < 0xdc00) cut -= 1;
    return this.#release(cut);
  }

  /** Returns the rest at the end of the text. */
  end(): string {
    const rest = this.#release(this.#pending.length);
    this.#open = [];
    this.#covered = -1;
    this.#before = '';
    return rest;
  }

  #release(cut: number): string {
    const text = this.#pending;
    if (cut <= 0) return '';
    let covered = this.#covered;
    const open: RegExp[] = [];
    for (const end of this.#open) {
      const stop = search(end, text, 0);
      covered = Math.max(covered, stop ?? text.length);
      if (stop === undefined) open.push(end);
    }
    let result = '';
    let at = Math.max(0, Math.min(covered, cut));
    for (const { start, end } of this.#matches(text, cut, open)) {
      if (start > covered) {
        result += text.slice(at, start) + REPLACEMENT;
        this.#onHidden();
      }
      covered = Math.max(covered, end ?? text.length);
      at = Math.min(covered, cut);
    }
    result += text.slice(at, cut);
    this.#pending = text.slice(cut);
    const context = this.#before + text.slice(Math.max(0, cut - MAX_CONTEXT_CHARS), cut);
    this.#before = context.slice(-MAX_CONTEXT_CHARS);
    this.#covered = covered < cut ? -1 : covered - cut;
    this.#open = open;
    return result;
  }

  /**
   * Returns the matches that begin before `cut`, by start. Adds the ends that matches beyond the text wait for to
   * `open`.
   */
  #matches(text: string, cut: number, open: RegExp[]): Match[] {
    const matches: Match[] = [];
    if (this.#rules.heuristics) this.#addHeuristic(matches, text, cut, open);
    for (const span of this.#search.dictionary.find(text, cut)) matches.push(span);
    for (const span of this.#search.wrapped.find(this.#before, text)) if (span.start < cut) matches.push(span);
    for (const pattern of this.#rules.patterns) for (const span of pattern.cover(text, cut)) matches.push(span);
    return matches.sort((a, b) => a.start - b.start);
  }

  /**
   * Adds the matches of a heuristic for secrets. The name stands before the match, so text that was returned already is
   * searched too.
   */
  #addHeuristic(matches: Match[], text: string, cut: number, open: RegExp[]): void {
    const before = this.#before.length;
    const all = this.#before + text;
    for (const { begin, end } of heuristics) {
      let reach = 0;
      begin.lastIndex = 0;
      for (let found = begin.exec(all); found; found = begin.exec(all)) {
        const start = found.index + (found[1] as string).length - before;
        if (start >= cut) break;
        // A match inside the former one ends where the former does: a second search for its end would be quadratic.
        if (start < reach) continue;
        const stop = search(end, text, start);
        reach = stop ?? text.length;
        matches.push({ start, end: stop });
        if (stop === undefined) {
          if (!open.includes(end)) open.push(end);
          break;
        }
      }
    }
  }
}

/** Returns the index of the first match at or after `from`. */
function search(kind: RegExp, text: string, from: number): number | undefined {
  kind.lastIndex = from;
  return kind.exec(text)?.index;
}

/** Redacts a whole text at once. */
export function redact(text: string, rules: Rules, onHidden?: () => void): string {
  const redactor = new Redactor(rules, onHidden);
  return redactor.push(text) + redactor.end();
}
