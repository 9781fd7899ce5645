import { formatDuration, parseDuration } from '../../core/resources/duration.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../world/world.ts';

type Spec = CachedSession['spec'];
export type TimeoutName = keyof NonNullable<Spec['timeouts']>;

const MINUTE = 60_000;

/** Milliseconds where neither the session nor its class says anything. */
export const DEFAULT_TIMEOUTS = {
  start: 10 * MINUTE,
  turn: 30 * MINUTE,
  stall: Number.POSITIVE_INFINITY,
  idle: 120 * MINUTE,
  approval: 24 * 60 * MINUTE,
  persist: 5 * MINUTE,
  lifetime: Number.POSITIVE_INFINITY,
} as const satisfies Partial<Record<TimeoutName, number>>;

/**
 * Time-out of a session as it was written: the session's, the class's or the built-in one, at most the class's ceiling.
 * Undefined: none. Holds whatever else is wrong with the session or its class.
 */
export function timeoutText(
  name: keyof typeof DEFAULT_TIMEOUTS,
  spec: Spec,
  sessionClass: StoredSessionClass | undefined,
): string | undefined {
  const byDefault = DEFAULT_TIMEOUTS[name];
  const builtIn = Number.isFinite(byDefault) ? formatDuration(byDefault) : undefined;
  const wanted = spec.timeouts?.[name] ?? sessionClass?.spec.timeouts?.[name] ?? builtIn;
  return atMost(wanted, sessionClass?.spec.maxTimeouts?.[name]);
}

/** The same in milliseconds; Infinity: none. */
export function timeoutMs(
  name: keyof typeof DEFAULT_TIMEOUTS,
  spec: Spec,
  sessionClass: StoredSessionClass | undefined,
): number {
  return toMs(timeoutText(name, spec, sessionClass));
}

/** The shorter of two durations, as it was written. */
export function atMost(wanted: string | undefined, ceiling: string | undefined): string | undefined {
  return ceiling !== undefined && toMs(ceiling) < toMs(wanted) ? ceiling : wanted;
}

/** Milliseconds of a duration; Infinity where there is none. */
export function toMs(text: string | undefined): number {
  return text === undefined ? Number.POSITIVE_INFINITY : parseDuration(text);
}
