import { DEFAULT_TIMEOUTS } from '../../core/resources/defaults.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../observed/world.ts';

type Spec = CachedSession['spec'];
export type TimeoutName = keyof NonNullable<Spec['timeouts']>;

/**
 * Timeout of a session as written: the session's, the class's or the built-in one, at most the class's ceiling.
 * Undefined: none. Works for invalid sessions and classes too.
 */
export function timeoutText(
  name: keyof typeof DEFAULT_TIMEOUTS,
  spec: Spec,
  sessionClass: StoredSessionClass | undefined,
): string | undefined {
  const wanted = spec.timeouts?.[name] ?? sessionClass?.spec.timeouts?.[name] ?? DEFAULT_TIMEOUTS[name];
  return atMost(wanted, sessionClass?.spec.maxTimeouts?.[name]);
}

/** Timeout of a session in milliseconds; Infinity: none. */
export function timeoutMs(
  name: keyof typeof DEFAULT_TIMEOUTS,
  spec: Spec,
  sessionClass: StoredSessionClass | undefined,
): number {
  return toMs(timeoutText(name, spec, sessionClass));
}

/** The shorter of two durations, as it was written. */
function atMost(wanted: string | undefined, ceiling: string | undefined): string | undefined {
  return ceiling !== undefined && toMs(ceiling) < toMs(wanted) ? ceiling : wanted;
}

/** Milliseconds of a duration; Infinity for undefined. */
export function toMs(text: string | undefined): number {
  return text === undefined ? Number.POSITIVE_INFINITY : parseDuration(text);
}
