import type { Figures } from '../../observed/link-view.ts';
import { ownContainer } from '../../observed/pod-status.ts';
import { inClusterTime } from '../../observed/runner-time.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { used } from '../../status/outcome.ts';
import { type Draft, type Policy, wake } from '../draft.ts';

/**
 * Progress of the running turn, for its readers. Nothing depends on it, so it comes last and only where there is
 * nothing else to do; short turns cost no write for it.
 */

/**
 * Minimum age of a turn whose progress is written. Its runner is asked at ten seconds; by a slower clock fewer have
 * passed.
 */
const SHOWN_FROM_MS = 9_000;
/**
 * Minimum seconds between writes: two a minute are few beside the turn's other writes. The runner is asked every 30 s,
 * and now and then in between.
 */
const AGAIN_S = 25;
const START_AGAIN_MS = 30_000;
/** Latest time of a Date, milliseconds since the epoch. */
const LAST_MS = 8.64e15;

export const showUsage: Policy = (draft) => {
  const turn = running(draft);
  const { figures, podUID } = draft.world.link ?? {};
  if (!turn || !figures || turn.status.podUID !== podUID || !isDue(turn, figures)) return undefined;
  const startedAt = turn.status.startedAt ?? startOf(turn, figures);
  const status = { ...turn.status, startedAt, ...(figures.usage ? { usage: used(figures.usage) } : {}) };
  return show(draft, turn, status, figures.at);
};

/** Writes the start of a runnerless turn, which its pod reports; its usage is not measured. */
export const showStart: Policy = (draft) => {
  const { pod, now } = draft.world;
  const turn = running(draft);
  const startedAt = pod && ownContainer(pod)?.state?.running?.startedAt;
  if (!turn || !startedAt || turn.status.podUID !== pod.metadata.uid || turn.status.startedAt) return undefined;
  const from = Date.parse(startedAt);
  // The start does not change, so a failed write is retried by the clock.
  const of = Math.floor(now / START_AGAIN_MS);
  if (now < from + SHOWN_FROM_MS) {
    wake(draft, from + SHOWN_FROM_MS);
    return undefined;
  }
  const reported = { startedAt, finishedAt: new Date(now).toISOString() };
  return show(draft, turn, { ...turn.status, startedAt: inClusterTime(turn, reported, now).startedAt }, of);
};

/** The running turn, unless it is to be stopped. */
function running({ turns, actions }: Draft): CachedTurn | undefined {
  return actions.length > 0 || turns.running?.spec.cancel ? undefined : turns.running;
}

/** Writes each report once: a write that failed may always fail. */
function show(draft: Draft, turn: CachedTurn, status: CachedTurn['status'], of: number): undefined {
  if (draft.world.memory.incarnation.usageUnwritten !== of) draft.actions.push({ do: 'ShowUsage', turn, status, of });
}

/** Reports whether the report belongs to this attempt and adds enough. */
function isDue({ metadata, status }: CachedTurn, { turn, attempt, runningMs, usage }: Figures): boolean {
  if (turn !== metadata.uid || attempt !== status.attempt || runningMs < SHOWN_FROM_MS) return false;
  if (!usage) return status.startedAt === undefined;
  return !status.usage || usage.wallMs / 1000 - status.usage.wall >= AGAIN_S;
}

function startOf(turn: CachedTurn, { startedAt, runningMs, at }: Figures): string {
  const until = new Date(Math.min(Date.parse(startedAt) + runningMs, LAST_MS)).toISOString();
  return inClusterTime(turn, { startedAt, finishedAt: until }, at).startedAt;
}
