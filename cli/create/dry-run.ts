import { apiVersionOf } from '../../core/kube/paths.ts';
import { configMaps } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { environments, sessions, turns } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { filesOf } from '../files/agent-files.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { post, type Sender, sessionObject, turnObject } from './create.ts';
import type { DryRun, NewObjects } from './new-objects.ts';

/** Prints what would be created: its names or, with `output`, the objects; several in YAML as documents, in JSON as a List. */
export async function showDryRun(
  objects: NewObjects,
  mode: DryRun,
  output: 'json' | 'yaml' | 'name' | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<number> {
  const all = await cluster.dryRun(objects, mode, cli);
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
export async function dryRun(objects: NewObjects, mode: DryRun, cluster: KubeCluster, cli: Cli): Promise<KubeObject[]> {
  const isThere = async (environment: string) => {
    const fieldSelector = `metadata.name=${environment}`;
    const options = { namespace: cluster.namespace, fieldSelector, signal: cli.interrupted };
    return (await cluster.api.list(environments, options)).items.length > 0;
  };
  if (mode === 'client') return asSent(objects, cluster.namespace, isThere);
  const send: Send = (resource, object) => post(resource, object, cluster, cli, { isStrict: true, isDryRun: true });
  return objectsOf(objects, cluster, send, isThere);
}

/** Returns the objects as they would be sent. `isThere` reports whether an Environment exists, which is then left out. */
export function asSent(
  objects: NewObjects,
  namespace: string,
  isThere: (environment: string) => Promise<boolean>,
): Promise<KubeObject[]> {
  // Without a server there is no UID that an owner reference could name, and the author is whoever sends the objects.
  const author = async () => ({});
  const send: Send = async <T extends KubeObject>(_: Resource<T>, object: T) => unowned(object) as Stored<T>;
  return objectsOf(objects, { namespace, author }, send, isThere);
}

/** Sends an object; resolves with the answer, to which later objects belong. */
type Send = <T extends KubeObject>(resource: Resource<T>, object: T) => Promise<Stored<T>>;

async function objectsOf(
  { session, turn, existing }: NewObjects,
  sender: Sender,
  send: Send,
  isThere: (environment: string) => Promise<boolean>,
): Promise<KubeObject[]> {
  const { namespace } = sender;
  const all: KubeObject[] = [];
  const add = async <T extends KubeObject>(resource: Resource<T>, object: T): Promise<Stored<T>> => {
    const result = await send(resource, { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object });
    all.push(withoutManagedFields(result));
    return result;
  };
  let owner = existing;
  if (session) {
    const { environment, archive } = session;
    if (environment && !(await isThere(environment.name))) {
      await add(environments, { metadata: { name: environment.name, namespace }, spec: environment.spec });
    }
    owner = await add(sessions, await sessionObject(session, sender));
    if (archive) await add(configMaps, filesOf(archive, owner));
  }
  if (turn && owner) await add(turns, await turnObject(turn, owner, sender));
  return all;
}

function unowned({ metadata: { ownerReferences: _, ...metadata }, ...rest }: KubeObject): KubeObject {
  return { ...rest, metadata };
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  return { ...object, metadata };
}
