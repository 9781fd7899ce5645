import type { Cli, ClusterFlags } from '../cli.ts';
import { finishedMessage, getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { checkAllowed } from '../create/allowed.ts';
import { refused } from '../errors.ts';
import { untilPodReleased } from '../wait/pod-release.ts';

export interface RestartFlags extends ClusterFlags {
  wait: boolean;
  timeout?: string;
}

/**
 * Has the session's pod replaced once its running turn has ended: the next turn starts a new pod with the present settings.
 * The request stays when the wait for it ends early.
 */
export async function restart(name: string, flags: RestartFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    if (session.status?.phase === 'Finished') throw refused(finishedMessage(name, cli));
    // A pod that could have no successor is kept.
    await checkAllowed(session.spec, cluster, cli);
    const asked = await cluster.restart(session, cli.interrupted);
    const pod = asked.status?.podName;
    if (pod === undefined) {
      await cli.out(`session.berth.dev/${name} has no pod\n`);
      cli.say('its next turn starts one with the present settings');
      return 0;
    }
    if (!flags.wait) {
      await cli.out(`session.berth.dev/${name} asked to restart\n`);
      return 0;
    }
    const words = { still: 'still restarts', late: 'has not restarted' };
    const next = await untilPodReleased(asked, { timeout: flags.timeout, words }, cluster, cli, (now) =>
      now.status?.podName === pod ? undefined : now,
    );
    await cli.out(`session.berth.dev/${name} restarted\n`);
    if (next.status?.podName === undefined) cli.say('its next turn starts a new pod with the present settings');
    return 0;
  });
}
