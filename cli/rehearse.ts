import { apiVersionOf } from '../core/kube/paths.ts';
import { configMaps } from '../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../core/kube/types.ts';
import { environments, type StoredSession, sessions, turns } from '../core/resources/kinds.ts';
import type { Cli } from './cli.ts';
import type { Cluster } from './cluster.ts';
import { type NewSession, type NewTurn, post, sessionObject, turnObject } from './create.ts';
import { filesOf } from './files.ts';
import { formatObject, nameOf } from './print.ts';

export type DryRun = 'client' | 'server';

/** What a command would create; `existing`: the session of a turn that is created alone. */
export interface Plan {
  session?: NewSession;
  turn?: NewTurn | undefined;
  existing?: StoredSession;
}

/** Prints what would be created: its names or, with `output`, the objects; several in YAML as documents, in JSON as a List. */
export async function showRehearsal(
  plan: Plan,
  mode: DryRun,
  output: 'json' | 'yaml' | 'name' | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<number> {
  const all = await rehearse(plan, mode, cluster, cli);
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
async function rehearse(
  { session, turn, existing }: Plan,
  mode: DryRun,
  cluster: Cluster,
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

function unowned({ metadata: { ownerReferences: _, ...metadata }, ...rest }: KubeObject): KubeObject {
  return { ...rest, metadata };
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
