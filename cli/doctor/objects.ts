import { isForbidden } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import type { KubeApi, KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { type StoredSession, sessionclasses, sessionpools, sessions } from '../../core/resources/kinds.ts';
import { sessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, needing, ok, some, warning } from './finding.ts';

/** Checks of Berth's objects: classes, pools and sessions. */

export async function classesFound({ api }: KubeCluster, signal: AbortSignal): Promise<Found[]> {
  const { items } = await needing('list sessionclasses.berth.dev', api.list(sessionclasses, { signal }));
  if (items.length === 0) {
    return [error('there is no SessionClass: no session can start', 'create one (docs/install.md), or ask for it')];
  }
  const problems = items.flatMap(({ metadata: { name }, spec }) => {
    const { error: problem } = sessionClassSpec.safeParse(spec);
    const [issue] = problem?.issues ?? [];
    if (!issue) return [];
    const at = ['spec', ...issue.path].join('.');
    return [error(`SessionClass ${name}: ${at}: ${issue.message}`, `kubectl edit sessionclass ${name}`)];
  });
  const names = items.map(({ metadata }) => metadata.name);
  return problems.length > 0 ? problems : [ok(`${items.length} SessionClasses are valid: ${some(names, 5)}`)];
}

export async function poolsFound(cluster: KubeCluster, signal: AbortSignal): Promise<Found[]> {
  const { items, where } = await everywhere(sessionpools, cluster, cluster.namespace, signal);
  if (items.length === 0) return [ok(`there are no SessionPools ${where}`)];
  const bad = items.flatMap(({ metadata: { namespace, name }, status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status === 'True') return [];
    const why = ready ? `${ready.reason}: ${ready.message}` : 'no controller has seen it';
    return [warning(`SessionPool ${namespace}/${name}: ${why}`, 'docs/pools.md#why-a-pool-is-not-full')];
  });
  return bad.length > 0 ? bad : [ok(`${items.length} SessionPools are full ${where}`)];
}

/** Time after which a session that no controller has seen is a problem, milliseconds. */
const UNSEEN_MS = 60_000;
/** Time after which a wait in the queue is worth a word, milliseconds; the alert of docs/operations.md has the same. */
const QUEUED_MS = 15 * 60_000;
/** Reasons of StatePersisted that are as they should be. */
const NO_STATE = new Set(['NoState', 'PersistenceOff']);

/** Finds the sessions that are stuck, by the reason that they give. */
export async function sessionsFound(
  { api, namespace }: { api: Pick<KubeApi, 'list'>; namespace: string },
  only: 'everywhere' | 'here',
  now: number,
  signal: AbortSignal,
): Promise<Found[]> {
  const byReason = new Map<string, { level: 'warning' | 'error'; names: string[] }>();
  const { items, where } =
    only === 'here'
      ? { ...(await api.list(sessions, { namespace, signal })), where: `in namespace ${namespace}` }
      : await everywhere(sessions, { api }, namespace, signal);
  for (const session of items) {
    const stuck = whyStuck(session, now);
    if (!stuck) continue;
    const of = byReason.get(stuck.reason) ?? { level: stuck.level, names: [] };
    of.names.push(`${session.metadata.namespace}/${session.metadata.name}`);
    byReason.set(stuck.reason, of);
  }
  if (byReason.size === 0) return [ok(`none of the ${items.length} sessions ${where} is stuck`)];
  return [...byReason].map(([reason, { level, names }]) => {
    const message = `${names.length === 1 ? '1 session is' : `${names.length} sessions are`} stuck, ${reason}: ${some(names)}`;
    const [first = ''] = names;
    const [of, name] = first.split('/');
    return { level, message, act: `berth why ${name} --namespace ${of} (docs/troubleshooting.md)` };
  });
}

function whyStuck(
  { metadata, spec, status = {} }: StoredSession,
  now: number,
): { reason: string; level: 'warning' | 'error' } | undefined {
  const { conditions, startFailures, queue } = status;
  const age = (time: string) => now - Date.parse(time);
  if (!conditions) {
    const isOld = age(metadata.creationTimestamp) > UNSEEN_MS;
    return isOld ? { reason: 'no controller has seen it', level: 'error' } : undefined;
  }
  const of = (type: string) => conditions.find((condition) => condition.type === type);
  if (startFailures) return { reason: startFailures.reason, level: 'warning' };
  const ready = of('Ready');
  if (ready?.reason === 'PodStuck') return { reason: 'PodStuck', level: 'warning' };
  const stored = of('StatePersisted');
  if (stored?.status === 'False' && !NO_STATE.has(stored.reason)) return { reason: stored.reason, level: 'warning' };
  if (queue && !spec.suspend && age(queue.since) > QUEUED_MS) {
    return { reason: `${queue.reason} for more than ${formatDuration(QUEUED_MS)}`, level: 'warning' };
  }
  return undefined;
}

const PAGE = 500;

/** Lists objects of all namespaces or, where the caller may not, of one. */
async function everywhere<T extends KubeObject>(
  resource: Resource<T>,
  { api }: { api: Pick<KubeApi, 'list'> },
  namespace: string,
  signal: AbortSignal,
): Promise<{ items: Stored<T>[]; where: string }> {
  const read = async (scope: { namespace?: string }) => {
    const items: Stored<T>[] = [];
    await eachPage(api, resource, { ...scope, limit: PAGE, signal }, (page) => items.push(...page.items));
    return items;
  };
  try {
    return { items: await read({}), where: 'in all namespaces' };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const right = `list ${resource.plural}.berth.dev in namespace ${namespace}`;
    return { items: await needing(right, read({ namespace })), where: `in namespace ${namespace}` };
  }
}
