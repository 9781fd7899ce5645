/**
 * Takes secrets out of text that comes in pieces. What counts: `sk-` with ten or more letters, digits,
 * `-`, `_`, not within a word such as task-management; `key=`, `token=`, `secret=`, `password=` in any case with optional
 * space, up to the next space; `Bearer` up to the next space; and the exact value of every secret given to the session
 * that has four characters or more. Whatever lies in one or in several that overlap is replaced by one `[REDACTED]`.
 *
 * Whether a match begins at a place depends on a bounded number of characters after it, and how far it goes on the
 * characters that follow, and on the one before it. So the same text gives the same result however it is cut into pieces, in
 * linear time, with no more held back than the longest secret, and the line breaks in it.
 */

import { Dictionary, HEAD_CHARS } from './dictionary.ts';
import { base64Forms, jsonForms, urlForms } from './encodings.ts';
import type { Pattern } from './pattern.ts';
import { CONTEXT_CHARS, Wrapped } from './wrapped.ts';

/** What must not show: texts as they are, and patterns. */
export type Hidden = readonly (string | Pattern)[] & {
  /** Those of the texts that are also looked for over several lines. */
  readonly wrapped?: readonly string[];
};

const REPLACEMENT = '[REDACTED]';

/** Space around `=` and after `Bearer`: bounded, as anything that has to be held back. */
const ASSIGNMENT = /(?:key|token|secret|password)[ \t]{0,16}=[ \t]{0,16}(?=\S)/gi;
const BEARER = /Bearer[ \t]{1,16}(?=\S)/g;
const API_KEY = /sk-(?=[A-Za-z0-9_-]{10})/g;
/** More than the longest text that decides whether one of the three begins. */
const PATTERN_CHARS = 64;

const WORD = /^[A-Za-z0-9]$/;
const SPACE = /\s/g;
const NOT_API_KEY = /[^A-Za-z0-9_-]/g;

/** Where a pattern's match ends: before the first character of this kind. */
const PATTERNS = [
  { prefix: ASSIGNMENT, end: SPACE },
  { prefix: BEARER, end: SPACE },
  { prefix: API_KEY, end: NOT_API_KEY },
] as const;

/** `end` is undefined while the match goes on beyond the text at hand. */
interface Match {
  start: number;
  end: number | undefined;
}

/** What is shorter is no secret to anybody who tries, and stands in every text. */
const MIN_CHARS = HEAD_CHARS;
/** Shorter ones may be two words that stand below each other. */
const MIN_WRAPPED_CHARS = 16;

/**
 * The values to look for: each as it is, without the line feed it often ends with, as JSON writes it, and as it stands in
 * a URL or in base64; and the patterns. Values of fewer than four characters, space around them left out, are not looked for.
 */
export function secretForms(values: Iterable<string>, patterns: readonly Pattern[] = []): Hidden {
  const forms = new Set<string>();
  const wrapped = new Set<string>();
  for (const value of values) {
    const text = value.trim();
    if (text.length < MIN_CHARS) continue;
    const base64 = base64Forms(Buffer.from(text));
    for (const form of [value, text, ...jsonForms(text), ...urlForms(text), ...base64]) forms.add(form);
    for (const form of base64) wrapped.add(form);
    if (text.length >= MIN_WRAPPED_CHARS) wrapped.add(text);
  }
  const hidden = [...[...forms].sort((a, b) => b.length - a.length), ...patterns];
  return Object.assign(hidden, { wrapped: [...wrapped] });
}

/** How what is hidden is looked for. */
interface Search {
  dictionary: Dictionary;
  wrapped: Wrapped;
  patterns: readonly Pattern[];
  /** How many characters decide whether a match begins. */
  hold: number;
  /** A secret with a line feed can go on in the next line; the patterns cannot. */
  endsWithLine: boolean;
}

const searches = new WeakMap<Hidden, Search>();

/** Made once: a value is redacted string by string. */
function searchFor(hidden: Hidden): Search {
  let found = searches.get(hidden);
  if (!found) {
    const secrets = hidden.filter((secret) => typeof secret === 'string');
    const patterns = hidden.filter((secret) => typeof secret !== 'string');
    const longest = [...secrets.map(({ length }) => length), ...patterns.map(({ maxLength }) => maxLength)];
    found = {
      dictionary: new Dictionary(secrets),
      wrapped: new Wrapped(hidden.wrapped ?? []),
      patterns,
      hold: longest.reduce((most, chars) => Math.max(most, chars), PATTERN_CHARS),
      endsWithLine: !secrets.some((secret) => secret.includes('\n')),
    };
    searches.set(hidden, found);
  }
  return found;
}

export class Redactor {
  readonly #search: Search;
  #pending = '';
  /** Up to where `#pending` belongs to a match already replaced; 0 when one ended just before it, -1 without one. */
  #covered = -1;
  /** Such a match goes on until a character of this kind. */
  #open: RegExp[] = [];
  /** What stood before `#pending`, as far as it matters. */
  #before = '';

  /** `secrets` as `secretForms` gives them. */
  constructor(secrets: Hidden) {
    this.#search = searchFor(secrets);
  }

  /** The redacted text that this piece completes. */
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

  /** The rest: nothing follows. */
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
      if (start > covered) result += text.slice(at, start) + REPLACEMENT;
      covered = Math.max(covered, end ?? text.length);
      at = Math.min(covered, cut);
    }
    result += text.slice(at, cut);
    this.#pending = text.slice(cut);
    this.#before = (this.#before + text.slice(Math.max(0, cut - CONTEXT_CHARS), cut)).slice(-CONTEXT_CHARS);
    this.#covered = covered < cut ? -1 : covered - cut;
    this.#open = open;
    return result;
  }

  /** The matches that begin before `cut`, by start. Adds to `open` what those wait for that go on beyond the text. */
  #matches(text: string, cut: number, open: RegExp[]): Match[] {
    const matches: Match[] = [];
    for (const { prefix, end } of PATTERNS) {
      let reach = 0;
      prefix.lastIndex = 0;
      for (let found = prefix.exec(text); found && found.index < cut; found = prefix.exec(text)) {
        if (prefix === API_KEY && WORD.test(text[found.index - 1] ?? this.#before.slice(-1))) continue;
        // One inside the former ends where the former does: looking for that again would make it quadratic.
        if (prefix.lastIndex < reach) continue;
        const stop = search(end, text, prefix.lastIndex);
        reach = stop ?? text.length;
        matches.push({ start: found.index, end: stop });
        if (stop === undefined) {
          if (!open.includes(end)) open.push(end);
          break;
        }
      }
    }
    for (const span of this.#search.dictionary.find(text, cut)) matches.push(span);
    for (const span of this.#search.wrapped.find(this.#before, text)) if (span.start < cut) matches.push(span);
    for (const pattern of this.#search.patterns) for (const span of pattern.cover(text, cut)) matches.push(span);
    return matches.sort((a, b) => a.start - b.start);
  }
}

/** Index of the first match at or after `from`. */
function search(kind: RegExp, text: string, from: number): number | undefined {
  kind.lastIndex = from;
  return kind.exec(text)?.index;
}

/** A whole text at once. */
export function redact(text: string, secrets: Hidden): string {
  const redactor = new Redactor(secrets);
  return redactor.push(text) + redactor.end();
}
