import { EMBEDDED_VERSION_SUFFIX, embeddedIsRunning, embeddedKubeconfig, homeFolder } from '../core/embedded.ts';
import { KubeClient } from '../core/kube/client.ts';
import { type ConnectionOptions, loadConnection } from '../core/kube/config.ts';
import { silentLogger } from '../core/system.ts';
import type { Cli, ClusterFlags } from './cli.ts';

export interface Cluster {
  api: KubeClient;
  namespace: string;
}

/** The context of the embedded cluster's kubeconfig. */
const EMBEDDED_CONTEXT = 'berth-local';

/**
 * The kubeconfig that counts: `--kubeconfig`; `KUBECONFIG`; the embedded cluster's while it runs, unless `--context`
 * names another; a pod's service account; `~/.kube/config`.
 */
export function connectionOptions(flags: ClusterFlags, env: NodeJS.ProcessEnv): ConnectionOptions {
  const context = flags.context === undefined ? {} : { context: flags.context };
  if (flags.kubeconfig !== undefined) return { ...context, env, path: flags.kubeconfig };
  const home = homeFolder(env);
  const meant = flags.context === undefined || flags.context === EMBEDDED_CONTEXT;
  if (!env.KUBECONFIG && meant && embeddedIsRunning(home)) return { ...context, env, path: embeddedKubeconfig(home) };
  return { ...context, env };
}

/** Runs `use` with a client of the cluster that the flags choose. */
export async function withCluster<R>(flags: ClusterFlags, cli: Cli, use: (cluster: Cluster) => Promise<R>): Promise<R> {
  const connection = await loadConnection(connectionOptions(flags, cli.env));
  const api = new KubeClient({
    connection,
    clock: cli.clock,
    random: cli.random,
    log: silentLogger,
    userAgent: 'berth-cli',
  });
  try {
    return await use({ api, namespace: flags.namespace ?? connection.namespace });
  } finally {
    await api.close();
  }
}

/** Whether pods of this cluster are processes of this machine. */
export async function isEmbedded({ api }: Cluster, signal: AbortSignal): Promise<boolean> {
  const version = (await api.raw('GET', '/version', { signal })) as { gitVersion?: string };
  return version.gitVersion?.endsWith(EMBEDDED_VERSION_SUFFIX) ?? false;
}
