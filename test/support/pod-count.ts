import { namespaces, pods } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { turns } from '../../core/resources/kinds.ts';
import type { Installation } from './installation.ts';

/** Counts what is there by a watch of its own, apart from anything that the controller sees or says. */
export interface Count {
  /** The most there were at once. */
  most(): number;
  /** Ends the watch; rejects if it broke before. */
  stop(): Promise<number>;
}

/** All pods, until they are gone. */
export async function countPods({ client }: Installation): Promise<Count> {
  return count((signal) => follow(client, pods, signal, () => true));
}

/** Turns that run. */
export async function countRunning({ client }: Installation): Promise<Count> {
  return count((signal) => follow(client, turns, signal, ({ status }) => status?.phase === 'Running'));
}

async function* follow<T extends KubeObject>(
  client: Installation['client'],
  resource: Resource<T>,
  signal: AbortSignal,
  counts: (object: Stored<T>) => boolean,
): AsyncGenerator<number> {
  const { metadata, items } = await client.list(resource);
  const present = new Set(items.filter(counts).map((object) => object.metadata.uid));
  yield present.size;
  const { resourceVersion } = metadata;
  for await (const event of client.watch(resource, { resourceVersion, signal })) {
    if (event.type === 'BOOKMARK') continue;
    if (event.type !== 'DELETED' && counts(event.object)) present.add(event.object.metadata.uid);
    else present.delete(event.object.metadata.uid);
    yield present.size;
  }
}

async function count(open: (signal: AbortSignal) => AsyncGenerator<number>): Promise<Count> {
  const stop = new AbortController();
  const sizes = open(stop.signal);
  let most = (await sizes.next()).value as number;
  const done = (async () => {
    try {
      for await (const size of sizes) most = Math.max(most, size);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
  })();
  done.catch(() => undefined);
  return {
    most: () => most,
    stop: async () => {
      stop.abort();
      await done;
      return most;
    },
  };
}

/** A namespace, with labels by which classes may limit it. */
export async function makeNamespace({ client }: Installation, name: string, labels: Record<string, string> = {}) {
  await client.create(namespaces, { metadata: { name, labels } });
}
