import { MAX_INPUT_BYTES } from '../../../core/resources/limits.ts';
import { reasons } from '../../../core/resources/reasons.ts';
import type { CachedTurn } from '../../world.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { DEFAULT_START_MS, isProblem } from '../effective.ts';
import { isFinished } from '../hold.ts';
import { type Ending, ended, queued } from '../turn-status.ts';

/** Turns before they run: taken in, put in order, refused. */

/** An ownerless turn is the session's own unless it is older: then it was meant for a former session of the name. */
export const adopt: Policy = (draft) => {
  const { session, now } = draft.world;
  for (const turn of draft.turns.ownerless) {
    const older = Date.parse(turn.metadata.creationTimestamp) < Date.parse(session.metadata.creationTimestamp);
    if (!older && turn.status.index === undefined) {
      draft.actions.push({ do: 'AdoptTurn', turn });
    } else {
      const ending: Ending = {
        phase: 'Failed',
        reason: 'SessionReplaced',
        message: `The turn is older than the session "${session.metadata.name}" that exists now; create a new Turn.`,
      };
      draft.actions.push({ do: 'WriteTurn', turn, status: ended(turn, ending, now) });
    }
  }
  return undefined;
};

/** The turn in `spec.input` is created before anything of the session is written, so a crash in between repeats it. */
export const firstTurn: Policy = (draft) => {
  const { session } = draft.world;
  if (session.spec.input && session.status?.phase === undefined) draft.actions.push({ do: 'CreateFirstTurn' });
  return undefined;
};

/** Ends queued turns that cannot run, and gives every turn its index at first sight. */
export const order: Policy = (draft) => {
  const { now } = draft.world;
  let last = draft.turns.lastIndex;
  const next = draft.turns.live[0];
  const alone = draft.turns.live.filter((turn) => turn.status.index === undefined).length <= 1;
  for (const turn of draft.turns.live) {
    if (turn.status.phase === 'Running') continue;
    const index = turn.status.index ?? ++last;
    const ending = refusal(draft, turn);
    if (ending) {
      draft.actions.push({
        do: 'WriteTurn',
        turn,
        status: { ...ended(turn, ending, now), index },
      });
      continue;
    }
    const reason = draft.world.session.spec.suspend ? 'Held' : 'Queued';
    const shown = turn.status.conditions?.find((condition) => condition.type === 'Finished')?.reason;
    // A turn that starts in a moment gets its index with that write; beside others it must have it before they do.
    const startsNow = turn === next && alone && startsAtOnce(draft);
    if (!startsNow && (turn.status.index === undefined || shown !== reason)) {
      draft.actions.push({ do: 'WriteTurn', turn, status: queued(turn, index, reason, now) });
    }
  }
  return undefined;
};

function startsAtOnce({ world, settings }: Draft): boolean {
  return !world.session.spec.suspend && !isProblem(settings) && (world.place === 'Held' || world.place === 'Available');
}

function refusal(draft: Draft, turn: CachedTurn): Ending | undefined {
  const { session } = draft.world;
  if (turn.spec.cancel) {
    return { phase: 'Cancelled', reason: 'Cancelled', message: 'The turn was cancelled before it ran.' };
  }
  if (turn.input.bytes > MAX_INPUT_BYTES) {
    return {
      phase: 'Failed',
      reason: 'InputTooLarge',
      message: `spec.input: ${turn.input.bytes} bytes are more than the ${MAX_INPUT_BYTES} allowed; pass a reference to the data instead.`,
    };
  }
  const first = draft.turns.live[0] === turn && !isFinished(draft);
  if (session.spec.turns === 'One' && !first) {
    return { phase: 'Failed', reason: 'SessionFinished', message: reasons.SessionFinished };
  }
  const { settings } = draft;
  if (!isProblem(settings) || session.status?.podName) return undefined;
  // A class may still come, as everything that is applied together does; what the user wrote does not mend itself.
  const patience = settings.reason === 'ClassNotFound' ? DEFAULT_START_MS : 0;
  const deadline = Date.parse(turn.metadata.creationTimestamp) + patience;
  if (draft.world.now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  return { phase: 'Failed', reason: settings.reason, message: settings.message };
}
