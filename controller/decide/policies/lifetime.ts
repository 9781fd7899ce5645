import { wasNeverSent } from '../../observed/link-view.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { ended } from '../../status/turn-status.ts';
import { hasPassed, type Policy } from '../draft.ts';
import { lifetimeOver } from '../suspend-reason.ts';
import { STOP_GRACE_MS } from './running.ts';

const MESSAGE = 'timeouts.lifetime of the session is over; the turn was stopped.';

/** Stops the running turn at the end of the session's lifetime, as a Job's activeDeadlineSeconds does. */
export const lifetime: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  if (!lifetimeOver(draft)) return undefined;
  const end = (turn: CachedTurn) =>
    draft.actions.push({
      do: 'WriteTurn',
      turn,
      status: ended(turn, { phase: 'TimedOut', reason: 'LifetimeExceeded', message: MESSAGE }, now),
    });
  for (const turn of draft.turns.live) if (turn.status.phase === 'AwaitingApproval') end(turn);
  const turn = draft.turns.running;
  if (!turn || !pod || turn.status.podUID !== pod.metadata.uid) return undefined;
  if (wasNeverSent(link, pod.metadata.uid, turn.metadata.uid)) {
    end(turn);
    return 'Stop';
  }
  if (!link || ['Opening', 'Unbound', 'Binding'].includes(link.phase)) return undefined;
  const sent = link.cancelSent?.get(turn.metadata.uid);
  if (!sent) {
    draft.actions.push({ do: 'CancelTurn', turn: turn.metadata.uid, why: 'LifetimeExceeded' });
    return 'Stop';
  }
  if (!hasPassed(draft, sent.at, STOP_GRACE_MS)) return undefined;
  draft.actions.push({ do: 'DeletePod', pod, why: 'lifetime over' });
  end(turn);
  return 'Stop';
};
