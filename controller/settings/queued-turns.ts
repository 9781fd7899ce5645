import type { StoredSessionClass } from '../../core/resources/kinds.ts';

/** Maximum number of turns of one session that wait. */
export function maxQueuedTurns(sessionClass: Pick<StoredSessionClass, 'spec'> | undefined): number {
  return sessionClass?.spec.limits?.maxQueuedTurns ?? 256;
}
