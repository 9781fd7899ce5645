import type { EnvVar } from '../../core/resources/agent.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

/** Reached without a proxy by everybody. */
const LOCAL = ['localhost', '127.0.0.1', '::1'];

/** Programs look at one spelling or the other: curl takes `http_proxy` in lower case only. */
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
