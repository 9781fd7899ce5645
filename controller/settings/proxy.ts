import type { EnvVar } from '../../core/resources/agent.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

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
