import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { finishedMessage, getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { checkAllowed } from '../create/allowed.ts';
import { refused } from '../errors.ts';
import { doneText } from '../print/print.ts';
import { untilPodReleased } from '../wait/pod-release.ts';

export interface RestartFlags extends ClusterFlags {
  wait: boolean;
  timeout?: string;
  output?: 'name';
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
    await untilRestarted(asked, flags, cluster, cli, (outcome) =>
      cli.out(doneText(`session.berth.dev/${name}`, outcome, flags.output)),
    );
    return 0;
  });
}

/** Waits, where the flags say so, until the session that was asked to restart has given up its pod. `tell` is called with what became of it. */
export async function untilRestarted(
  asked: StoredSession,
  { wait, timeout }: Pick<RestartFlags, 'wait' | 'timeout'>,
  cluster: Cluster,
  cli: Cli,
  tell: (outcome: string) => unknown,
): Promise<void> {
  const pod = asked.status?.podName;
  if (pod === undefined) {
    await tell('has no pod');
    cli.say('its next turn starts one with the present settings');
    return;
  }
  if (!wait) {
    await tell('asked to restart');
    return;
  }
  const words = { still: 'still restarts', late: 'has not restarted' };
  const next = await untilPodReleased(asked, { timeout, words }, cluster, cli, (now) =>
    now.status?.podName === pod ? undefined : now,
  );
  await tell('restarted');
  if (next.status?.podName === undefined) cli.say('its next turn starts a new pod with the present settings');
}
