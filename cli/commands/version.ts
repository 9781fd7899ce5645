import { ApiError } from '../../core/kube/errors.ts';
import { VERSION } from '../../core/program/version.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { formatObject } from '../print.ts';

export interface VersionFlags extends ClusterFlags {
  client?: boolean;
  output?: 'json' | 'yaml';
}

/** Versions in the cluster. */
interface ServerVersion {
  kubernetes?: string;
  /** Installations of the chart, or the embedded cluster; absent where the caller may not see them. */
  installations?: Installation[];
}

interface Installation {
  /** Deployment of the controller as namespace/name; absent on the embedded cluster. */
  controller?: string;
  version: string;
  chart?: string;
}

interface Labelled {
  items: { metadata: { name: string; namespace: string; labels?: Record<string, string> } }[];
}

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const SELECTOR = 'app.kubernetes.io/name=berth';

/** Prints the version of this program and, unless `--client`, those in the cluster as far as the caller may see them. */
export async function version(flags: VersionFlags, cli: Cli): Promise<number> {
  const print = (server?: ServerVersion) => {
    const versions = { client: VERSION, ...(server ? { server } : {}) };
    return flags.output ? formatObject(versions, flags.output) : text(versions);
  };
  if (flags.client) {
    await cli.out(await print());
    return 0;
  }
  let server: ServerVersion;
  try {
    server = await withCluster(flags, cli, (cluster) => serverVersion(cluster, cli.interrupted));
  } catch (error) {
    // The client's version is known without a cluster.
    await cli.out(await print());
    throw error;
  }
  await cli.out(await print(server));
  if (!server.installations)
    cli.say('the version of Berth in the cluster is unknown: you may not list its Deployments');
  return 0;
}

/** Reads what the cluster tells of versions; what the caller may not read is left out. */
export async function serverVersion({ api, embedded }: Pick<Cluster, 'api' | 'embedded'>, signal: AbortSignal) {
  const server: ServerVersion = {};
  const found = (await ifAllowed(api.raw('GET', '/version', { signal }))) as
    | { gitVersion?: string; berthVersion?: string }
    | undefined;
  if (found?.gitVersion) server.kubernetes = found.gitVersion;
  if (await embedded())
    return { ...server, installations: found?.berthVersion ? [{ version: found.berthVersion }] : [] };
  const query = { labelSelector: SELECTOR };
  const list = (await ifAllowed(api.raw('GET', DEPLOYMENTS, { query, signal }))) as Labelled | undefined;
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
async function ifAllowed<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ApiError && (error.code === 403 || error.code === 404)) return undefined;
    throw error;
  }
}

function text({ client, server }: { client: string; server?: ServerVersion }): string {
  const installed = (server?.installations ?? []).map(({ controller, version, chart }) => {
    const where = [controller, chart && `chart ${chart}`].filter(Boolean).join(', ');
    return ['controller', where ? `${version} (${where})` : version];
  });
  const missing = server?.installations?.length === 0 ? [['controller', 'none is installed']] : [];
  const rows = [
    ['client', client],
    ...installed,
    ...missing,
    ...(server?.kubernetes ? [['kubernetes', server.kubernetes]] : []),
  ];
  return rows.map(([name = '', value]) => `${name.padEnd(12)}${value}\n`).join('');
}
