import type { StoredSessionPool } from '../../core/resources/kinds.ts';
import { LABEL_POOL, LABEL_POOL_UID } from '../../core/resources/names.ts';
import { givenUpAt } from '../observed/pod-status.ts';
import { isUnclaimed } from '../observed/session-pods.ts';
import { type RefusedVersions, removePod } from './act.ts';
import type { PoolTools } from './context.ts';

/**
 * Deletes unclaimed pods under the name of a pool that no pool keeps: it was deleted and left them, or pools are turned off.
 * While it is unknown whether there is a pool, they are deleted only for sessions that wait. Resolves with the milliseconds
 * until one on a node that does not answer is given up; Infinity: there is none.
 */
export async function removeLeftovers(
  tools: PoolTools,
  namespace: string,
  name: string,
  pool: StoredSessionPool | 'Missing' | undefined,
  refused: RefusedVersions,
  signal: AbortSignal,
): Promise<number> {
  const { caches, clock, ledger, installation } = tools;
  let nextAt = Number.POSITIVE_INFINITY;
  for (const pod of caches.allPods()) {
    const { labels, deletionTimestamp } = pod.metadata;
    if (pod.metadata.namespace !== namespace || labels?.[LABEL_POOL] !== name || !isUnclaimed(pod)) continue;
    if (typeof pool === 'object' && labels[LABEL_POOL_UID] === pool.metadata.uid) continue;
    if (deletionTimestamp) {
      const at = givenUpAt(pod, caches.node(pod.spec.nodeName), installation.nodeGraceMs) ?? nextAt;
      if (at <= clock.now())
        await removePod(tools, { pod, why: 'its node does not answer', force: true }, refused, signal);
      else nextAt = Math.min(nextAt, at);
    } else if (pool !== undefined || ledger.isGivenUp(namespace, pod.metadata.name)) {
      const why = pool === undefined ? 'its slot goes to a session that waits' : 'no pool keeps it';
      await removePod(tools, { pod, why }, refused, signal);
    }
  }
  return Number.isFinite(nextAt) ? Math.max(1, nextAt - clock.now()) : Number.POSITIVE_INFINITY;
}
