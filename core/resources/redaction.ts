import type { Pod } from '../kube/builtin.ts';
import { type Heuristics, type Hidden, hiddenBy } from '../text/hidden.ts';
import { Pattern, patternProblem } from '../text/pattern.ts';
import { ANNOTATION_REDACTION } from './names.ts';
import type { SessionClassSpec } from './sessionclass.ts';

/** Redaction rules of a class, beside the values of Secrets. */
export interface RedactionRules {
  patterns: readonly string[];
  heuristics?: Heuristics | undefined;
}

/**
 * Redaction rules for the log of a runnerless pod: those that the pod was made with, because the class may be edited or
 * deleted while its program runs. Of a pod of an earlier version, or one that is not known, the class's present rules
 * apply.
 */
export function redactionOf(
  pod: Pod | undefined,
  sessionClass: { spec: Pick<SessionClassSpec, 'redact' | 'redaction'> } | undefined,
): RedactionRules {
  const made = pod?.metadata.annotations?.[ANNOTATION_REDACTION];
  if (made !== undefined) return JSON.parse(made) as RedactionRules;
  const { redact: patterns = [], redaction } = sessionClass?.spec ?? {};
  return { patterns, heuristics: redaction?.heuristics };
}

/** Returns the texts and patterns that the rules hide. Patterns that cannot be read are left out. */
export function hiddenByRules({ patterns, heuristics }: RedactionRules): Hidden {
  const sound = patterns.filter((source) => patternProblem(source) === undefined);
  return hiddenBy({ patterns: sound.map((source) => new Pattern(source)), heuristics });
}
