import { DEFAULT_HISTORY, DEFAULT_TTL } from '../../core/resources/defaults.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { CachedSession } from '../observed/world.ts';

/** Retention of a session and its ended turns: its own settings, where its class allows them, over its class's. */
export interface Retention {
  finishedMs: number;
  suspendedMs: number;
  history: HistoryLimits;
}

export interface HistoryLimits {
  turns: number;
  /** Bytes of the JSON of the turns. */
  bytes: number;
  /** Bytes of the outputs, logs and artifacts that the turns have in the store. */
  stored: number;
}

/** Nothing is deleted while the class is gone: it may be replaced, and may keep for longer than the defaults do. */
const EVERYTHING: Retention = {
  finishedMs: Number.POSITIVE_INFINITY,
  suspendedMs: Number.POSITIVE_INFINITY,
  history: {
    turns: Number.POSITIVE_INFINITY,
    bytes: Number.POSITIVE_INFINITY,
    stored: Number.POSITIVE_INFINITY,
  },
};

export function retention({ spec }: CachedSession, sessionClass: StoredSessionClass | undefined): Retention {
  if (!sessionClass) return EVERYTHING;
  const { spec: ofClass } = sessionClass;
  const own = <K extends 'ttlAfterFinished' | 'ttlAfterSuspended' | 'history'>(field: K) =>
    ofClass.overrides.includes(field) ? spec[field] : undefined;
  const history = { ...ofClass.history, ...own('history') };
  return {
    // The state of a build is the archive of an environment; see `environments/unused.ts`.
    finishedMs: spec.build
      ? Number.POSITIVE_INFINITY
      : parseDuration(own('ttlAfterFinished') ?? ofClass.ttlAfterFinished ?? DEFAULT_TTL.finished[spec.turns]),
    suspendedMs: parseDuration(own('ttlAfterSuspended') ?? ofClass.ttlAfterSuspended ?? DEFAULT_TTL.suspended),
    history: {
      turns: history.turns ?? DEFAULT_HISTORY.turns,
      bytes: parseQuantity(history.bytes ?? DEFAULT_HISTORY.bytes),
      stored: parseQuantity(history.stored ?? DEFAULT_HISTORY.stored),
    },
  };
}
