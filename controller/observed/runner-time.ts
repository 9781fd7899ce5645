import type { CachedTurn } from './world.ts';

/** Clock skew between a runner and the controller that is tolerated. */
const TOLERANCE_MS = 2_000;

/**
 * Start and end of a turn by the cluster's clock. The runner reports them by its node's clock. The start cannot precede
 * the delivery of the turn, the end cannot precede the start, and neither can lie in the future. If the report breaks
 * one of these, only its duration is used.
 */
export function inClusterTime<T extends { startedAt?: string | undefined; finishedAt?: string | undefined }>(
  turn: CachedTurn,
  reported: T,
  now: number,
): T {
  const started = Date.parse(reported.startedAt ?? '');
  const finished = Date.parse(reported.finishedAt ?? '');
  const running = turn.status.conditions?.find(({ type }) => type === 'Running');
  // A turn that waited for an approval was delivered more than once, so its creation is the bound.
  const first = turn.status.approval ? turn.metadata.creationTimestamp : running?.lastTransitionTime;
  const given = Date.parse(first ?? '');
  // Comparisons with NaN, an unknown time, are false.
  const isFalse = finished > now + TOLERANCE_MS || started < given - TOLERANCE_MS || started > finished + TOLERANCE_MS;
  if (!isFalse) return reported;
  const tookMs = Math.max(0, finished - started) || 0;
  const at = Math.max(now - tookMs, given || 0);
  return { ...reported, startedAt: new Date(at).toISOString(), finishedAt: new Date(now).toISOString() };
}
