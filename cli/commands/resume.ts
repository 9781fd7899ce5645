import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';

/** Removes a hold, or a suspension that has not happened yet. Starts no pod by itself: the next turn does. */
export async function resume(name: string, flags: ClusterFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    await cluster.resume(session, cli.interrupted);
    await cli.out(`session.berth.dev/${name} resumed\n`);
    return 0;
  });
}
