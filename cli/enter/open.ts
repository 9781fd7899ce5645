import { helloFor } from '../../core/enter/client.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Inside } from '../cluster/inside.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { unreachable } from '../errors.ts';
import { watchPod } from './watch-pod.ts';

/** The pod that a session had when a command line began to work inside it. */
export interface Entered {
  session: StoredSession;
  inside: Inside;
  /** Rejects when the session has that pod no more. */
  watch(signal: AbortSignal): Promise<never>;
}

/** Calls `use` with the session's present pod. Rejects where there is no such session. */
export async function withSession<R>(
  name: string,
  flags: ClusterFlags,
  cli: Cli,
  use: (entered: Entered) => Promise<R>,
): Promise<R> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    // A session that cannot be entered is refused before anything else is asked.
    helloFor(session, { want: 'commands' });
    const inside = await cluster.inside(session, cli.interrupted);
    const watch = (signal: AbortSignal) => watchPod(session, cluster, { cli, signal, lost: 'the command is lost' });
    return untilLost(() => use({ session, inside, watch }));
  });
}

/** Resolves as `use` does. A lost connection is not told as a cluster that does not answer: the cluster had answered before. */
export async function untilLost<R>(use: () => Promise<R>): Promise<R> {
  try {
    return await use();
  } catch (error) {
    throw error instanceof TransportError && error.name === 'TransportError' ? unreachable(error.message) : error;
  }
}
