import { sessions } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { withCluster } from '../cluster.ts';
import { getSession } from '../stored.ts';

/** Deletes sessions with their turns, pods and stored state. */
export async function remove(names: string[], flags: ClusterFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const found = await Promise.all(names.map((name) => getSession(cluster, name, cli.interrupted)));
    for (const { metadata } of found) {
      const ref = { namespace: cluster.namespace, name: metadata.name };
      await cluster.api.delete(sessions, ref, { uid: metadata.uid, signal: cli.interrupted });
      await cli.out(`session.berth.dev/${metadata.name} deleted\n`);
    }
    return 0;
  });
}
