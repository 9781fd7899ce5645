import type { CachedSession, Problem } from '../observed/world.ts';
import { type Draft, wake } from './draft.ts';

/** Sessions that take one turn and have none. */

/** Milliseconds after its creation in which such a session is started ahead of its turn, as `berth run` expects. */
const AHEAD_MS = 60_000;

/** Reports whether the only turn of the session does not come with it, and is not counted yet. */
export function awaitsOnlyTurn({ spec, status }: CachedSession): boolean {
  return spec.turns === 'One' && spec.input === undefined && status?.lastTurn === undefined;
}

/** Reports whether the session has waited for its only turn for so long that it holds no slot for it. */
export function lacksItsTurn(draft: Draft): boolean {
  const { session, memory, now } = draft.world;
  const { live, ownerless, uncounted } = draft.turns;
  if (!awaitsOnlyTurn(session) || !memory.knowsTurns || live.length + ownerless.length + uncounted.length > 0)
    return false;
  const until = Date.parse(session.metadata.creationTimestamp) + AHEAD_MS;
  if (now >= until) return true;
  wake(draft, until);
  return false;
}

export const MISSING_TURN: Problem = {
  reason: 'InvalidSpec',
  message:
    'spec.input: is not set, but spec.turns is One, and no Turn of the session has come; delete the session and create one with the input, or create its Turn. It holds no slot until then.',
};
