import { anySignal } from '../../core/abort.ts';
import { helloFor } from '../../core/enter/client.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { type Forward, Forwarded } from '../enter/forward.ts';
import { untilLost } from '../enter/open.ts';
import { watchPod } from '../enter/watch-pod.ts';
import { CliError, describeError, EXIT } from '../errors.ts';

export interface PortForwardFlags extends ClusterFlags {
  address?: string[];
}

/**
 * Forwards ports of this machine to a session until it is interrupted. Resolves with 255 where the session has no pod, or its pod has gone.
 */
export async function portForward(name: string, pairs: Forward[], flags: PortForwardFlags, cli: Cli): Promise<number> {
  try {
    return await withCluster(flags, cli, async (cluster) => {
      const ended = new AbortController();
      const signal = anySignal(cli.interrupted, ended.signal);
      const session = await getSession(cluster, name, signal);
      // A session that cannot be entered is refused before anything listens.
      helloFor(session, { want: 'ports' });
      const told = new WeakSet<Error>();
      const tell = (remote: number, error: unknown) => {
        // One loss ends many connections.
        if (signal.aborted || !(error instanceof Error) || told.has(error)) return;
        told.add(error);
        cli.say(`${cli.name}: a connection to port ${remote} has ended: ${error.message}`);
      };
      try {
        const ports = await untilLost(() => cluster.ports(session, signal));
        using forwarded = new Forwarded(ports, tell);
        for (const pair of pairs) {
          const ends = await forwarded.listen(flags.address ?? ['localhost'], pair);
          await cli.out(ends.map((end) => `Forwarding from ${end} -> ${pair.remote}\n`).join(''));
        }
        return await watchPod(session, cluster, { cli, signal, lost: 'its ports are reached no more' });
      } finally {
        ended.abort();
      }
    });
  } catch (error) {
    if (error instanceof CliError) throw error;
    cli.say(`${cli.name}: ${describeError(error, cli).message}`);
    return EXIT.lost;
  }
}
