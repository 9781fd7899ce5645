import { isTerminal } from '../../core/resources/turn-phases.ts';
import { isGiven } from '../observed/own-turns.ts';
import { isOver } from '../observed/pod-status.ts';
import type { CachedTurn, Problem } from '../observed/world.ts';
import type { Draft } from './draft.ts';
import { roomWait } from './room.ts';

/** Concurrency groups: a turn may not begin while its group's limit of turns run. */

/** The next turn, unless it has begun. */
function next(draft: Draft): CachedTurn | undefined {
  const [turn] = draft.turns.live;
  const waits = turn && (turn.status.phase === undefined || turn.status.phase === 'Queued') && !isGiven(turn);
  return waits ? turn : undefined;
}

/** Reports whether a turn waits to begin, or is about to be created from the session's input. */
function isPending(draft: Draft): boolean {
  return next(draft) !== undefined || draft.actions.some(({ do: what }) => what === 'CreateFirstTurn');
}

/** Reason why the next turn waits for its group; undefined when it need not. */
export function groupWait(draft: Draft): Problem | undefined {
  const { world } = draft;
  if (world.group.free || !isPending(draft)) return undefined;
  const { group, limit, running, unknown } = world.group;
  const name = group.slice(group.indexOf('/') + 1);
  if (unknown) return { reason: 'CapacityUnknown', message: unknown };
  const turns = limit === 1 ? '1 turn' : `${limit} turns`;
  const now = running.length > 0 ? `: ${some(running)}` : '';
  return { reason: 'GroupLimit', message: `Concurrency group "${name}" runs ${turns} at once${now}.` };
}

const NAMED = 4;

function some(names: string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}

/**
 * The session's request to its group after this decision. `Waits`: for admission of its next turn. `Begins`: it begins the
 * turn now or as soon as its pod exists, and counts from now on.
 */
export function groupPart(draft: Draft): 'Waits' | 'Begins' | undefined {
  const { world, actions } = draft;
  const { session, pod } = world;
  const turn = next(draft);
  if (!session.spec.concurrencyGroup || !isPending(draft) || session.metadata.deletionTimestamp || session.spec.suspend)
    return undefined;
  const ends = actions.some(
    (action) => action.do === 'WriteTurn' && action.turn === turn && isTerminal(action.status.phase),
  );
  // A turn that waits for room in the store would keep the group from others, whose end may be what makes the room.
  if (ends || roomWait(draft)) return undefined;
  if (!world.group.free) return 'Waits';
  if (draft.admission) return 'Begins';
  const starts =
    session.status?.podName && !draft.released && !(pod && (pod.metadata.deletionTimestamp || isOver(pod)));
  return starts ? 'Begins' : undefined;
}
