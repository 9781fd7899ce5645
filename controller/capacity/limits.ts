import { selects } from '../../core/resources/label-selector.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Space, Tally } from './tally.ts';

/** Scopes of limits, from the widest to the narrowest. */
type Scope = 'Installation' | 'Class' | 'Namespace';

export interface Limit {
  scope: Scope;
  /** Number of slots. */
  slots: number;
}

/** Sources of limits. An undefined value is unknown at the moment; nothing is admitted then. */
export interface LimitSources {
  /** Limit of the installation; absent: none. */
  maxRunning: number | undefined;
  class(name: string): { spec: Pick<SessionClassSpec, 'limits' | 'namespaceSelector'> } | undefined;
  /** Labels of a Namespace. */
  labels(namespace: string): Readonly<Record<string, string>> | undefined;
}

/**
 * Limits that apply to sessions of one class in one namespace, the widest first; or a message on what is unknown. Of
 * several entries of a class that select the namespace the lowest counts.
 */
export function limitsOf(sources: LimitSources, { namespace, class: name = '' }: Space): Limit[] | string {
  const limits: Limit[] = [];
  if (sources.maxRunning !== undefined) limits.push({ scope: 'Installation', slots: sources.maxRunning });
  const sessionClass = sources.class(name);
  if (!sessionClass) return `SessionClass "${name}" cannot be read, so its limits are not known; the session waits.`;
  const { maxRunning, namespaces = [] } = sessionClass.spec.limits ?? {};
  if (maxRunning !== undefined) limits.push({ scope: 'Class', slots: maxRunning });
  if (namespaces.length === 0 && !sessionClass.spec.namespaceSelector) return limits;
  const labels = sources.labels(namespace);
  if (!labels) {
    return `The labels of namespace "${namespace}", by which class "${name}" selects or limits it, are not known; the session waits.`;
  }
  const selected = namespaces.filter(({ selector }) => selects(selector, labels));
  if (selected.length > 0) {
    limits.push({ scope: 'Namespace', slots: Math.min(...selected.map((entry) => entry.maxRunning)) });
  }
  return limits;
}

/** Name of a limit of `space`, the same for all spaces that share its slots. */
export function nameOf({ scope }: Limit, { namespace, class: name = '' }: Space): string {
  if (scope === 'Installation') return scope;
  return scope === 'Class' ? `Class ${name}` : `Namespace ${name} ${namespace}`;
}

/** Number of slots of a limit that are taken. */
export function takenOf({ scope }: Limit, { namespace, class: name = '' }: Space, tally: Tally): number {
  if (scope === 'Installation') return tally.total;
  return scope === 'Class' ? tally.ofClass(name) : tally.ofClassIn(name, namespace);
}

/** Reports whether a slot of `other` counts for the limit that applies to `space`. */
export function countsFor({ scope }: Limit, space: Space, other: Space): boolean {
  if (scope === 'Installation') return true;
  return other.class === space.class && (scope === 'Class' || other.namespace === space.namespace);
}

/** Limits without a free slot, the widest first. A limit that was lowered below what runs has none either. */
export function fullOf(limits: Limit[], space: Space, tally: Tally): Limit[] {
  return limits.filter((limit) => takenOf(limit, space, tally) >= limit.slots);
}
