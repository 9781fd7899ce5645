import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
// Modules behind KubeConfig, imported directly: the module of KubeConfig loads the whole generated API (90 MB, half a
// second).
import {
  type Cluster,
  type Context,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js';
import { type Connection, KubeConfigError, tokenFile } from './connection.ts';

interface Kubeconfig {
  'current-context'?: string;
  clusters?: { name: string; cluster?: Record<string, unknown> }[];
  users?: { name: string; user?: Record<string, unknown> }[];
  contexts?: unknown[];
}

interface Loaded {
  current: string | undefined;
  clusters: Cluster[];
  users: (User & { tokenFile?: string })[];
  contexts: Context[];
}

/**
 * Returns the connection that `context` (default: the current one) of these kubeconfig files names, merged as kubectl
 * does.
 */
export async function kubeconfigConnection(files: string[], context?: string): Promise<Connection> {
  const parsed = await Promise.all(files.map(read));
  const where = files.join(', ');
  const name = context ?? parsed.find((file) => file.current)?.current;
  if (!name) throw new KubeConfigError(`${where}: no current-context is set and none was named`);
  const find = <T extends { name: string }>(kind: string, wanted: string, list: T[]): T => {
    const found = list.find((entry) => entry.name === wanted);
    if (!found) throw new KubeConfigError(`${where}: there is no ${kind} ${JSON.stringify(wanted)}`);
    return found;
  };
  const chosen = find(
    'context',
    name,
    parsed.flatMap((file) => file.contexts),
  );
  const cluster = find(
    'cluster',
    chosen.cluster,
    parsed.flatMap((file) => file.clusters),
  );
  const user = find(
    'user',
    chosen.user,
    parsed.flatMap((file) => file.users),
  );

  if (cluster.proxyUrl) throw new KubeConfigError(`${where}: cluster ${cluster.name}: proxy-url is not supported`);
  const tls: Connection['tls'] = {
    ...fromFileOrData('ca', cluster.caFile, cluster.caData),
    ...fromFileOrData('cert', user.certFile, user.certData),
    ...fromFileOrData('key', user.keyFile, user.keyData),
    ...(cluster.tlsServerName ? { servername: cluster.tlsServerName } : {}),
    ...(cluster.skipTLSVerify ? { rejectUnauthorized: false } : {}),
  };
  const headers = await authentication(user, cluster, tls, where);
  return { server: cluster.server.replace(/\/+$/, ''), tls, headers, namespace: chosen.namespace || 'default' };
}

async function read(file: string): Promise<Loaded> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeConfigError(`kubeconfig ${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  try {
    const config = ((await parse(text)) ?? {}) as Kubeconfig;
    const clusters = newClusters(config.clusters);
    const users: Loaded['users'] = newUsers(config.users);
    const dir = dirname(file);
    for (const cluster of clusters) if (cluster.caFile) cluster.caFile = absolute(dir, cluster.caFile);
    for (const user of users) {
      if (user.certFile) user.certFile = absolute(dir, user.certFile);
      if (user.keyFile) user.keyFile = absolute(dir, user.keyFile);
      if (user.exec) user.exec.command = commandPath(dir, user.exec.command);
      const path = config.users?.find((entry) => entry.name === user.name)?.user?.tokenFile;
      if (typeof path === 'string') user.tokenFile = absolute(dir, path);
    }
    return { current: config['current-context'], clusters, users, contexts: newContexts(config.contexts) };
  } catch (error) {
    throw new KubeConfigError(`kubeconfig ${file} is not valid: ${(error as Error).message}`, { cause: error });
  }
}

/** Parses YAML. A kubeconfig of the embedded cluster is JSON, and needs no module for YAML. */
async function parse(text: string): Promise<unknown> {
  if (text.startsWith('{')) {
    try {
      return JSON.parse(text);
    } catch {
      // A mapping of YAML can begin like JSON.
    }
  }
  return (await import('yaml')).parse(text);
}

/** Returns the user's headers; a client certificate from an exec plugin is added to `tls`. */
async function authentication(
  user: Loaded['users'][number],
  cluster: Cluster,
  tls: Connection['tls'],
  where: string,
): Promise<Connection['headers']> {
  const fixed: Record<string, string> = {};
  if (user.impersonateUser) fixed['impersonate-user'] = user.impersonateUser;

  if (user.exec) {
    const plugin = new ExecAuth();
    user.exec.env = [
      ...(user.exec.env ?? []),
      { name: 'KUBERNETES_EXEC_INFO', value: execInfo(user.exec, cluster, tls) },
    ];
    const ask = async () => {
      const answer: { headers: Record<string, string>; cert?: string; key?: string } = { headers: {} };
      try {
        await plugin.applyAuthentication(user, answer as never);
      } catch (error) {
        const { command } = user.exec as { command?: string };
        const reason = (error as Error).message.trim();
        throw new KubeConfigError(`${where}: user ${user.name}: exec plugin ${command}: ${reason}`, { cause: error });
      }
      return answer;
    };
    const first = await ask();
    if (first.cert) tls.cert = first.cert;
    if (first.key) tls.key = first.key;
    return async () => ({ ...fixed, ...lowerCase((await ask()).headers) });
  }
  if (user.authProvider) {
    throw new KubeConfigError(
      `${where}: user ${user.name}: auth-provider is not supported; use an exec plugin (for OIDC: kubectl oidc-login)`,
    );
  }
  // kubectl's order: a token file wins over a token.
  if (user.tokenFile) {
    const token = tokenFile(user.tokenFile);
    return () => ({ ...fixed, authorization: `Bearer ${token()}` });
  }
  if (user.token) fixed.authorization = `Bearer ${user.token}`;
  else if (user.username) {
    fixed.authorization = `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}`;
  }
  return () => fixed;
}

/** Input of an exec plugin: the facts about its caller (client.authentication.k8s.io). */
function execInfo(
  exec: { apiVersion?: string; provideClusterInfo?: boolean },
  cluster: Cluster,
  tls: Connection['tls'],
) {
  return JSON.stringify({
    apiVersion: exec.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(exec.provideClusterInfo && {
        cluster: {
          server: cluster.server,
          'certificate-authority-data': tls.ca && Buffer.from(tls.ca).toString('base64'),
          'insecure-skip-tls-verify': cluster.skipTLSVerify || undefined,
          'tls-server-name': cluster.tlsServerName,
        },
      }),
    },
  });
}

function fromFileOrData<K extends string>(key: K, file?: string, data?: string): { [P in K]?: Buffer } {
  if (data) return { [key]: Buffer.from(data, 'base64') } as { [P in K]?: Buffer };
  if (!file) return {};
  try {
    return { [key]: readFileSync(file) } as { [P in K]?: Buffer };
  } catch (error) {
    throw new KubeConfigError(`${file}, named in the kubeconfig, cannot be read`, { cause: error });
  }
}

/** Resolves a command as kubectl does: a name is looked up in PATH, a relative path starts at the kubeconfig. */
const commandPath = (dir: string, command: unknown) =>
  typeof command === 'string' && command.includes('/') ? absolute(dir, command) : command;

const absolute = (dir: string, path: string) => (isAbsolute(path) ? path : join(dir, path));

const lowerCase = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
