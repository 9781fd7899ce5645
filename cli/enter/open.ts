import { enterSession } from '../../core/enter/client.ts';
import type { OpenSession } from '../../core/enter/files.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withKubernetes } from '../connect/connect.ts';
import { unreachable } from '../errors.ts';

/**
 * Calls `use` with a function that opens connections to the present pod of the session; `command` is refused as by `withKubernetes`.
 * Rejects where there is no such session.
 */
export async function withSession(
  command: string,
  name: string,
  flags: ClusterFlags,
  cli: Cli,
  use: (open: OpenSession) => Promise<number>,
): Promise<number> {
  return withKubernetes(command, flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    const options = { clock: cli.clock, signal: cli.interrupted };
    return untilLost(() => use((wish) => enterSession(cluster.api, session, wish, options)));
  });
}

/** Resolves as `use` does. A lost connection is not told as a cluster that does not answer: the cluster had answered before. */
export async function untilLost<R>(use: () => Promise<R>): Promise<R> {
  try {
    return await use();
  } catch (error) {
    throw error instanceof TransportError ? unreachable(error.message) : error;
  }
}
