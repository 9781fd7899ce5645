import { anySignal } from '../../core/abort.ts';
import { keyOf } from '../../core/kube/cache.ts';
import type { Informer } from '../../core/kube/informer.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { pause } from '../../core/runtime.ts';
import { type AgentFilesLister, agentFilesCache, NO_AGENT_FILES } from './agent-files.ts';
import { type ApprovalLister, approvalCache } from './approvals.ts';
import { type ClassLister, classCache } from './classes.ts';
import { type EnvironmentLister, environmentCache } from './environments.ts';
import { type NamespaceLister, namespaceLabels } from './namespaces.ts';
import { type NetworkPolicyLister, networkPolicyCache } from './network-policies.ts';
import { type NodeLister, Nodes } from './nodes.ts';
import { type PodLister, podCache } from './pods.ts';
import { NO_POOLS, type PoolLister, poolCache } from './pools.ts';
import { type SessionLister, sessionCache } from './sessions.ts';
import type { CacheTools } from './tools.ts';
import { type TurnLister, turnCache } from './turns.ts';
import { Watchers, type Watches } from './watches.ts';

/** The controller's view of the cluster: objects without their bodies, indexed as decisions need them. */
export interface Caches
  extends SessionLister,
    TurnLister,
    ApprovalLister,
    PodLister,
    ClassLister,
    NodeLister,
    NetworkPolicyLister,
    AgentFilesLister,
    EnvironmentLister,
    PoolLister,
    NamespaceLister {
  /** Keys `namespace/name` of all sessions that exist, or that a turn names. */
  keys(): Set<string>;
  /**
   * Milliseconds since the caches were last known to match the server; Infinity before they have been filled. Without a
   * namespace, closed ones do not count.
   */
  staleness(namespace?: string): number;
  /**
   * The API server's error for a namespace that has been unreadable for some time; the cache keeps what it last showed.
   */
  closed(namespace: string): string | undefined;
  /** Reads sessions, pods and live turns from the API server; these caches may be behind it. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Takes in what an answer of the API server has shown, before its watch event comes. Other kinds than the cached ones are ignored. */
  saw<T extends KubeObject>(resource: Resource<T>, ...objects: Stored<T>[]): void;
  /** Calls `watches` for changes until the signal aborts. */
  watch(watches: Watches, signal: AbortSignal): void;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export interface CachesOptions extends Omit<CacheTools, 'watchers'> {
  /** True where nodes may be read. */
  nodes: boolean;
  /** True where ConfigMaps with agent files may be read. */
  agentFiles: boolean;
  /** True where SessionPools may be read. */
  sessionPools: boolean;
}

/** Longest wait for the first lists of the kinds that may be missing, or the right to read them. */
const OPTIONAL_PATIENCE_MS = 5_000;

/** Informers over the real API. */
export function informerCaches(options: CachesOptions): Caches {
  const { api, clock, random, log, namespaces } = options;
  const watchers = new Watchers();
  const tools = { api, clock, random, log, ...(namespaces ? { namespaces } : {}), watchers };
  const onNamespaces = () => watchers.notify('namespaces');
  const onClosed = (namespace: string, error: Error | undefined) => {
    // Reported once per namespace: when its first resource closes, and when its last one is open again.
    const others = required.filter((informer) => informer.closed(namespace)).length - (error ? 1 : 0);
    if (others > 0) return;
    if (error) log.warn({ namespace, err: error.message }, 'namespace cannot be read and is left out');
    else log.info({ namespace }, 'namespace can be read again');
    onNamespaces();
  };
  const sessions = sessionCache({ ...tools, onClosed });
  const turns = turnCache({ ...tools, onClosed }, sessions);
  const approvals = approvalCache({ ...tools, onClosed }, turns);
  const pods = podCache({ ...tools, onClosed });
  const classes = classCache(tools, sessions);
  const policies = networkPolicyCache({ ...tools, onClosed });
  const files = options.agentFiles ? agentFilesCache(tools, sessions, classes) : undefined;
  const environments = environmentCache(tools, sessions);
  const pools = options.sessionPools ? poolCache(tools) : undefined;
  const nodes = options.nodes ? new Nodes({ ...tools, onChange: pods.onNode }) : undefined;
  // Namespace labels matter to few classes: only sessions of those wait for them.
  const labels = namespaceLabels({ ...tools, onChange: onNamespaces });

  const required = [sessions, turns, approvals, pods, classes, policies].map(({ informer }) => informer);
  // The right to read these kinds, or the kind, may be missing: only sessions with files or environments wait for them.
  const optional = [files, environments, pools].filter((one) => one !== undefined).map(({ informer }) => informer);
  const byResource = new Map<Resource, unknown>(
    [...required, ...optional].map((informer) => [informer.resource as Resource, informer]),
  );
  const closedBy = (namespace: string) => required.find((informer) => informer.closed(namespace))?.closed(namespace);

  return {
    ...sessions.lister,
    ...turns.lister,
    ...approvals.lister,
    ...pods.lister,
    ...classes.lister,
    ...policies.lister,
    ...environments.lister,
    ...(files?.lister ?? NO_AGENT_FILES),
    ...(pools?.lister ?? NO_POOLS),
    node: (name) => nodes?.facts(name),
    cpus: () => nodes?.cpus() ?? 0,
    namespaceLabels: (name) => labels.of(name),
    keys: () =>
      new Set([
        ...sessions.informer.list().map(({ metadata }) => keyOf(metadata)),
        ...turns.informer.list().map(({ metadata, spec }) => `${metadata.namespace}/${spec.session}`),
      ]),
    staleness: (namespace) =>
      Math.max(
        ...required.map((informer) => (namespace === undefined ? informer.staleness : informer.stalenessIn(namespace))),
      ),
    closed: (namespace) => closedBy(namespace)?.message,
    refresh: async (signal) => {
      // Deleted objects are not in a list, so sessions and pods are replaced by the whole list.
      await sessions.informer.relist(signal);
      for (const namespace of namespaces ?? [undefined]) {
        if (namespace !== undefined && closedBy(namespace)) continue;
        await turns.refreshLive(namespace, signal);
      }
      await pods.informer.relist(signal);
    },
    saw: (resource, ...objects) => {
      const informer = byResource.get(resource as Resource) as Informer<(typeof objects)[number]> | undefined;
      for (const object of objects) informer?.apply(object);
    },
    watch: (watches, signal) => watchers.add(watches, signal),
    start: () => {
      for (const each of [...required, ...optional, nodes, labels]) each?.start();
    },
    synced: async (signal) => {
      await Promise.all(required.map((informer) => informer.synced(signal)));
      const late = optional.filter((informer) => !informer.isSynced);
      if (late.length === 0) return;
      // A session whose files or environment are not known yet would lose its position in the queue.
      const over = new AbortController();
      const patience = pause(clock, OPTIONAL_PATIENCE_MS, anySignal(signal, over.signal));
      await Promise.race([Promise.all(late.map((informer) => informer.synced(signal))), patience]).finally(() =>
        over.abort(),
      );
    },
    stop: async () => {
      await Promise.all([...required, labels, nodes, ...optional].map((each) => each?.stop()));
    },
  };
}
