import { sessions } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { withCluster } from '../cluster.ts';
import { getSession } from '../stored.ts';

/** Removes a hold, or a suspension that has not happened yet. Starts no pod by itself: the next turn does. */
export async function resume(name: string, flags: ClusterFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    await getSession(cluster, name, cli.interrupted);
    const spec = { suspend: false, suspendRequest: null };
    await cluster.api.patch(sessions, { namespace: cluster.namespace, name }, { spec }, { signal: cli.interrupted });
    await cli.out(`session.berth.dev/${name} resumed\n`);
    return 0;
  });
}
