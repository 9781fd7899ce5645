import type { CachedTurn } from './world.ts';

/** What a runner's clock and ours may differ by without anybody noticing. */
const TOLERANCE_MS = 2_000;

/**
 * When a turn ran, by the cluster's clock. A runner tells by its node's: what it says cannot lie before the turn was given
 * to it, nor after now, nor its end before its start. Where it does, only how long it took is believed.
 */
export function inClusterTime<T extends { startedAt?: string | undefined; finishedAt?: string | undefined }>(
  turn: CachedTurn,
  told: T,
  now: number,
): T {
  const started = Date.parse(told.startedAt ?? '');
  const finished = Date.parse(told.finishedAt ?? '');
  const running = turn.status.conditions?.find(({ type }) => type === 'Running');
  // One that waited for a decision was given more than once.
  const first = turn.status.approval ? turn.metadata.creationTimestamp : running?.lastTransitionTime;
  const given = Date.parse(first ?? '');
  // A comparison with what is not known is false.
  const isFalse = finished > now + TOLERANCE_MS || started < given - TOLERANCE_MS || started > finished + TOLERANCE_MS;
  if (!isFalse) return told;
  const tookMs = Math.max(0, finished - started) || 0;
  const at = Math.max(now - tookMs, given || 0);
  return { ...told, startedAt: new Date(at).toISOString(), finishedAt: new Date(now).toISOString() };
}
