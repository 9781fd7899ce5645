import { defined } from '../../core/defined.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { CachedTurn } from '../observed/world.ts';
import type { Draft } from './draft.ts';

/**
 * Ended turns that the next status counts and the written one does not, by index, up to the first gap that may still fill:
 * lastTurn.index says which ones are in. An earlier leader may have ended a turn that is not in the cache yet, so nothing is
 * counted before all turns were read.
 */
export function turnsToCount({ world, turns: { live, uncounted } }: Draft): readonly CachedTurn[] {
  if (!world.memory.knowsTurns) return [];
  const firstLive = Math.min(...live.map(({ status }) => status.index ?? Number.MAX_SAFE_INTEGER));
  const gap = uncounted.findIndex(({ status }) => (status.index ?? 0) > firstLive);
  return gap === -1 ? uncounted : uncounted.slice(0, gap);
}

/** Fields of the next status that count turns. */
export function countFields(draft: Draft): Pick<SessionStatus, 'turns' | 'lastTurn'> {
  const { session, memory } = draft.world;
  if (!memory.knowsTurns) return {};
  const totals = { total: 0, succeeded: 0, failed: 0, ...session.status?.turns };
  let last = session.status?.lastTurn;
  for (const turn of turnsToCount(draft)) {
    totals.total++;
    if (turn.status.phase === 'Succeeded') totals.succeeded++;
    if (turn.status.phase === 'Failed' || turn.status.phase === 'TimedOut') totals.failed++;
    last = asLast(turn);
  }
  return { turns: totals, ...(last ? { lastTurn: last } : {}) };
}

/** An ended turn as the session's status shows it. */
export function asLast({ metadata: { name }, status }: CachedTurn): NonNullable<SessionStatus['lastTurn']> {
  const { index = 0, phase = 'Failed', conditions, output } = status;
  // The cache drops the error of an ended turn, whose code is the condition's reason too.
  const code = conditions?.find(({ type }) => type === 'Finished')?.reason;
  return {
    name,
    index,
    phase,
    ...(code === undefined || phase === 'Succeeded' ? {} : { code }),
    ...defined({ output }),
  };
}
