import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { failed } from '../errors.ts';

export interface DeleteFlags extends ClusterFlags {
  yes?: boolean;
}

/** Deletes sessions with their turns, pods and stored state. Asks first where a person can answer. */
export async function remove(given: string[], flags: DeleteFlags, cli: Cli): Promise<number> {
  const names = [...new Set(given)];
  return withCluster(flags, cli, async (cluster) => {
    const found = await Promise.all(names.map((name) => getSession(cluster, name, cli.interrupted)));
    const what = names.length === 1 ? `session ${names[0]} with its` : `sessions ${names.join(', ')} with their`;
    if (cli.ask && !flags.yes && !(await cli.ask(`Delete ${what} turns, pods and stored state?`))) {
      throw failed('nothing is deleted');
    }
    for (const session of found) {
      await cluster.deleteSession(session, { signal: cli.interrupted });
      await cli.out(`session.berth.dev/${session.metadata.name} deleted\n`);
    }
    return 0;
  });
}
