import type { StoredPod } from '../../core/kube/builtin.ts';
import type { CachedSession, Installation, WarmStart } from '../observed/world.ts';
import { templateHash } from '../pod/pod.ts';
import { effective, isProblem } from '../settings/effective.ts';
import { type ClaimableFacts, isClaimable, isStarting } from './claimable.ts';
import type { PoolTools } from './context.ts';
import { poolTemplate } from './template.ts';

/**
 * The pods of pools that the session could claim for its next incarnation: the ready ones, then those that start, the oldest
 * first. Undefined where its namespace has no pool of its class. After a claim that was lost, or a pod that did not start, the
 * session starts with a pod of its own.
 */
export function warmStart(
  { caches, links, ledger, clock }: Pick<PoolTools, 'caches' | 'links' | 'ledger' | 'clock'>,
  installation: Installation,
  session: CachedSession,
): WarmStart | undefined {
  const { namespace } = session.metadata;
  const ofClass = session.spec.class;
  const pools = caches
    .allPools()
    .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.class === ofClass);
  const [pool] = pools;
  if (!pool) return undefined;
  const sessionClass = caches.class(ofClass);
  const labels = caches.namespaceLabels(namespace);
  const settings = effective(session, sessionClass, installation, labels);
  const template = poolTemplate({ namespace, class: ofClass }, sessionClass, installation, labels);
  if (isProblem(settings) || settings.runner === 'None' || 'reason' in template) return undefined;
  const hash = templateHash(ofClass, settings);
  const fits = hash === template.hash;
  const failed = session.status?.startFailures?.reason;
  if (!fits || (failed !== undefined && failed !== 'QuotaExceeded'))
    return { pool: pool.metadata.name, fits, pods: [], starting: new Set() };
  const facts = { now: clock.now(), protocol: installation.protocol };
  const available = pools
    .flatMap(({ metadata }) => caches.unclaimedPods(metadata.uid))
    .filter(
      (pod) => ledger.isAvailable(namespace, pod.metadata.name) && !ledger.isGivenUp(namespace, pod.metadata.name),
    )
    .sort(byAge)
    .map(
      (pod): ClaimableFacts => ({
        pod,
        link: links.get(pod.metadata.uid)?.view,
        node: caches.node(pod.spec.nodeName),
        ...facts,
      }),
    );
  const ready = available.filter((one) => isClaimable(one, hash));
  const starting = available.filter((one) => isStarting(one, hash));
  return {
    pool: pool.metadata.name,
    fits,
    pods: [...ready, ...starting].map(({ pod }) => pod),
    starting: new Set(starting.map(({ pod }) => pod.metadata.name)),
  };
}

function byAge(a: StoredPod, b: StoredPod): number {
  const order = Date.parse(a.metadata.creationTimestamp) - Date.parse(b.metadata.creationTimestamp);
  return order || (a.metadata.name < b.metadata.name ? -1 : 1);
}
