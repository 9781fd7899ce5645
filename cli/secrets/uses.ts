import type { Pod } from '../../core/kube/builtin.ts';
import { ifAllowed, isForbidden } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import type { Agent } from '../../core/resources/agent.ts';
import { type StoredSession, sessionclasses, sessions } from '../../core/resources/kinds.ts';
import { LABEL_POOL, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { lastChange, secretMetadata } from '../cluster/secret-metadata.ts';

/**
 * The pod of a session, or those that a pool keeps ready, beside the last change of a Secret. Before: made before it, so that it may have the
 * old values. After: made after it. None: there is no pod. Unknown: the caller may not see the Secret or the pod.
 */
type PodAge = 'Before' | 'After' | 'None' | 'Unknown';

/** A session or a pool that uses a Secret. */
interface Use {
  kind: 'Session' | 'SessionPool';
  namespace: string;
  name: string;
  /** Uid of a session. */
  uid?: string;
  /** Places that name the Secret: fields of the session or of its class, or its pod alone. */
  by: string[];
  pod: PodAge;
}

/** A Secret in one namespace. */
export interface SecretFacts {
  namespace: string;
  /** Last change, RFC 3339; undefined where the caller may not read the Secret. */
  changedAt?: string;
  /** True where the namespace has no such Secret. */
  isMissing?: true;
}

export interface Uses {
  secrets: SecretFacts[];
  uses: Use[];
}

/** Finds the sessions and pools that use a Secret of their namespace. The Secret's values are not read. */
export async function usesOf(
  secret: string,
  { allNamespaces }: { allNamespaces: boolean },
  cluster: KubeCluster,
  cli: Cli,
): Promise<Uses> {
  const { api } = cluster;
  const signal = cli.interrupted;
  const scope = allNamespaces ? {} : { namespace: cluster.namespace };
  const [{ items: all }, classes, ofBerth] = await Promise.all([
    api.list(sessions, { ...scope, signal }),
    ifAllowed(api.list(sessionclasses, { signal })),
    ifAllowed(api.list(pods, { ...scope, labelSelector: LABEL_SESSION_UID, signal })),
  ]);
  if (!classes) cli.say('you may not list SessionClasses: who uses the Secret by a class is found by its pod alone');
  if (!ofBerth) cli.say('you may not list pods: their age is unknown, and so are pods of pools');
  const specs = new Map(classes?.items.map(({ metadata, spec }) => [metadata.name, spec]));
  const byName = new Map(ofBerth?.items.map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
  const named = (ofBerth?.items ?? []).filter((pod) => podNames(pod, secret));

  const found: (Omit<Use, 'pod'> & { pods: Stored<Pod>[]; hasPod: boolean })[] = [];
  for (const session of all) {
    const { namespace, name, uid } = session.metadata;
    const podName = session.status?.podName;
    const pod = podName === undefined ? undefined : byName.get(`${namespace}/${podName}`);
    const fields = fieldsOf(session, specs.get(session.spec.class), secret);
    const isPodAlone = fields.length === 0 && pod !== undefined && named.includes(pod);
    if (fields.length === 0 && !isPodAlone) continue;
    const by = isPodAlone ? ['its pod'] : fields;
    const own = pod ? [pod] : [];
    found.push({ kind: 'Session', namespace, name, uid, by, pods: own, hasPod: podName !== undefined });
  }
  const ready = Map.groupBy(
    named.filter(({ metadata }) => metadata.labels?.[LABEL_SESSION_UID] === ''),
    ({ metadata }) => `${metadata.namespace}/${metadata.labels?.[LABEL_POOL] ?? ''}`,
  );
  for (const [of, pods] of ready) {
    const [namespace = '', name = ''] = of.split('/');
    found.push({ kind: 'SessionPool', namespace, name, by: ['its pods'], pods, hasPod: true });
  }
  const facts = new Map<string, SecretFacts>();
  const inNamespaces = new Set([...(allNamespaces ? [] : [cluster.namespace]), ...found.map((use) => use.namespace)]);
  for (const namespace of inNamespaces) facts.set(namespace, await factsOf(secret, namespace, cluster, signal));
  const uses = found.map(({ pods, hasPod, ...use }): Use => {
    const changedAt = facts.get(use.namespace)?.changedAt;
    if (!hasPod) return { ...use, pod: 'None' };
    if (changedAt === undefined || pods.length === 0) return { ...use, pod: 'Unknown' };
    // Both times are whole seconds of the API server; a pod of the same second may have either.
    const isBefore = pods.some(({ metadata }) => Date.parse(metadata.creationTimestamp) <= Date.parse(changedAt));
    return { ...use, pod: isBefore ? 'Before' : 'After' };
  });
  return { secrets: [...facts.values()], uses };
}

/** Fields of the session and of its class that name the Secret and that count. A session's own replace those of its class. */
function fieldsOf({ spec }: StoredSession, ofClass: SessionClassSpec | undefined, secret: string): string[] {
  const own = spec.agent ?? {};
  const isOwn = (list: keyof Pick<Agent, 'env' | 'secretFiles'>, key: string) =>
    list === 'env' ? own.env?.some(({ name }) => name === key) : own.secretFiles?.some(({ path }) => path === key);
  const ofAgent = ({ env = [], secretFiles = [] }: Agent) => [
    ...env.flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef?.name === secret ? [{ list: 'env' as const, key: name }] : [],
    ),
    ...secretFiles.flatMap(({ path, secretKeyRef }) =>
      secretKeyRef.name === secret ? [{ list: 'secretFiles' as const, key: path }] : [],
    ),
  ];
  const written = ({ list, key }: { list: string; key: string }) => `agent.${list}[${key}]`;
  const inherited = ofAgent(spec.build ? {} : (ofClass?.agent ?? {})).filter(({ list, key }) => !isOwn(list, key));
  const { imagePullSecrets = [], environments } = ofClass ?? {};
  const ofTheClass = [
    ...inherited.map(written),
    ...(imagePullSecrets.some(({ name }) => name === secret) ? ['imagePullSecrets'] : []),
    // Only sessions that build Environments get these.
    ...(spec.build && environments?.credentials?.name === secret ? ['environments.credentials'] : []),
    ...(spec.build && environments?.certificates?.name === secret ? ['environments.certificates'] : []),
  ];
  return [
    ...ofAgent(own).map((field) => `spec.${written(field)}`),
    ...ofTheClass.map((field) => `class ${spec.class}: ${field}`),
  ];
}

/** True where the pod has the Secret in a variable, in a file, or for pulling its image. */
function podNames({ spec }: Pod, secret: string): boolean {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return (
    containers.some(({ env = [] }) => env.some(({ valueFrom }) => valueFrom?.secretKeyRef?.name === secret)) ||
    (spec.volumes ?? []).some(
      ({ secret: volume, projected }) =>
        volume?.secretName === secret || projected?.sources.some((source) => source.secret?.name === secret),
    ) ||
    (spec.imagePullSecrets ?? []).some(({ name }) => name === secret)
  );
}

async function factsOf(
  name: string,
  namespace: string,
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<SecretFacts> {
  try {
    const metadata = await secretMetadata(api, { namespace, name }, signal);
    return metadata ? { namespace, changedAt: lastChange(metadata) } : { namespace, isMissing: true };
  } catch (error) {
    if (isForbidden(error)) return { namespace };
    throw error;
  }
}
