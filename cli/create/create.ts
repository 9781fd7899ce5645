import { defined } from '../../core/defined.ts';
import { apiVersionOf, collectionPath } from '../../core/kube/paths.ts';
import { configMaps } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { ownedBy, type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION } from '../../core/resources/names.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { filesOf } from '../files/agent-files.ts';
import { ensureEnvironment } from './environments.ts';
import type { NewSession, NewTurn } from './new-objects.ts';

/** Settings of a turn that flags give. */
export interface GivenTurn {
  input: unknown;
  timeout?: string | undefined;
  attempts?: number | undefined;
}

/** Returns the spec of a turn of these settings. */
export function turnSpec({ input, timeout, attempts }: GivenTurn): NewTurn['spec'] {
  return {
    ...defined({ input, timeout }),
    ...(attempts === undefined ? {} : { retry: { maxAttempts: attempts } }),
  };
}

/**
 * Creates a session and what belongs to it: its Environment if there is none, the archive of its agent's files, and what
 * `more` adds. Where that fails the session is deleted again, so that both exist or neither.
 */
export async function createSession<T>(
  wanted: NewSession,
  cluster: KubeCluster,
  cli: Cli,
  more: (session: StoredSession) => Promise<T>,
): Promise<T> {
  const { api, namespace } = cluster;
  const { name, archive, environment } = wanted;
  if (environment) await ensureEnvironment(environment, cluster, cli);
  const session = await post(sessions, await sessionObject(wanted, cluster), cluster, cli, {
    isStrict: wanted.metadata !== undefined,
  });
  try {
    if (archive) await post(configMaps, filesOf(archive, session), cluster, cli);
    return await more(session);
  } catch (error) {
    await api.delete(sessions, { namespace, name }, { uid: session.metadata.uid, deadlineMs: 5_000 }).catch(() => {
      cli.say(`session ${name} is left incomplete; remove it with: ${cli.name} delete ${name}`);
    });
    throw error;
  }
}

/** Creates a turn that is deleted together with its session. */
export async function createTurn(
  wanted: NewTurn,
  session: StoredSession,
  cluster: KubeCluster,
  cli: Cli,
): Promise<StoredTurn> {
  const isStrict = wanted.metadata !== undefined;
  return post(turns, await turnObject(wanted, session, cluster), cluster, cli, { isStrict });
}

/** Creates an object. With `isStrict` fields that its kind does not have are refused; otherwise the server drops them. */
export async function post<T extends KubeObject>(
  resource: Resource<T>,
  object: T,
  { api, namespace }: KubeCluster,
  cli: Cli,
  { isStrict = false, isDryRun = false } = {},
): Promise<Stored<T>> {
  const answer = await api.raw('POST', collectionPath(resource, namespace), {
    query: {
      fieldManager: 'berth-cli',
      fieldValidation: isStrict ? 'Strict' : undefined,
      dryRun: isDryRun ? 'All' : undefined,
    },
    body: { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind },
    exactNumbers: resource.exactNumbers,
    signal: cli.interrupted,
  });
  return answer as Stored<T>;
}

/** Author of new objects, and their namespace. */
export type Sender = Pick<KubeCluster, 'namespace' | 'author'>;

/** Returns a session as it is sent. */
export async function sessionObject({ name, metadata, spec }: NewSession, { namespace, author }: Sender) {
  return { metadata: { ...metadata, name, namespace }, spec: { ...(await author()), ...spec } };
}

/** Returns a turn of the session as it is sent. */
export async function turnObject(
  { name, metadata, spec }: NewTurn,
  session: StoredSession,
  { namespace, author }: Sender,
) {
  return {
    apiVersion: API_GROUP_VERSION,
    kind: turns.kind,
    metadata: { ...metadata, name, namespace, ownerReferences: [ownedBy(session)] },
    spec: { ...(await author()), cancel: false, ...spec, session: session.metadata.name },
  };
}
