import { ifAllowed, ifThere } from '../../core/kube/errors.ts';
import type { Installation, ServerVersion } from '../cluster/backend.ts';
import type { KubeCluster } from '../cluster/cluster.ts';

interface Labelled {
  items: { metadata: { name: string; namespace: string; labels?: Record<string, string> } }[];
}

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const SELECTOR = 'app.kubernetes.io/name=berth';

/** Reads the versions in the cluster; those that the caller may not read are left out. */
export async function serverVersion({ api, embedded }: Pick<KubeCluster, 'api' | 'embedded'>, signal: AbortSignal) {
  const server: ServerVersion = {};
  const found = (await ifServed(api.raw('GET', '/version', { signal }))) as
    | { gitVersion?: string; berthVersion?: string }
    | undefined;
  if (found?.gitVersion) server.kubernetes = found.gitVersion;
  if (await embedded())
    return { ...server, installations: found?.berthVersion ? [{ version: found.berthVersion }] : [] };
  const query = { labelSelector: SELECTOR };
  const list = (await ifServed(api.raw('GET', DEPLOYMENTS, { query, signal }))) as Labelled | undefined;
  if (list) server.installations = installationsOf(list);
  return server;
}

function installationsOf({ items }: Labelled): Installation[] {
  const controllers = items.filter(({ metadata: { name } }) => name.endsWith('-controller'));
  return controllers.map(({ metadata: { name, namespace, labels = {} } }) => {
    const chart = labels['helm.sh/chart'];
    const version = labels['app.kubernetes.io/version'] ?? 'unknown';
    return { controller: `${namespace}/${name}`, version, ...(chart ? { chart } : {}) };
  });
}

/** Resolves with undefined where the server refuses the read, or does not serve it. */
const ifServed = <T>(read: Promise<T>): Promise<T | undefined> => ifThere(ifAllowed(read));
