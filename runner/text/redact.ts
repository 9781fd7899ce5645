/**
 * Takes secrets out of text that comes in pieces. What counts (requirements R1): `sk-` with ten or more letters, digits,
 * `-`, `_`, not within a word such as task-management; `key=`, `token=`, `secret=`, `password=` in any case with optional space, up to the next space; `Bearer` up to
 * the next space; and the exact value of every secret given to the session. Whatever lies in one or in several that
 * overlap is replaced by one `[REDACTED]`.
 *
 * Whether a match begins at a place depends on a bounded number of characters after it, and how far it goes on the
 * characters that follow, and on the one before it. So the same text gives the same result however it is cut into pieces, in
 * linear time, with no more held back than the longest secret.
 */

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

/** The values to look for: each as it is, without the line feed it often ends with, and as JSON writes it. */
export function secretForms(values: Iterable<string>): string[] {
  const forms = new Set<string>();
  for (const value of values) {
    for (const form of [value, value.trim(), JSON.stringify(value.trim()).slice(1, -1)]) if (form) forms.add(form);
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

export class Redactor {
  readonly #secrets: readonly string[];
  readonly #hold: number;
  /** A secret with a line feed can go on in the next line; the patterns cannot. */
  readonly #endsWithLine: boolean;
  #pending = '';
  /** Up to where `#pending` belongs to a match already replaced; 0 when one ended just before it, -1 without one. */
  #covered = -1;
  /** Such a match goes on until a character of this kind. */
  #open: RegExp[] = [];
  /** The character before `#pending`. */
  #before = '';

  /** `secrets` as `secretForms` gives them. */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    this.#hold = Math.max(PATTERN_CHARS, secrets[0]?.length ?? 0);
    this.#endsWithLine = !secrets.some((secret) => secret.includes('\n'));
  }

  /** The redacted text that this piece completes. */
  push(piece: string): string {
    this.#pending += piece;
    let cut = Math.max(0, this.#pending.length - this.#hold);
    if (this.#endsWithLine) cut = Math.max(cut, this.#pending.lastIndexOf('\n') + 1);
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
    this.#before = text[cut - 1] ?? '';
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
        if (prefix === API_KEY && WORD.test(text[found.index - 1] ?? this.#before)) continue;
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
    for (const secret of this.#secrets) {
      for (let i = text.indexOf(secret); i !== -1 && i < cut; i = text.indexOf(secret, i + 1)) {
        matches.push({ start: i, end: i + secret.length });
      }
    }
    return matches.sort((a, b) => a.start - b.start);
  }
}

/** Index of the first match at or after `from`. */
function search(kind: RegExp, text: string, from: number): number | undefined {
  kind.lastIndex = from;
  return kind.exec(text)?.index;
}

/** A whole text at once. */
export function redact(text: string, secrets: readonly string[]): string {
  const redactor = new Redactor(secrets);
  return redactor.push(text) + redactor.end();
}
