import { defined } from '../../core/defined.ts';
import type { ConfigMap, NetworkPolicy, Pod, StoredPod } from '../../core/kube/builtin.ts';
import { Informer } from '../../core/kube/informer.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { configMaps, networkPolicies, pods } from '../../core/kube/resources.ts';
import type { KubeApi, KubeObject, ListOptions, Resource, Stored } from '../../core/kube/types.ts';
import {
  type Approval,
  approvals,
  type Environment,
  environments,
  type Session,
  type SessionClass,
  type SessionPool,
  type StoredEnvironment,
  type StoredSessionClass,
  type StoredSessionPool,
  type StoredTurn,
  sessionclasses,
  sessionOwner,
  sessionpools,
  sessions,
  type Turn,
  turns,
} from '../../core/resources/kinds.ts';
import {
  LABEL_AGENT_FILES,
  LABEL_MANAGED_BY,
  LABEL_NETWORK,
  LABEL_POOL_UID,
  LABEL_SESSION_UID,
  MANAGED_BY,
} from '../../core/resources/names.ts';
import { isTerminal, LIVE_TURNS } from '../../core/resources/turn-phases.ts';
import { type Clock, type Logger, pause, type Random } from '../../core/runtime.ts';
import { namedConfigMaps } from '../observed/agent-files.ts';
import { isSessionPod, isUnclaimed, sessionNameOf } from '../observed/session-pods.ts';
import type { CachedApproval, CachedSession, CachedTurn, NodeFacts } from '../observed/world.ts';
import { namespaceLabels } from './namespaces.ts';
import { Nodes } from './nodes.ts';
import {
  type CachedFiles,
  slimApproval,
  slimFiles,
  slimMeta,
  slimPod,
  slimSession,
  slimTurn,
  unreadableTurn,
} from './slim.ts';
import { Watchers, type Watches } from './watches.ts';

/** The controller's view of the cluster: objects without their bodies, indexed as decisions need them. */
export interface Caches {
  session(namespace: string, name: string): CachedSession | undefined;
  /** Cached Turns that name the session. */
  turnsNaming(namespace: string, session: string): CachedTurn[];
  turn(namespace: string, name: string): CachedTurn | undefined;
  allApprovals(): CachedApproval[];
  /** Cached Approvals that name the turn. */
  approvalsNaming(namespace: string, turn: string): CachedApproval[];
  pod(namespace: string, name: string): StoredPod | undefined;
  podsOf(sessionUID: string): StoredPod[];
  class(name: string): StoredSessionClass | undefined;
  /** Facts about a node; undefined where nodes may not be read, and for a node that does not exist. */
  node(name: string | undefined): NodeFacts | undefined;
  /** CPUs that pods can have on the nodes that take any; 0 where nodes may not be read. */
  cpus(): number;
  allSessions(): CachedSession[];
  /** Turns that have not ended; of the others some. */
  allTurns(): CachedTurn[];
  allPods(): StoredPod[];
  /** A NetworkPolicy with Berth's labels. */
  networkPolicy(namespace: string, name: string): Stored<NetworkPolicy> | undefined;
  allNetworkPolicies(): Stored<NetworkPolicy>[];
  /** Reports whether ConfigMaps with agent files are known: read once, and not forbidden. */
  knowsAgentFiles(namespace: string): boolean;
  /** Digest of what a ConfigMap with agent files holds; undefined where there is none. */
  agentFiles(namespace: string, configMap: string): string | undefined;
  /** Reads all ConfigMaps with agent files anew: a live read that found none says nothing that a cache can take. */
  relistAgentFiles(signal: AbortSignal): Promise<void>;
  /** Returns an Environment, or that none exists; undefined while Environments were not read, or may not be read. */
  environment(namespace: string, name: string): StoredEnvironment | 'Missing' | undefined;
  allEnvironments(): StoredEnvironment[];
  /** Pools of all namespaces; empty while SessionPools were not read, or may not be read. */
  allPools(): StoredSessionPool[];
  /**
   * Returns a pool, or that none exists, as none does where pools are turned off; undefined while SessionPools were not read,
   * or may not be read.
   */
  pool(namespace: string, name: string): StoredSessionPool | 'Missing' | undefined;
  /** Pods of a pool that no session has claimed, by the pool's uid. */
  unclaimedPods(poolUID: string): StoredPod[];
  /** Labels of a Namespace; undefined while unknown. */
  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined;
  /**
   * Milliseconds since the caches were last known to match the server; Infinity before they have been filled. Without a
   * namespace, closed ones do not count.
   */
  staleness(namespace?: string): number;
  /**
   * The API server's error for a namespace that has been unreadable for some time; the cache keeps what it last showed.
   */
  closed(namespace: string): string | undefined;
  /** Keys `namespace/name` of all sessions that exist, or that a turn names. */
  keys(): Set<string>;
  /** Reads sessions, pods and live turns from the API server; these caches may be behind it. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Reads all turns that name the session, also ended ones. */
  refreshTurns(namespace: string, session: string, signal: AbortSignal): Promise<void>;
  /** Treats the turn as absent until it changes. */
  leaveOut(turn: Pick<StoredTurn['metadata'], 'namespace' | 'name' | 'uid' | 'resourceVersion'>, session: string): void;
  isLeftOut(turn: Pick<StoredTurn['metadata'], 'uid' | 'resourceVersion'>): boolean;
  /** Takes in what an answer of the API server has shown, before its watch event comes. Other kinds than the cached ones are ignored. */
  saw<T extends KubeObject>(resource: Resource<T>, ...objects: Stored<T>[]): void;
  /** Tells `watches` of changes until the signal aborts. */
  watch(watches: Watches, signal: AbortSignal): void;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export interface CachesOptions {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Namespaces to watch; absent: all. */
  namespaces?: readonly string[];
  /** True where nodes may be read. */
  nodes: boolean;
  /** True where ConfigMaps with agent files may be read. */
  agentFiles: boolean;
  /** True where SessionPools may be read. */
  sessionPools: boolean;
}

const OUR_POLICIES = `${LABEL_MANAGED_BY}=${MANAGED_BY},${LABEL_NETWORK}`;
const PAGE = 500;

const NAMING = 'naming';
const OF_SESSION = 'ofSession';
const OF_POOL = 'ofPool';

/** Longest wait for the first lists of ConfigMaps and Environments: the right to read them may be missing. */
const FILES_PATIENCE_MS = 5_000;

/**
 * Reports whether an ended turn can leave the cache: its session's status has counted it, or it ended without an owner
 * and so belongs to no session.
 */
function isDone({ metadata, spec, status }: CachedTurn, session: CachedSession | undefined): boolean {
  if (!isTerminal(status?.phase)) return false;
  const owner = sessionOwner(metadata)?.uid;
  if (owner === undefined) return true;
  const { uid, name } = session?.metadata ?? {};
  return uid === owner && name === spec.session && (status?.index ?? 0) <= (session?.status?.lastTurn?.index ?? 0);
}

/** Informers over the real API. */
export function informerCaches(options: CachesOptions): Caches {
  const { api, clock, random, log, namespaces } = options;
  const watchers = new Watchers();
  const onNamespaces = () => watchers.tell('namespaces');
  const onClosed = (namespace: string, error: Error | undefined) => {
    // Reported once per namespace: when its first resource closes, and when its last one is open again.
    const others = all.filter((informer) => informer.closed(namespace)).length - (error ? 1 : 0);
    if (others > 0) return;
    if (error) log.warn({ namespace, err: error.message }, 'namespace cannot be read and is left out');
    else log.info({ namespace }, 'namespace can be read again');
    onNamespaces();
  };
  const common = { api, clock, random, log, onClosed, ...(namespaces ? { namespaces } : {}) };
  const sessionInformer = new Informer<Session, CachedSession>({
    ...common,
    resource: sessions,
    transform: slimSession,
    unreadable: ({ spec: { input: _, ...spec }, ...session }) => ({ ...session, spec }),
  });
  const leftOut = new Map<string, string>();
  const isLeftOut: Caches['isLeftOut'] = ({ uid, resourceVersion }) => leftOut.get(uid) === resourceVersion;
  const turnInformer = new Informer<Turn, CachedTurn>({
    ...common,
    resource: turns,
    transform: slimTurn,
    unreadable: (turn, error) => unreadableTurn(turn, (error as Error).message),
    indexes: { [NAMING]: (turn) => [`${turn.metadata.namespace}/${turn.spec.session}`] },
    keep: (turn) => !isDone(turn, sessionInformer.get(turn.metadata.namespace, turn.spec.session)),
  });
  const podInformer = new Informer<Pod>({
    ...common,
    resource: pods,
    // The selector avoids labels with a meaning to others: a change of one would hide the pod from its session.
    labelSelector: LABEL_SESSION_UID,
    keep: (pod) => isSessionPod(pod) || isUnclaimed(pod),
    transform: slimPod,
    indexes: {
      [OF_SESSION]: (pod) => [pod.metadata.labels?.[LABEL_SESSION_UID] ?? ''],
      [OF_POOL]: (pod) => (isUnclaimed(pod) ? [pod.metadata.labels?.[LABEL_POOL_UID] ?? ''] : []),
    },
  });
  const approvalInformer = new Informer<Approval, CachedApproval>({
    ...common,
    resource: approvals,
    transform: slimApproval,
    unreadable: ({ metadata, spec: { response: _, ...spec } }) => ({ metadata, spec, responseBytes: 0 }),
    indexes: { [NAMING]: (approval) => [`${approval.metadata.namespace}/${approval.spec.turn}`] },
  });
  const filesFor = (session: CachedSession) =>
    namedConfigMaps(session, classInformer.get(undefined, session.spec.class));
  // A session waits until it is known whether the objects that it names are there. No event comes for one that is not.
  const requeue = (waits: (session: CachedSession) => boolean) => () => {
    for (const session of sessionInformer.list()) if (waits(session)) onSession(session);
  };
  const fileInformer = options.agentFiles
    ? new Informer<ConfigMap, CachedFiles>({
        ...{ api, clock, random, log, ...(namespaces ? { namespaces } : {}) },
        onKnown: requeue((session) => filesFor(session).size > 0),
        resource: configMaps,
        labelSelector: `${LABEL_AGENT_FILES}=true`,
        transform: slimFiles,
        // A ConfigMap that was read live may lack the label, by which the watch selects.
        keep: ({ metadata }) => metadata.labels?.[LABEL_AGENT_FILES] === 'true',
        unreadable: ({ metadata }) => ({ metadata, digest: '' }),
      })
    : undefined;
  const environmentInformer = new Informer<Environment>({
    ...{ api, clock, random, log, ...(namespaces ? { namespaces } : {}) },
    onKnown: requeue(({ spec }) => spec.environment !== undefined),
    resource: environments,
  });
  const poolInformer = options.sessionPools
    ? new Informer<SessionPool>({
        ...{ api, clock, random, log, ...(namespaces ? { namespaces } : {}) },
        onKnown: () => watchers.tell('poolsKnown'),
        resource: sessionpools,
      })
    : undefined;
  const classInformer = new Informer<SessionClass>({ api, clock, random, log, resource: sessionclasses });
  const policyInformer = new Informer<NetworkPolicy>({
    ...common,
    resource: networkPolicies,
    labelSelector: OUR_POLICIES,
    transform: (policy) => ({ ...policy, metadata: slimMeta(policy) }),
  });
  // The informers of files, environments and pools are left out, as their right or kind may be missing: only sessions with files or environments wait.
  const all = [sessionInformer, turnInformer, approvalInformer, podInformer, classInformer, policyInformer];
  const byResource = new Map<Resource, unknown>([
    [sessions, sessionInformer],
    [turns, turnInformer],
    [approvals, approvalInformer],
    [pods, podInformer],
    [sessionclasses, classInformer],
    [networkPolicies, policyInformer],
    [configMaps, fileInformer],
    [environments, environmentInformer],
    [sessionpools, poolInformer],
  ] as [Resource, unknown][]);
  const closedBy = (namespace: string) => all.find((informer) => informer.closed(namespace))?.closed(namespace);
  // Namespace labels matter to few classes: only sessions of those wait for them.
  const labels = namespaceLabels({ ...common, onChange: onNamespaces });

  const onNode = (name: string) => {
    for (const pod of podInformer.list()) if (pod.spec.nodeName === name) onPod(false)(pod);
  };
  const nodes = options.nodes ? new Nodes({ api, clock, random, log, onChange: onNode }) : undefined;

  const onSession = ({ metadata }: KubeObject) => watchers.tell('session', `${metadata.namespace}/${metadata.name}`);
  sessionInformer.addHandler({ add: onSession, update: onSession, delete: onSession });
  // Drops turns that the session has counted by now.
  const prune = ({ metadata }: KubeObject) => turnInformer.prune(NAMING, `${metadata.namespace}/${metadata.name}`);
  sessionInformer.addHandler({ add: prune, update: prune });
  const notLeftOut = (turn: CachedTurn) => !isLeftOut(turn.metadata);
  const takeIn = ({ metadata }: CachedTurn) => leftOut.delete(metadata.uid);
  turnInformer.addHandler({ update: takeIn, delete: takeIn });
  const onTurn = (turn: CachedTurn) => watchers.tell('session', `${turn.metadata.namespace}/${turn.spec.session}`);
  turnInformer.addHandler({ add: onTurn, update: onTurn, delete: onTurn });
  const onApproval = ({ metadata, spec }: CachedApproval) => {
    const turn = turnInformer.get(metadata.namespace, spec.turn);
    if (turn) onTurn(turn);
  };
  approvalInformer.addHandler({ add: onApproval, update: onApproval, delete: onApproval });
  const onPod = (gone: boolean) => (pod: StoredPod) => {
    watchers.tell('pod', pod, gone);
    if (isUnclaimed(pod)) return;
    watchers.tell('session', `${pod.metadata.namespace}/${sessionNameOf(pod)}`);
  };
  podInformer.addHandler({ add: onPod(false), update: onPod(false), delete: onPod(true) });
  const onPolicy = ({ metadata }: Stored<NetworkPolicy>) =>
    watchers.tell('networkPolicy', metadata.namespace, metadata.name);
  policyInformer.addHandler({ add: onPolicy, update: onPolicy, delete: onPolicy });
  const onFiles = ({ metadata: { namespace, name } }: CachedFiles) => {
    for (const session of sessionInformer.list()) {
      if (session.metadata.namespace !== namespace) continue;
      if (filesFor(session).has(name)) onSession(session);
    }
  };
  fileInformer?.addHandler({ add: onFiles, update: onFiles, delete: onFiles });
  const onEnvironment = ({ metadata: { namespace, name } }: StoredEnvironment) => {
    watchers.tell('environment', namespace, name);
    for (const session of sessionInformer.list()) {
      if (session.metadata.namespace === namespace && session.spec.environment?.name === name) onSession(session);
    }
  };
  environmentInformer.addHandler({ add: onEnvironment, update: onEnvironment, delete: onEnvironment });
  const onPool = ({ metadata: { namespace, name } }: StoredSessionPool) => watchers.tell('pool', namespace, name);
  poolInformer?.addHandler({ add: onPool, update: onPool, delete: onPool });
  const onClass = ({ metadata: { name } }: KubeObject) => {
    watchers.tell('class', name);
    for (const session of sessionInformer.list()) if (session.spec.class === name) onSession(session);
  };
  classInformer.addHandler({ add: onClass, update: onClass, delete: onClass });

  const applyTurns = async (scope: ListOptions) => {
    await eachPage(api, turns, { ...scope, limit: PAGE }, ({ items }) => {
      for (const turn of items) turnInformer.apply(turn);
    });
  };

  return {
    session: (namespace, name) => sessionInformer.get(namespace, name),
    turnsNaming: (namespace, session) => turnInformer.byIndex(NAMING, `${namespace}/${session}`).filter(notLeftOut),
    turn: (namespace, name) => {
      const turn = turnInformer.get(namespace, name);
      return turn && notLeftOut(turn) ? turn : undefined;
    },
    allApprovals: () => approvalInformer.list(),
    approvalsNaming: (namespace, turn) => approvalInformer.byIndex(NAMING, `${namespace}/${turn}`),
    pod: (namespace, name) => podInformer.get(namespace, name),
    podsOf: (sessionUID) => podInformer.byIndex(OF_SESSION, sessionUID),
    class: (name) => classInformer.get(undefined, name),
    node: (name) => nodes?.facts(name),
    cpus: () => nodes?.cpus() ?? 0,
    allSessions: () => sessionInformer.list(),
    allTurns: () => turnInformer.list().filter(notLeftOut),
    allPods: () => podInformer.list(),
    networkPolicy: (namespace, name) => policyInformer.get(namespace, name),
    allNetworkPolicies: () => policyInformer.list(),
    relistAgentFiles: async (signal) => fileInformer?.relist(signal),
    knowsAgentFiles: (namespace) => fileInformer?.isSynced === true && !fileInformer.closed(namespace),
    agentFiles: (namespace, configMap) => fileInformer?.get(namespace, configMap)?.digest,
    environment: (namespace, name) => {
      if (!environmentInformer.isSynced || environmentInformer.closed(namespace)) return undefined;
      return environmentInformer.get(namespace, name) ?? 'Missing';
    },
    allEnvironments: () => environmentInformer.list(),
    allPools: () => poolInformer?.list() ?? [],
    pool: (namespace, name) => {
      if (!poolInformer) return 'Missing';
      if (!poolInformer.isSynced || poolInformer.closed(namespace)) return undefined;
      return poolInformer.get(namespace, name) ?? 'Missing';
    },
    unclaimedPods: (poolUID) => podInformer.byIndex(OF_POOL, poolUID),
    namespaceLabels: (name) => labels.of(name),
    staleness: (namespace) =>
      Math.max(
        ...all.map((informer) => (namespace === undefined ? informer.staleness : informer.stalenessIn(namespace))),
      ),
    closed: (namespace) => closedBy(namespace)?.message,
    keys: () =>
      new Set([
        ...sessionInformer.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
        ...turnInformer.list().map(({ metadata, spec }) => `${metadata.namespace}/${spec.session}`),
      ]),
    refresh: async (signal) => {
      // Deleted objects are not in a list, so sessions and pods are replaced by the whole list.
      await sessionInformer.relist(signal);
      for (const namespace of namespaces ?? [undefined]) {
        if (namespace !== undefined && closedBy(namespace)) continue;
        await applyTurns({ ...defined({ namespace }), fieldSelector: LIVE_TURNS, signal });
      }
      await podInformer.relist(signal);
    },
    refreshTurns: (namespace, session, signal) =>
      applyTurns({ namespace, fieldSelector: `spec.session=${session}`, signal }),
    leaveOut: ({ namespace, name, uid, resourceVersion }, session) => {
      // A turn that is gone would never be cleared from the map.
      if (turnInformer.get(namespace, name)?.metadata.uid === uid) leftOut.set(uid, resourceVersion);
      watchers.tell('session', `${namespace}/${session}`);
    },
    isLeftOut,
    saw: (resource, ...objects) => {
      const informer = byResource.get(resource as Resource) as Informer<(typeof objects)[number]> | undefined;
      for (const object of objects) informer?.apply(object);
    },
    watch: (watches, signal) => watchers.add(watches, signal),
    start: () => {
      for (const informer of all) informer.start();
      fileInformer?.start();
      environmentInformer.start();
      poolInformer?.start();
      nodes?.start();
      labels.start();
    },
    synced: async (signal) => {
      await Promise.all(all.map((informer) => informer.synced(signal)));
      const late = [fileInformer, environmentInformer, poolInformer].filter(
        (informer) => informer && !informer.isSynced,
      );
      if (late.length === 0) return;
      // A session whose files or environment are not known yet would lose its position in the queue.
      const over = new AbortController();
      const patience = pause(clock, FILES_PATIENCE_MS, AbortSignal.any([signal, over.signal]));
      await Promise.race([Promise.all(late.map((informer) => informer?.synced(signal))), patience]).finally(() =>
        over.abort(),
      );
    },
    stop: async () => {
      await Promise.all([
        ...all.map((informer) => informer.stop()),
        labels.stop(),
        nodes?.stop(),
        fileInformer?.stop(),
        environmentInformer.stop(),
        poolInformer?.stop(),
      ]);
    },
  };
}
