import { namespaces, pods } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { turns } from '../../core/resources/kinds.ts';
import { eventually } from './eventually.ts';
import type { Installation } from './installation.ts';

/** Counts objects with its own watch, independent of the controller's view. */
export interface Count {
  /** Highest number at once that the watch has shown. */
  most(): number;
  /** Ends the watch once it has shown the present state; rejects if it broke before. */
  stop(): Promise<number>;
}

/** Counts all pods, until they are gone. */
export async function countPods({ client }: Installation): Promise<Count> {
  return count(client, pods, () => true);
}

/** Counts running turns. */
export async function countRunning({ client }: Installation): Promise<Count> {
  return count(client, turns, ({ status }) => status?.phase === 'Running');
}

async function count<T extends KubeObject>(
  client: Installation['client'],
  resource: Resource<T>,
  counts: (object: Stored<T>) => boolean,
): Promise<Count> {
  const stop = new AbortController();
  /** Version of each existing object by uid, as the watch has shown. */
  const versions = new Map<string, number>();
  const counted = new Set<string>();
  let most = 0;
  const see = (object: Stored<T>, isThere: boolean) => {
    const { uid, resourceVersion } = object.metadata;
    if (isThere) versions.set(uid, Number(resourceVersion));
    else versions.delete(uid);
    if (isThere && counts(object)) counted.add(uid);
    else counted.delete(uid);
    most = Math.max(most, counted.size);
  };
  const { metadata, items } = await client.list(resource);
  for (const object of items) see(object, true);

  let broken: unknown;
  const watching = (async () => {
    const { resourceVersion } = metadata;
    for await (const event of client.watch(resource, { resourceVersion, signal: stop.signal })) {
      if (event.type !== 'BOOKMARK') see(event.object, event.type !== 'DELETED');
    }
    throw new Error(`the watch of ${resource.plural} ended`);
  })().catch((error) => {
    if (!stop.signal.aborted) broken = error;
  });
  const isAtTheEnd = async () => {
    if (broken) throw broken;
    const { items } = await client.list(resource);
    const isKnown = ({ metadata }: Stored<T>) => (versions.get(metadata.uid) ?? 0) >= Number(metadata.resourceVersion);
    return items.length === versions.size && items.every(isKnown);
  };
  return {
    most: () => most,
    stop: async () => {
      await eventually(isAtTheEnd, { what: 'the watch has told of everything' });
      stop.abort();
      await watching;
      return most;
    },
  };
}

/** Creates a namespace, with labels by which classes may limit it. */
export async function makeNamespace({ client }: Installation, name: string, labels: Record<string, string> = {}) {
  await client.create(namespaces, { metadata: { name, labels } });
}
