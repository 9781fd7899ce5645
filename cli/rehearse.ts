import { apiVersionOf } from '../core/kube/paths.ts';
import { configMaps } from '../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../core/kube/types.ts';
import { environments, type StoredSession, sessions, turns } from '../core/resources/kinds.ts';
import type { Cli } from './cli.ts';
import type { Cluster, KubeCluster } from './cluster.ts';
import { post, sessionObject, turnObject } from './create.ts';
import { filesOf } from './files.ts';
import type { DryRun, Plan } from './plan.ts';
import { formatObject, nameOf } from './print.ts';

/** Prints what would be created: its names or, with `output`, the objects; several in YAML as documents, in JSON as a List. */
export async function showRehearsal(
  plan: Plan,
  mode: DryRun,
  output: 'json' | 'yaml' | 'name' | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<number> {
  const all = await cluster.rehearse(plan, mode, cli);
  if (output === 'yaml') {
    const documents = await Promise.all(all.map((object) => formatObject(object, 'yaml')));
    await cli.out(documents.join('---\n'));
  } else if (output === 'json') {
    const [only] = all;
    const list = { apiVersion: 'v1', kind: 'List', items: all };
    await cli.out(await formatObject(all.length === 1 && only ? only : list, 'json'));
  } else {
    const how = output === 'name' ? '' : ` created (${mode === 'server' ? 'server dry run' : 'dry run'})`;
    await cli.out(all.map((object) => `${nameOf(object)}${how}\n`).join(''));
  }
  return 0;
}

/**
 * Returns what would be created, in order, and creates nothing. `client`: the objects as they would be sent. `server`: as
 * the API server would store them, after all its checks.
 */
export async function rehearse(
  { session, turn, existing }: Plan,
  mode: DryRun,
  cluster: KubeCluster,
  cli: Cli,
): Promise<KubeObject[]> {
  const { namespace } = cluster;
  // Without a server there is no UID that an owner reference could name, and the author is whoever sends the objects.
  const author = mode === 'client' ? { ...cluster, author: async () => ({}) } : cluster;
  const all: KubeObject[] = [];
  const add = async <T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> => {
    const sent = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
    const result =
      mode === 'client' ? unowned(sent) : await post(resource, sent, cluster, cli, { isStrict: true, isDryRun: true });
    all.push(withoutManagedFields(result));
    return result as Stored<T>;
  };
  let owner = existing;
  if (session) {
    const { environment, archive } = session;
    if (environment) {
      const { items } = await cluster.api.list(environments, {
        namespace,
        fieldSelector: `metadata.name=${environment.name}`,
        signal: cli.interrupted,
      });
      const object = { metadata: { name: environment.name, namespace }, spec: environment.spec };
      if (items.length === 0) await add(environments, object);
    }
    owner = await add(sessions, await sessionObject(session, author));
    if (archive) await add(configMaps, filesOf(archive, owner));
  }
  if (turn && owner) await add(turns, await turnObject(turn, owner, author));
  return all;
}

/** Returns what would be sent for a plan without files and Environments. */
export async function planned({ session, turn, existing }: Plan, namespace: string): Promise<KubeObject[]> {
  const sender = { namespace, author: async () => ({}) };
  const made = session && {
    apiVersion: apiVersionOf(sessions),
    kind: sessions.kind,
    ...(await sessionObject(session, sender)),
  };
  const owner = existing ?? (made as StoredSession | undefined);
  const all: KubeObject[] = made ? [made] : [];
  if (turn && owner) all.push(unowned(await turnObject(turn, owner, sender)));
  return all;
}

function unowned({ metadata: { ownerReferences: _, ...metadata }, ...rest }: KubeObject): KubeObject {
  return { ...rest, metadata };
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
