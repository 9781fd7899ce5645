/** Ports of the cluster on 127.0.0.1. */

import { type AddressInfo, createServer } from 'node:net';
import type { LocalConfig } from './config.ts';
import type { ClusterState, Ports } from './home.ts';

/** Listens on the port for a moment and returns it; 0 is any. Rejects with EADDRINUSE where it is taken. */
async function tryPort(port: number): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: used } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return used;
}

/** Returns a port that is free now: `wanted` if that is. */
export async function freePort(wanted = 0): Promise<number> {
  try {
    return await tryPort(wanted);
  } catch (error) {
    if (wanted === 0) throw error;
    return tryPort(0);
  }
}

const portOf = (url: string): number => Number(new URL(url).port);

export const portsOf = ({ url, apiUrl }: Pick<ClusterState, 'url' | 'apiUrl'>): Ports => ({
  port: portOf(url),
  apiPort: portOf(apiUrl),
});

/** Returns a line for each port of the last cluster that this one could not use, though no flag names another. */
export function movedPorts(last: Ports | undefined, config: LocalConfig, state: ClusterState): string[] {
  if (!last) return [];
  const now = portsOf(state);
  const line = (port: number, what: string, url: string) =>
    `Port ${port} is taken by another program: ${what} is at ${url} from now on.`;
  return [
    ...(config.port || now.port === last.port ? [] : [line(last.port, 'the Kubernetes API', state.url)]),
    ...(config.apiPort || now.apiPort === last.apiPort ? [] : [line(last.apiPort, 'the HTTP API', state.apiUrl)]),
  ];
}
