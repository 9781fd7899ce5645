import { HEAD_CHARS } from './dictionary.ts';
import { base64Forms, jsonForms, urlForms } from './encodings.ts';
import type { Pattern } from './pattern.ts';

/** Texts and patterns to hide. */
export interface Rules {
  /** Exact texts, longest first. */
  readonly texts: readonly string[];
  /** Texts that are also looked for over several lines. */
  readonly wrapped: readonly string[];
  readonly patterns: readonly Pattern[];
  /** True if text that looks like a secret is hidden too. */
  readonly heuristics: boolean;
}

/** Redaction rules by the destination of a text. No other code distinguishes the three levels of redaction. */
export interface Hidden {
  /** Rules for error texts, and for the names of processes in them. */
  readonly errors: Rules;
  /** Rules for the readable text of the session. */
  readonly logs: Rules;
  /**
   * Rules for data that the agent returns: outputs, metadata, events, and questions to people. Programs read it, so a
   * wrong guess would alter a result.
   */
  readonly outputs: Rules;
}

export const HEURISTICS = ['Errors', 'ErrorsAndLogs', 'Everything', 'Off'] as const;
/** Scope in which text that looks like a secret is hidden. */
export type Heuristics = (typeof HEURISTICS)[number];

/** Least length of a secret: a shorter value can be guessed by trying all, and stands in every text. */
const MIN_CHARS = HEAD_CHARS;
/**
 * Least length of a secret that is hidden in outputs: a shorter value is a word (root, admin) that an output has for
 * other reasons.
 */
const MIN_OUTPUT_CHARS = 8;
/** Least length of a secret that is looked for across lines: a shorter value may be two words below each other. */
const MIN_WRAPPED_CHARS = 16;

export interface HiddenOptions {
  /** Values of secrets. */
  values?: Iterable<string>;
  /** Lines of secrets, and strings in them. */
  parts?: Iterable<string>;
  /** Patterns of the class. */
  patterns?: readonly Pattern[];
  heuristics?: Heuristics | undefined;
}

/** Returns the rules for each destination of a text. */
export function hiddenBy({
  values = [],
  parts = [],
  patterns = [],
  heuristics = 'ErrorsAndLogs',
}: HiddenOptions): Hidden {
  const [whole, all] = [[...values], [...parts]];
  const short = { ...formsOf([...whole, ...all], MIN_CHARS), patterns };
  const errors = { ...short, heuristics: heuristics !== 'Off' };
  // Equal rules are the same object, so that a text is searched once.
  const logs = heuristics === 'Errors' ? { ...short, heuristics: false } : errors;
  const long = all.filter((part) => !setsShortValue(part));
  const outputs = {
    ...formsOf([...whole, ...long], MIN_OUTPUT_CHARS),
    patterns,
    heuristics: heuristics === 'Everything',
  };
  return { errors, logs, outputs };
}

/** True for a value that is too short to be looked for in outputs. */
export function isTooShort(value: string): boolean {
  const { length } = value.trim();
  return length > 0 && length < MIN_OUTPUT_CHARS;
}

/** Matches a line of YAML, or of settings: a name and its value. */
const SETTING = /^(?:- +)?[\w.-]+(?::(?: +|$)|[ \t]*=[ \t]*)(.*)$/;

/** True for a line with a value too short for a secret: `apiVersion: v1` of a kubeconfig stands in every manifest. */
function setsShortValue(part: string): boolean {
  const [, value] = SETTING.exec(part) ?? [];
  return value !== undefined && value.length < MIN_OUTPUT_CHARS;
}

/**
 * Returns the forms of values to look for: each as it is, without a final line feed, as JSON writes it, and as URLs and
 * base64 encode it. Space around a value does not count for its length.
 */
function formsOf(values: readonly string[], least: number): Pick<Rules, 'texts' | 'wrapped'> {
  const forms = new Set<string>();
  const wrapped = new Set<string>();
  for (const value of values) {
    const text = value.trim();
    if (text.length < least) continue;
    const base64 = base64Forms(Buffer.from(text));
    for (const form of [value, text, ...jsonForms(text), ...urlForms(text), ...base64]) forms.add(form);
    for (const form of base64) wrapped.add(form);
    if (text.length >= MIN_WRAPPED_CHARS) wrapped.add(text);
  }
  return { texts: [...forms].sort((a, b) => b.length - a.length), wrapped: [...wrapped] };
}
