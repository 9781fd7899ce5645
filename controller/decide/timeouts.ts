import { parseDuration } from '../../core/resources/duration.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../world.ts';

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
 * One of the session's time-outs in milliseconds: its own, its class's or the built-in one, at most the class's ceiling.
 * Holds whatever else is wrong with the session or its class.
 */
export function timeoutMs(
  name: keyof typeof DEFAULT_TIMEOUTS,
  spec: Spec,
  sessionClass: StoredSessionClass | undefined,
): number {
  const given = spec.timeouts?.[name] ?? sessionClass?.spec.timeouts?.[name];
  const ceiling = sessionClass?.spec.maxTimeouts?.[name];
  const wanted = given === undefined ? DEFAULT_TIMEOUTS[name] : parseDuration(given);
  return ceiling === undefined ? wanted : Math.min(wanted, parseDuration(ceiling));
}
