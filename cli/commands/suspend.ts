import type { StoredSession } from '../../core/resources/kinds.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { type Cli, type ClusterFlags, randomSuffix } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { failed } from '../errors.ts';
import { follow } from '../follow.ts';
import { getSession } from '../stored.ts';

export interface SuspendFlags extends ClusterFlags {
  hold?: boolean;
  wait: boolean;
}

/** Gives up the session's pod once its turns have ended and its state is stored; with `hold`, turns queue from then on. */
export async function suspend(name: string, flags: SuspendFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    const request = randomSuffix(cli.random, 12);
    const spec = flags.hold ? { suspend: true } : { suspendRequest: request };
    const ref = { namespace: cluster.namespace, name };
    const asked = await cluster.api.patch(sessions, ref, { spec }, { signal: cli.interrupted });
    if (flags.wait) await waitSuspended(asked, flags.hold ? undefined : request, cluster, cli);
    await cli.out(`session.berth.dev/${name} ${flags.wait ? 'suspended' : 'asked to suspend'}\n`);
    if (session.status?.currentTurn && !flags.wait) cli.say(`turn ${session.status.currentTurn} ends first`);
    return 0;
  });
}

/** `request` undefined: until the hold has taken effect. */
async function waitSuspended(
  { metadata }: StoredSession,
  request: string | undefined,
  { api, namespace }: Cluster,
  cli: Cli,
): Promise<void> {
  const { name, uid } = metadata;
  let told = '';
  for await (const session of follow(
    api,
    sessions,
    { namespace, name },
    { clock: cli.clock, signal: cli.interrupted },
  )) {
    if (session?.metadata.uid !== uid) throw failed(`session ${name} was deleted`);
    const { spec, status = {} } = session;
    if (request ? spec.suspendRequest !== request : !spec.suspend) {
      throw failed(`the suspension of session ${name} was taken back by another request`);
    }
    const { suspendHandled, lastTurn, currentTurn, conditions } = status;
    const after = suspendHandled?.afterTurn ?? 0;
    const last = lastTurn?.index ?? 0;
    const handled = request === undefined || (suspendHandled?.id === request && last >= after);
    const suspended = conditions?.some((condition) => condition.type === 'Suspended' && condition.status === 'True');
    if (status.phase === 'Finished' || (handled && suspended)) return;
    if (request && handled && last > after) {
      cli.say(`session ${name} went on: a turn was given after the suspension was asked for`);
      return;
    }
    if (currentTurn && currentTurn !== told) cli.say(`waiting for turn ${currentTurn} to end`);
    told = currentTurn ?? told;
  }
}
