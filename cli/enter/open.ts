import { enterSession } from '../../core/enter/client.ts';
import type { OpenSession } from '../../core/enter/files.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { getSession } from '../cluster/stored.ts';
import { unreachable } from '../errors.ts';

/** Returns a function that opens connections to the present pod of the session. Rejects where there is no such session. */
export async function sessionOpener(cluster: KubeCluster, name: string, cli: Cli): Promise<OpenSession> {
  const session = await getSession(cluster, name, cli.interrupted);
  const options = { clock: cli.clock, signal: cli.interrupted };
  return (wish) => enterSession(cluster.api, session, wish, options);
}

/** Resolves as the use does; a connection that was lost is told in words of its own: there is a cluster, and it had answered. */
export async function untilLost<R>(use: () => Promise<R>): Promise<R> {
  try {
    return await use();
  } catch (error) {
    throw error instanceof TransportError ? unreachable(error.message) : error;
  }
}
