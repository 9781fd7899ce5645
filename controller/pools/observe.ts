import { keyOf } from '../../core/kube/cache.ts';
import type { StoredSessionPool } from '../../core/resources/kinds.ts';
import { LABEL_CLASS } from '../../core/resources/names.ts';
import { clockJumpsOf } from '../../core/runtime.ts';
import { podProblem } from '../observed/pod-status.ts';
import { isUnclaimed } from '../observed/session-pods.ts';
import type { PoolMemory, PoolTools } from './context.ts';
import { STARTS_LIMIT_MS, startsAfter } from './decide.ts';
import type { PoolPod, PoolWorld } from './pool-world.ts';

type Observed = Pick<PoolTools, 'caches' | 'links' | 'ledger' | 'clock' | 'installation'>;

/** Gathers what a decision about the pool depends on. Assigns nothing. */
export function observePool(
  tools: Observed,
  pool: StoredSessionPool,
  template: PoolWorld['template'],
  memory: Readonly<PoolMemory>,
): PoolWorld {
  const { caches, links, ledger, clock, installation } = tools;
  const { namespace, uid } = pool.metadata;
  const space = { namespace, class: pool.spec.class };
  const pods = caches
    .unclaimedPods(uid)
    .filter(({ metadata }) => metadata.deletionTimestamp || !memory.removed.has(metadata.uid))
    .map(
      (pod): PoolPod => ({
        pod,
        link: links.get(pod.metadata.uid)?.view,
        node: caches.node(pod.spec.nodeName),
        taken: ledger.isTaken(namespace, pod.metadata.name),
        isGivenUp: ledger.isGivenUp(namespace, pod.metadata.name),
      }),
    );
  const isStart = pods.some(({ taken }) => taken) || isSessionStarting(tools, space);
  const monotonic = clock.monotonic();
  return {
    now: clock.now(),
    monotonic,
    clockJumps: clockJumpsOf(clock),
    pool,
    template,
    pods,
    claimableBefore: memory.claimable,
    room: ledger.room(space),
    most: ledger.most(space),
    cpus: caches.cpus(),
    blocked: blockedIn(tools, namespace),
    gaveWayAt: memory.gaveWayAt,
    starts: isStart ? startsAfter(memory.starts, monotonic) : memory.starts,
    failures: memory.failures,
    counts: { ...memory.counts },
    protocol: installation.protocol,
    nodeGraceMs: installation.nodeGraceMs,
  };
}

/** Reports whether a session of the class has a new pod whose runner has not been bound yet. */
function isSessionStarting(
  { caches, links, clock }: Observed,
  { namespace, class: ofClass }: { namespace: string; class: string },
): boolean {
  const oldest = clock.now() - STARTS_LIMIT_MS;
  return caches.allPods().some((pod) => {
    const { labels, deletionTimestamp, creationTimestamp, uid } = pod.metadata;
    if (pod.metadata.namespace !== namespace || labels?.[LABEL_CLASS] !== ofClass || isUnclaimed(pod)) return false;
    if (deletionTimestamp || Date.parse(creationTimestamp) < oldest) return false;
    const phase = links.get(uid)?.view.phase;
    return phase === 'Opening' || phase === 'Unbound' || phase === 'Binding';
  });
}

/** A session whose pod has no room in a quota of the namespace, or on any node. */
function blockedIn({ caches }: Observed, namespace: string): PoolWorld['blocked'] {
  const quota = caches
    .allSessions()
    .find(({ metadata, status }) => metadata.namespace === namespace && status?.queue?.reason === 'QuotaExceeded');
  if (quota) return { session: keyOf(quota.metadata), reason: 'QuotaExceeded' };
  const pod = caches
    .allPods()
    .find((one) => !isUnclaimed(one) && !one.metadata.deletionTimestamp && podProblem(one)?.reason === 'Unschedulable');
  const owner = pod?.metadata.ownerReferences?.find(({ kind }) => kind === 'Session');
  return owner && pod ? { session: `${pod.metadata.namespace}/${owner.name}`, reason: 'Unschedulable' } : undefined;
}
