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
  /** True where text that looks like a secret is hidden too. */
  readonly heuristics: boolean;
}

/** Redaction rules, by where a text goes. The only place that tells the three levels of redaction apart. */
export interface Hidden {
  /** Error texts, and the names of processes in them. */
  readonly errors: Rules;
  /** The readable text of the session. */
  readonly logs: Rules;
  /** Data that the agent returns: outputs, metadata, events, and questions to people. Programs read it, so a wrong guess is an altered result. */
  readonly outputs: Rules;
}

export const HEURISTICS = ['Errors', 'ErrorsAndLogs', 'Everything', 'Off'] as const;
/** Where what looks like a secret is hidden. */
export type Heuristics = (typeof HEURISTICS)[number];

/** Shorter values are no secret to anybody who tries all of them, and stand in every text. */
const MIN_CHARS = HEAD_CHARS;
/** Shorter values are words (root, admin): an output has them for other reasons. */
export const MIN_OUTPUT_CHARS = 8;
/** Shorter values may be two words that stand below each other. */
const MIN_WRAPPED_CHARS = 16;

export interface HiddenOptions {
  /** Values of secrets. */
  values?: Iterable<string>;
  /** Lines of such values, and strings in them. */
  parts?: Iterable<string>;
  /** The class's. */
  patterns?: readonly Pattern[];
  heuristics?: Heuristics | undefined;
}

/** Rules for each place that a text can go to. */
export function hiddenBy({
  values = [],
  parts = [],
  patterns = [],
  heuristics = 'ErrorsAndLogs',
}: HiddenOptions): Hidden {
  const [whole, all] = [[...values], [...parts]];
  const short = { ...formsOf([...whole, ...all], MIN_CHARS), patterns };
  const errors = { ...short, heuristics: heuristics !== 'Off' };
  // The same object where the rules are the same: then a text is looked at once.
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

/** A line of YAML, or of settings: a name, and what it is set to. */
const SETTING = /^(?:- +)?[\w.-]+(?::(?: +|$)|[ \t]*=[ \t]*)(.*)$/;

/** True for a line that sets a value too short for a secret: `apiVersion: v1` of a kubeconfig stands in every manifest. */
function setsShortValue(part: string): boolean {
  const [, value] = SETTING.exec(part) ?? [];
  return value !== undefined && value.length < MIN_OUTPUT_CHARS;
}

/**
 * The values to look for: each as it is, without the line feed it often ends with, as JSON writes it, and as it stands in
 * a URL or in base64. Space around a value does not count for its length.
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
