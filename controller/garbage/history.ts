import type { SessionStatus } from '../../core/resources/session.ts';
import type { HistoryLimits } from '../settings/retention.ts';
import { isLater, type TurnFacts } from './facts.ts';

/**
 * Ended turns beyond the limits, the oldest first. A turn may go only once the session's status counts it and has its
 * state; the last turn stays, whatever its size.
 */
export function overHistory(turns: TurnFacts[], status: SessionStatus, limits: HistoryLimits): TurnFacts[] {
  // Turns without an index were refused as SessionFinished or QueueFull.
  const ended = turns.filter((turn) => turn.ended).sort((a, b) => b.index - a.index || b.endedAt - a.endedAt);
  const counted = status.lastTurn?.index ?? 0;
  const over: TurnFacts[] = [];
  let kept = 0;
  let bytes = 0;
  let stored = 0;
  for (const turn of ended) {
    bytes += turn.bytes;
    stored += turn.stored;
    const fits = kept === 0 || (kept < limits.turns && bytes <= limits.bytes && stored <= limits.stored);
    const copied = turn.index <= counted && !isLater(turn.state, status.state);
    if (fits) kept++;
    else if (copied) over.unshift(turn);
  }
  return over;
}
