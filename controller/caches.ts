import { createHash } from 'node:crypto';
import type { Pod, StoredPod } from '../core/kube/builtin.ts';
import { Informer } from '../core/kube/informer.ts';
import { pods } from '../core/kube/resources.ts';
import type { KubeApi, KubeObject, ListOptions, Resource, Stored } from '../core/kube/types.ts';
import {
  type Session,
  type SessionClass,
  type StoredSession,
  type StoredSessionClass,
  type StoredTurn,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../core/resources/kinds.ts';
import { jsonBytes, MAX_LAST_OUTPUT_BYTES } from '../core/resources/limits.ts';
import { LABEL_MANAGED_BY, LABEL_SESSION, LABEL_SESSION_UID, MANAGED_BY } from '../core/resources/names.ts';
import { isTerminal, TERMINAL_PHASES } from '../core/resources/turn.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import type { BodyFacts, CachedSession, CachedTurn } from './world.ts';

/** What the controller has seen of the cluster: objects without their bodies, found by what decisions ask for. */
export interface Caches {
  session(namespace: string, name: string): CachedSession | undefined;
  /** Every cached Turn that names the session. */
  turnsNaming(namespace: string, session: string): CachedTurn[];
  pod(namespace: string, name: string): StoredPod | undefined;
  podsOf(sessionUID: string): StoredPod[];
  class(name: string): StoredSessionClass | undefined;
  allSessions(): CachedSession[];
  allPods(): StoredPod[];
  /** `namespace/name` of every session that exists, or that a turn names. */
  keys(): Set<string>;
  /** Takes in what an earlier leader has written and these caches may not show yet: sessions, pods and live turns. */
  refresh(signal: AbortSignal): Promise<void>;
  /** Results of own writes, seen before their events come. */
  sawSession(object: StoredSession): void;
  sawTurn(object: StoredTurn): void;
  sawPod(object: StoredPod): void;
  start(): void;
  synced(signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export interface CachesOptions {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Absent: all namespaces. */
  namespaces?: readonly string[];
  /** A session may have to be looked at. */
  onSession(key: string): void;
  onPod(pod: StoredPod, gone: boolean): void;
  /** A class was made, changed or removed. */
  onClass(name: string): void;
}

const OURS = `${LABEL_MANAGED_BY}=${MANAGED_BY},${LABEL_SESSION_UID}`;
const LIVE = TERMINAL_PHASES.map((phase) => `status.phase!=${phase}`).join(',');
const PAGE = 500;

async function everyPage<T extends KubeObject>(
  api: KubeApi,
  resource: Resource<T>,
  options: ListOptions,
  take: (object: Stored<T>) => void,
): Promise<void> {
  let next: string | undefined;
  do {
    const page = await api.list(resource, { ...options, limit: PAGE, ...(next ? { continue: next } : {}) });
    for (const object of page.items) take(object);
    next = page.metadata.continue;
  } while (next);
}

const NAMING = 'naming';
const OF_SESSION = 'ofSession';

/** Facts of a JSON value by which it is recognised again: key order does not matter to JSON, so it is sorted. */
export function bodyFacts(value: unknown): BodyFacts {
  return { digest: createHash('sha256').update(canonical(value)).digest('hex'), bytes: jsonBytes(value ?? null) };
}

function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, item: unknown) =>
    item !== null && typeof item === 'object' && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

function slimMeta<T extends KubeObject>(object: Stored<T>): Stored<T>['metadata'] {
  const {
    managedFields: _m,
    annotations: _a,
    ...rest
  } = object.metadata as Stored<T>['metadata'] & { managedFields?: unknown };
  return rest as Stored<T>['metadata'];
}

export function slimSession(session: StoredSession): StoredSession {
  const { input, ...spec } = session.spec;
  return {
    ...session,
    metadata: slimMeta(session),
    spec: { ...spec, ...(input === undefined ? {} : { input: bodyFacts(input) }) },
  } as StoredSession;
}

export function slimTurn(turn: StoredTurn): StoredTurn {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, ownerReferences } =
    turn.metadata;
  const status = turn.status ?? {};
  const slim = isTerminal(status.phase)
    ? {
        index: status.index,
        phase: status.phase,
        incarnation: status.incarnation,
        podUID: status.podUID,
        startedAt: status.startedAt,
        finishedAt: status.finishedAt,
        state: status.state,
        // For the session's status, until the turn is counted there.
        ...(status.output !== undefined && jsonBytes(status.output) <= MAX_LAST_OUTPUT_BYTES
          ? { output: status.output }
          : {}),
      }
    : status;
  const cached = {
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, ownerReferences },
    spec: { session: turn.spec.session, timeout: turn.spec.timeout, cancel: turn.spec.cancel },
    status: slim,
    input: bodyFacts(turn.spec.input),
  };
  return cached as unknown as StoredTurn;
}

function slimPod(pod: StoredPod): StoredPod {
  const { nodeName, containers } = pod.spec;
  const { phase, reason, message, conditions, containerStatuses } = pod.status ?? {};
  return {
    metadata: slimMeta(pod),
    spec: {
      ...(nodeName ? { nodeName } : {}),
      containers: containers.map(({ name, image = '' }) => ({ name, image })),
    },
    status: { phase, reason, message, conditions, containerStatuses } as NonNullable<Pod['status']>,
  };
}

/** Informers over the real API. */
export function informerCaches(options: CachesOptions): Caches {
  const { api, clock, random, log, namespaces } = options;
  const common = { api, clock, random, log, ...(namespaces ? { namespaces } : {}) };
  const sessionInformer = new Informer<Session>({ ...common, resource: sessions, transform: slimSession });
  const turnInformer = new Informer<Turn>({
    ...common,
    resource: turns,
    transform: slimTurn,
    indexes: { [NAMING]: (turn) => [`${turn.metadata.namespace}/${turn.spec.session}`] },
  });
  const podInformer = new Informer<Pod>({
    ...common,
    resource: pods,
    labelSelector: OURS,
    transform: slimPod,
    indexes: { [OF_SESSION]: (pod) => [pod.metadata.labels?.[LABEL_SESSION_UID] ?? ''] },
  });
  const classInformer = new Informer<SessionClass>({ api, clock, random, log, resource: sessionclasses });
  const all = [sessionInformer, turnInformer, podInformer, classInformer];

  const onSession = ({ metadata }: KubeObject) => options.onSession(`${metadata.namespace}/${metadata.name}`);
  sessionInformer.addHandler({ add: onSession, update: onSession, delete: onSession });
  const onTurn = (turn: StoredTurn) => options.onSession(`${turn.metadata.namespace}/${turn.spec.session}`);
  turnInformer.addHandler({ add: onTurn, update: onTurn, delete: onTurn });
  const onPod = (gone: boolean) => (pod: StoredPod) => {
    options.onPod(pod, gone);
    options.onSession(`${pod.metadata.namespace}/${pod.metadata.labels?.[LABEL_SESSION]}`);
  };
  podInformer.addHandler({ add: onPod(false), update: onPod(false), delete: onPod(true) });
  const onClass = ({ metadata }: KubeObject) => options.onClass(metadata.name);
  classInformer.addHandler({ add: onClass, update: onClass, delete: onClass });

  return {
    session: (namespace, name) => sessionInformer.get(namespace, name) as CachedSession | undefined,
    turnsNaming: (namespace, session) =>
      turnInformer.byIndex(NAMING, `${namespace}/${session}`) as unknown as CachedTurn[],
    pod: (namespace, name) => podInformer.get(namespace, name),
    podsOf: (sessionUID) => podInformer.byIndex(OF_SESSION, sessionUID),
    class: (name) => classInformer.get(undefined, name),
    allSessions: () => sessionInformer.list() as unknown as CachedSession[],
    allPods: () => podInformer.list(),
    keys: () =>
      new Set([
        ...sessionInformer.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
        ...turnInformer.list().map(({ metadata, spec }) => `${metadata.namespace}/${spec.session}`),
      ]),
    refresh: async (signal) => {
      for (const namespace of namespaces ?? [undefined]) {
        const scope = { ...(namespace === undefined ? {} : { namespace }), signal };
        await everyPage(api, sessions, scope, (session) => sessionInformer.apply(session));
        await everyPage(api, turns, { ...scope, fieldSelector: LIVE }, (turn) => turnInformer.apply(turn));
        await everyPage(api, pods, { ...scope, labelSelector: OURS }, (pod) => podInformer.apply(pod));
      }
    },
    sawSession: (object) => sessionInformer.apply(object),
    sawTurn: (object) => turnInformer.apply(object),
    sawPod: (object) => podInformer.apply(object),
    start: () => {
      for (const informer of all) informer.start();
    },
    synced: async (signal) => {
      await Promise.all(all.map((informer) => informer.synced(signal)));
    },
    stop: async () => {
      await Promise.all(all.map((informer) => informer.stop()));
    },
  };
}
