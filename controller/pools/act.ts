import { keyOf } from '../../core/kube/cache.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound, TransportError } from '../../core/kube/errors.ts';
import { pods as podKind } from '../../core/kube/resources.ts';
import type { StoredSessionPool } from '../../core/resources/kinds.ts';
import { poolPodName } from '../../core/resources/names.ts';
import { attachability } from '../link/links.ts';
import { poolPod } from '../pod/pod.ts';
import { refusal } from '../pod/refusal.ts';
import type { PoolMemory, PoolTools } from './context.ts';
import { pausedFor, type Removal } from './decide.ts';
import type { PoolWorld } from './pool-world.ts';
import type { PoolTemplate } from './template.ts';

/** Attaches the pods that have no link yet: an earlier leader has made them, or the answer of their creation was lost. */
export function attachPods({ links }: Pick<PoolTools, 'links'>, { pool, pods }: PoolWorld): void {
  for (const { pod, link } of pods) {
    if (pod.metadata.deletionTimestamp || link) continue;
    links.open(pod, { key: keyOf(pool.metadata), uid: '', incarnation: 0 }).open(attachability(pod));
  }
}

/** Creates pods one after the other, until a session starts or no slot is free. */
export async function createPods(
  tools: PoolTools,
  pool: StoredSessionPool,
  { settings }: PoolTemplate,
  count: number,
  memory: PoolMemory,
  signal: AbortSignal,
): Promise<void> {
  for (let left = count; left > 0; left--) {
    tools.closing.throwIfAborted();
    // A session has started since, which has the pool reconciled again.
    if (memory.starts) return;
    try {
      await tools.networkPolicies.ensure(pool.metadata.namespace, pool.spec.class, signal);
      if (!(await createOne(tools, pool, settings, memory, signal))) return;
    } catch (error) {
      // The status says why, and events do not have a pod tried again at once.
      if (error instanceof ApiError && !isConflict(error))
        memory.failures = pausedFor((memory.failures?.count ?? 0) + 1, refusal(error), tools.clock.now());
      throw error;
    }
  }
}

/** Creates a pod in a slot of its own. Resolves with false where no slot is free. */
async function createOne(
  tools: PoolTools,
  pool: StoredSessionPool,
  settings: PoolTemplate['settings'],
  memory: PoolMemory,
  signal: AbortSignal,
): Promise<boolean> {
  const { ledger } = tools;
  const { namespace, uid } = pool.metadata;
  const number = memory.numbers.next;
  const name = poolPodName(uid, number);
  if (!ledger.reserveForPool({ namespace, class: pool.spec.class }, name)) return false;
  try {
    await make(tools, pool, number, settings, signal).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
      memory.numbers.sawPod(number);
      return adopt(tools, namespace, name, signal);
    });
    memory.numbers.sawPod(number);
  } catch (error) {
    ledger.reservations.failed(namespace, name, error);
    throw error;
  }
  ledger.reservations.confirm(namespace, name);
  return true;
}

async function make(
  { api, links, log }: PoolTools,
  pool: StoredSessionPool,
  number: number,
  settings: PoolTemplate['settings'],
  signal: AbortSignal,
): Promise<void> {
  const created = await api.create(podKind, poolPod(pool, number, settings), { signal });
  const key = keyOf(pool.metadata);
  links.open(created, { key, uid: '', incarnation: 0 }).open({ ...attachability(created), fresh: true });
  log.info({ pool: key, pod: created.metadata.name }, 'pool pod created');
}

/** Takes note of a pod that exists although the caches do not show it: an earlier attempt has made it, or somebody else has, who keeps it. */
async function adopt({ api }: PoolTools, namespace: string, name: string, signal: AbortSignal): Promise<void> {
  await api.get(podKind, { namespace, name }, { signal }).catch((error: unknown) => {
    if (isNotFound(error)) throw new TransportError(`pod ${name} existed and is gone by now; the pool gets another`);
    throw error;
  });
}

/** The version of each pod whose deletion was refused, by uid. Only another version is worth another try: it comes with the caches. */
export type RefusedVersions = Map<string, string>;

/**
 * Deletes a pod exactly in the version of the decision: a claim that came first, perhaps one of an earlier leader, changes the pod's
 * version, and the deletion is refused. Resolves with whether the API server has accepted the deletion.
 */
export async function removePod(
  { api, ledger, log, closing }: Pick<PoolTools, 'api' | 'ledger' | 'log' | 'closing'>,
  { pod, why, force: isForced }: Removal,
  refused: RefusedVersions,
  signal: AbortSignal,
): Promise<boolean> {
  const { name, namespace, uid, resourceVersion } = pod.metadata;
  if (refused.get(uid) === resourceVersion) return false;
  // A session may have claimed the pod while another pod was removed.
  if (!isForced && !ledger.isAvailable(namespace, name)) return false;
  closing.throwIfAborted();
  log.info({ namespace, pod: name, why }, isForced ? 'pool pod removed without its node' : 'pool pod deleted');
  const force = isForced ? { gracePeriodSeconds: 0 } : {};
  try {
    await api.delete(podKind, { namespace, name }, { uid, resourceVersion, signal, ...force });
    return true;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
    refused.set(uid, resourceVersion);
    return false;
  }
}
