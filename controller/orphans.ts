import { sessionOwner, turns } from '../core/resources/kinds.ts';
import type { TurnStatus } from '../core/resources/turn.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import type { Effects } from './act/context.ts';
import { writingTurn } from './act/too-large.ts';
import { DEFAULT_START_MS } from './settings/effective.ts';
import { ended, queued } from './status/turn-status.ts';

/** Grace before a missing session is reported: objects applied together come in any order. */
const GRACE_MS = 2000;

/**
 * Reconciles turns whose session does not exist: they wait for it, then fail. A turn whose owner is gone is left to the
 * cluster's garbage collector. Resolves with the milliseconds until the next reconcile.
 */
export async function reconcileOrphans(
  effects: Effects,
  namespace: string,
  session: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { statuses, caches, clock } = effects;
  const now = clock.now();
  let wakeAt = Number.POSITIVE_INFINITY;
  for (const turn of caches.turnsNaming(namespace, session)) {
    const owner = sessionOwner(turn.metadata)?.uid;
    const goesWithOwner = owner !== undefined && !caches.allSessions().some(({ metadata }) => metadata.uid === owner);
    if (isTerminal(turn.status.phase) || goesWithOwner) continue;
    const age = now - Date.parse(turn.metadata.creationTimestamp);
    const message = `There is no Session "${session}" in namespace "${namespace}"; create it, then give the turn again under another name: a Session never takes a turn that is older than it.`;
    const write = (status: TurnStatus) =>
      writingTurn(effects, turn, () => statuses.write(turns, turn.metadata, status, signal));
    if (turn.spec.cancel) {
      const status = ended(
        turn,
        { phase: 'Cancelled', reason: 'Cancelled', message: 'The turn was cancelled before it ran.' },
        now,
      );
      await write(status);
    } else if (age >= DEFAULT_START_MS) {
      const status = ended(turn, { phase: 'Failed', reason: 'SessionNotFound', message }, now);
      await write(status);
    } else if (turn.status.phase === undefined && age >= GRACE_MS) {
      const { index: _none, ...status } = queued(turn, 0, 'SessionNotFound', now, message);
      await write(status);
    }
    wakeAt = Math.min(
      wakeAt,
      turn.status.phase === undefined && age < GRACE_MS ? now + GRACE_MS - age : now + DEFAULT_START_MS - age,
    );
  }
  return Number.isFinite(wakeAt) ? Math.max(wakeAt - now, 1) : undefined;
}
