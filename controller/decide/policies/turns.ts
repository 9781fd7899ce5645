import { turnRefusal } from '../../../core/resources/allowed.ts';
import { MAX_INPUT_BYTES, MAX_JSON_DEPTH } from '../../../core/resources/limits.ts';
import { firstTurnName } from '../../../core/resources/names.ts';
import { neededInput } from '../../../core/resources/needed-input.ts';
import { type Reason, reasons } from '../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { namedConfigMaps } from '../../observed/agent-files.ts';
import { isGiven, isOwn, isToAdopt } from '../../observed/own-turns.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { DEFAULT_START_MS, isProblem } from '../../settings/effective.ts';
import { mayBecomeReady } from '../../settings/environment.ts';
import { grantKept, startLimit } from '../../settings/granted.ts';
import { maxQueuedTurns } from '../../settings/queued-turns.ts';
import { type Ending, ended, internalError, queued } from '../../status/turn-status.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { groupWait } from '../group.ts';
import { lacksItsTurn, MISSING_TURN } from '../missing-turn.ts';
import { hadItsTurn, isFinished, lifetimeOver } from '../suspend-reason.ts';

/** Turns before they run: adopted, put in order, refused. */

/** Ends a turn that the controller fails at again and again, so that those behind it run. */
export const broken: Policy = (draft) => {
  const { now } = draft.world;
  for (const turn of draft.turns.live) {
    if (turn.unreadable === undefined || !hasBegun(turn)) continue;
    draft.actions.push({ do: 'WriteTurn', turn, status: ended(turn, internalError(turn.unreadable), now) });
    return 'Stop';
  }
  return undefined;
};

/** Adopts ownerless turns, or ends those meant for a former session of the name. */
export const adopt: Policy = (draft) => {
  const { session, now } = draft.world;
  for (const turn of draft.turns.ownerless) {
    if (isToAdopt(session, turn)) {
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

/** Ends turns of a former session of this name, left by an orphaning deletion or a backup. */
export const replaced: Policy = (draft) => {
  const { session, now } = draft.world;
  for (const turn of draft.turns.replaced) {
    const ending: Ending = {
      phase: 'Failed',
      reason: 'SessionReplaced',
      message: `The turn belongs to a former session "${session.metadata.name}"; create a new Turn for the one that exists now.`,
    };
    draft.actions.push({ do: 'EndReplaced', turn, status: ended(turn, ending, now) });
  }
  return undefined;
};

/**
 * Creates the turn in `spec.input` before anything of the session is written but the problem that prevents it, so a
 * crash in between repeats the creation.
 */
export const firstTurn: Policy = (draft) => {
  const { session, memory } = draft.world;
  if (lacksItsTurn(draft)) draft.problems.FirstTurn = MISSING_TURN;
  if (!session.spec.input || !awaitsFirstTurn(session.status)) return undefined;
  const path = session.spec.input.tooDeep;
  if (path !== undefined) {
    draft.problems.FirstTurn = { reason: 'InputTooDeep', message: tooDeep(path) };
    return 'Stop';
  }
  const name = firstTurnName(session.metadata.name);
  if (draft.world.turns.some((turn) => isOwn(session, turn) && turn.metadata.name === name)) return undefined;
  draft.actions.push({ do: 'CreateFirstTurn' });
  draft.problems.FirstTurn = memory.firstTurnProblem;
  return memory.firstTurnProblem ? 'Stop' : undefined;
};

/** Reasons for which the turn in `spec.input` has not been created yet. */
const NOT_CREATED: ReadonlySet<string> = new Set<Reason>(['TurnExists', 'TurnQuotaExceeded', 'InputTooDeep']);

export function awaitsFirstTurn(status: SessionStatus | undefined): boolean {
  return (
    !status?.phase ||
    (status.phase !== 'Finished' &&
      Boolean(status.conditions?.some(({ type, reason }) => type === 'Ready' && NOT_CREATED.has(reason))))
  );
}

/** Ends queued turns that cannot run, and gives every new turn its index, once no earlier leader can give any. */
export const order: Policy = (draft) => {
  if (!draft.world.leaderIsReady) return undefined;
  const { now, session } = draft.world;
  const { live, uncounted } = draft.turns;
  let last = draft.turns.lastIndex;
  const next = live[0];
  const alone = live.filter((turn) => turn.status.index === undefined).length <= 1;
  const taken = new Set([...uncounted, ...live.filter(hasBegun)].map(({ status }) => status.index));
  let waiting = 0;
  for (const turn of live) {
    if (hasBegun(turn)) continue;
    const full = turn.status.index === undefined ? queueFull(draft, waiting) : undefined;
    const ending = refusal(draft, turn) ?? full;
    if (!ending) waiting++;
    // Nothing counts a turn without an index, so nothing has to remember it.
    if (ending && (full || isSurplus(draft, turn))) {
      draft.actions.push({ do: 'WriteTurn', turn, status: ended(turn, ending, now) });
      continue;
    }
    const known = turn.status.index;
    // A deposed leader may have given an index late, unaware of another turn with that index.
    const isFree = known !== undefined && known > (session.status?.lastTurn?.index ?? 0) && !taken.has(known);
    const index = isFree ? known : ++last;
    taken.add(index);
    if (ending) {
      draft.actions.push({ do: 'WriteTurn', turn, status: { ...ended(turn, ending, now), index } });
      continue;
    }
    draft.indices.set(turn, index);
    const reason = turn.status.attempt ? 'Retrying' : 'Queued';
    const shown = turn.status.conditions?.find((condition) => condition.type === 'Finished');
    // The reason for which the first turn waits is added last, when it is known: see `showWait`.
    const isShown = turn === next || shown?.reason === reason;
    // A turn that starts at once gets its index with that write; beside others it must have it before they do.
    const startsNow = turn === next && alone && startsAtOnce(draft);
    const isMoved = known !== undefined && !isFree;
    if (isMoved || (!startsNow && (known === undefined || !isShown)))
      draft.actions.push({ do: 'WriteTurn', turn, status: queued(turn, index, reason, now) });
  }
  return undefined;
};

function hasBegun(turn: CachedTurn): boolean {
  return isGiven(turn) || turn.status.phase === 'AwaitingApproval';
}

/** Reports whether a turn is one too many for a session with `turns: One`. */
function isSurplus(draft: Draft, turn: CachedTurn): boolean {
  return draft.world.session.spec.turns === 'One' && (onlyTurn(draft) !== turn || isFinished(draft));
}

/**
 * The turn that a session with `turns: One` takes: the one in `spec.input`, although another may come before it is created,
 * else the first.
 */
function onlyTurn({ world: { session }, turns: { live } }: Draft): CachedTurn | undefined {
  if (!session.spec.input) return live[0];
  const own = live.find(({ metadata }) => metadata.name === firstTurnName(session.metadata.name));
  return own || awaitsFirstTurn(session.status) ? own : live[0];
}

/** The end of another turn where `waiting` turns are as many as the class allows. */
function queueFull({ world }: Draft, waiting: number): Ending | undefined {
  if (waiting < maxQueuedTurns(world.class)) return undefined;
  const message = `${waiting} turns of session "${world.session.metadata.name}" wait, which is the most that class "${world.session.spec.class}" allows; wait until some have ended and give this one again, or use more sessions.`;
  return { phase: 'Failed', reason: 'QueueFull', message };
}

function startsAtOnce(draft: Draft): boolean {
  const { world, settings } = draft;
  if (world.session.spec.suspend || isProblem(settings) || groupWait(draft)) return false;
  return world.slot === 'Held' || world.slot === 'Available';
}

/** Message for an input that is nested too deep, with the path. */
function tooDeep(path: string): string {
  return `spec.input: more than ${MAX_JSON_DEPTH} arrays and objects lie within each other, at ${path}; flatten it, or pass the data as a string.`;
}

function refusal(draft: Draft, turn: CachedTurn): Ending | undefined {
  const { session, memory, now } = draft.world;
  if (turn.spec.cancel) {
    const before = turn.status.attempt ? 'before its next attempt' : 'before it ran';
    return { phase: 'Cancelled', reason: 'Cancelled', message: `The turn was cancelled ${before}.` };
  }
  if (turn.unreadable !== undefined) return internalError(turn.unreadable);
  if (turn.input.tooDeep !== undefined) {
    return { phase: 'Failed', reason: 'InputTooDeep', message: tooDeep(turn.input.tooDeep) };
  }
  if (turn.input.bytes > MAX_INPUT_BYTES) {
    return {
      phase: 'Failed',
      reason: 'InputTooLarge',
      message: `spec.input: ${turn.input.bytes} bytes are more than the ${MAX_INPUT_BYTES} allowed; pass a reference to the data instead.`,
    };
  }
  if (lifetimeOver(draft) && !hadItsTurn(draft)) {
    return { phase: 'Failed', reason: 'LifetimeExceeded', message: reasons.LifetimeExceeded };
  }
  if (isSurplus(draft, turn)) {
    return { phase: 'Failed', reason: 'SessionFinished', message: reasons.SessionFinished };
  }
  const allowed = draft.world.class?.spec;
  // A turn that has begun before keeps what it was granted then.
  const refused = allowed && !grantKept(turn) && turnRefusal(turn.spec, allowed);
  if (refused) {
    const message = `${refused.field}: ${refused.message} (class "${session.spec.class}")`;
    return { phase: 'Failed', reason: refused.reason, message };
  }
  const { settings } = draft;
  const needed = turn.input.none && !isProblem(settings) ? neededInput(settings.agent) : undefined;
  if (needed !== undefined) {
    return {
      phase: 'Failed',
      reason: 'InputMissing',
      message: `spec.input: there is none, and ${needed}; create a new Turn with it.`,
    };
  }
  if (!isProblem(settings) || session.status?.podName || session.spec.suspend) return undefined;
  // A class may still be created, as when all is applied together, or be corrected. The user's own errors do not go
  // away, but settings that were allowed when written may be so again.
  const waits =
    settings.reason === 'ClassNotFound' ||
    settings.reason === 'ClassInvalid' ||
    settings.reason === 'AgentFilesMissing' ||
    settings.reason === 'EnvironmentNotReady' ||
    (settings.reason === 'NotAllowed' && turn.status.index !== undefined);
  if (settings.reason === 'EnvironmentNotReady' && mayBecomeReady(draft.world)) return undefined;
  const since = Math.max(Date.parse(turn.metadata.creationTimestamp), memory.cannotStartSince ?? now);
  const deadline = since + (settings.reason === 'AgentFilesMissing' ? startLimit(turn, draft.world) : DEFAULT_START_MS);
  if (waits && now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  if (settings.reason === 'AgentFilesMissing' && !hasReadFiles(draft, since)) return undefined;
  return { phase: 'Failed', reason: settings.reason, message: settings.message };
}

/** Reports whether missing files were looked for live since then, and has it done: the cache may be far behind. */
function hasReadFiles({ world, actions }: Draft, since: number): boolean {
  if ((world.memory.filesReadAt ?? 0) >= since) return true;
  const missing = [...namedConfigMaps(world.session, world.class)].filter((name) => !world.agentFiles?.has(name));
  if (!actions.some((action) => action.do === 'ReadFiles')) actions.push({ do: 'ReadFiles', configMaps: missing });
  return false;
}
