import { parseDuration } from '../../core/resources/duration.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { checkAllowed } from '../allowed.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster.ts';
import { withCluster } from '../connect.ts';
import { CliError, EXIT, failed, refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { printableLine } from '../printable.ts';
import { finishedMessage, getSession } from '../stored.ts';

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
    const asked = await cluster.restart(name, cli.interrupted);
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
    const next = await replaced(asked, pod, flags.timeout, cluster, cli);
    await cli.out(`session.berth.dev/${name} restarted\n`);
    if (next.status?.podName === undefined) cli.say('its next turn starts a new pod with the present settings');
    return 0;
  });
}

/** Waits until the session has another pod, or none. */
async function replaced(
  { metadata: { name, uid } }: StoredSession,
  pod: string,
  timeout: string | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<StoredSession> {
  const timer = timeout === undefined ? undefined : AbortSignal.timeout(parseDuration(timeout));
  const signal = timer ? AbortSignal.any([cli.interrupted, timer]) : cli.interrupted;
  let told = '';
  let last: StoredSession | undefined;
  try {
    for await (const session of followObject(cluster, sessions, name, { clock: cli.clock, signal })) {
      if (session?.metadata.uid !== uid) throw failed(`session ${name} was deleted`);
      last = session;
      if (session.status?.podName !== pod) return session;
      const why = whyNotYet(session);
      if (why && why !== told) cli.say(`waiting: ${printableLine(why)}`);
      told = why ?? told;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!cli.interrupted.aborted && cluster.outages.present) throw cluster.outages.present;
    cli.say(`session ${name} still restarts once ${last?.status?.currentTurn ? 'its turn has ended' : 'it can'}`);
    if (cli.interrupted.aborted) throw cli.interrupted.reason;
    throw new CliError('TimedOut', EXIT.timedOut, `session ${name} has not restarted within ${timeout}`);
  }
  throw new Error('following a session ended without its end');
}

/** Returns what keeps the session from giving up its pod, as far as its status says so. */
function whyNotYet({ status = {} }: StoredSession): string | undefined {
  const { currentTurn, conditions = [] } = status;
  const of = (type: string) => conditions.find((condition) => condition.type === type);
  if (currentTurn && of('ApprovalPending')?.status !== 'True') return `turn ${currentTurn} ends first`;
  const stored = of('StatePersisted');
  const isStored = stored?.reason !== 'StateNotStored' && stored?.reason !== 'StateTooLarge';
  return isStored ? undefined : `${stored.reason}: ${stored.message}`;
}
