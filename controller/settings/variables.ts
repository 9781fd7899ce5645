import type { EnvVar } from '../../core/resources/agent.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Workspace } from './persistence.ts';

/** Hosts always reached without a proxy. */
const LOCAL = ['localhost', '127.0.0.1', '::1'];

/**
 * Proxy variables in both spellings: programs read one or the other, and curl reads `http_proxy` only in lower case.
 */
export function proxyVariables({ sandbox }: SessionClassSpec): EnvVar[] {
  const proxy = sandbox?.network?.proxy;
  if (!proxy) return [];
  const values = {
    HTTP_PROXY: proxy.url,
    HTTPS_PROXY: proxy.url,
    NO_PROXY: [...LOCAL, ...(proxy.noProxy ?? [])].join(),
  };
  return Object.entries(values).flatMap(([name, value]) => [
    { name, value },
    { name: name.toLowerCase(), value },
  ]);
}

/**
 * The top directory of a volume belongs to its provisioner, and git refuses a repository of another owner unless
 * `safe.directory` names it. Git reads that from the environment since 2.38.
 */
export function workspaceVariables(workspace: Workspace | undefined): EnvVar[] {
  if (!workspace) return [];
  return [
    { name: 'GIT_CONFIG_COUNT', value: '1' },
    { name: 'GIT_CONFIG_KEY_0', value: 'safe.directory' },
    { name: 'GIT_CONFIG_VALUE_0', value: workspace.mountPath },
  ];
}
