import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Connection, KubeConfigError, tokenFile } from './connection.ts';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface ConnectionOptions {
  /** A kubeconfig file; default: those in $KUBECONFIG, else the service account of the pod, else ~/.kube/config. */
  path?: string;
  /** A context of the kubeconfig; default: its current one. */
  context?: string;
  env?: Record<string, string | undefined>;
  /** Directory of a pod's service account. */
  serviceAccountDir?: string;
}

/** Finds the connection to the cluster. Rejects with a KubeConfigError that lists the places searched. */
export async function loadConnection(options: ConnectionOptions = {}): Promise<Connection> {
  const env = options.env ?? process.env;
  const serviceAccount = options.serviceAccountDir ?? SERVICE_ACCOUNT;
  const inPod = Boolean(env.KUBERNETES_SERVICE_HOST) && existsSync(join(serviceAccount, 'token'));
  const home = join(env.HOME || homedir(), '.kube', 'config');

  let files: string[];
  if (options.path !== undefined) files = [options.path];
  else if (env.KUBECONFIG) files = env.KUBECONFIG.split(delimiter).filter((file) => file !== '' && existsSync(file));
  else if (inPod && options.context === undefined) return inClusterConnection(serviceAccount, env);
  else files = existsSync(home) ? [home] : [];

  if (files.length === 0) {
    throw new KubeConfigError(
      env.KUBECONFIG
        ? `no file named in KUBECONFIG exists: ${env.KUBECONFIG}`
        : `no cluster is configured: KUBECONFIG is not set, ${home} does not exist and this is not a pod`,
    );
  }
  // Imported only here: in a pod neither YAML nor exec plugins are needed, and they cost 8 MB.
  const { kubeconfigConnection } = await import('./kubeconfig.ts');
  return kubeconfigConnection(files, options.context);
}

/**
 * Connects with a pod's service account. The kubelet renews the token file, so the file is read again when it has
 * changed.
 */
function inClusterConnection(dir: string, env: Record<string, string | undefined>): Connection {
  const host = env.KUBERNETES_SERVICE_HOST as string;
  const port = env.KUBERNETES_SERVICE_PORT ?? '443';
  const namespaceFile = join(dir, 'namespace');
  const token = tokenFile(join(dir, 'token'));
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    tls: { ca: readFileSync(join(dir, 'ca.crt')) },
    headers: () => ({ authorization: `Bearer ${token()}` }),
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : 'default',
  };
}
