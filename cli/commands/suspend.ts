import type { StoredSession } from '../../core/resources/kinds.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster.ts';
import { withCluster } from '../connect.ts';
import { failed, refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { finishedMessage, getSession } from '../stored.ts';

export interface SuspendFlags extends ClusterFlags {
  hold?: boolean;
  wait: boolean;
}

/**
 * Suspends the session: its pod ends once its turns have ended, or wait for an approval, and its state is stored. With
 * `hold`, new turns stay queued from then on.
 */
export async function suspend(name: string, flags: SuspendFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    if (session.status?.phase === 'Finished') throw refused(finishedMessage(name, cli));
    const asked = await cluster.suspend(name, flags.hold === true, cli.interrupted);
    const outcome = flags.wait
      ? await waitSuspended(asked, flags.hold ? undefined : asked.spec.suspendRequest, cluster, cli)
      : 'asked to suspend';
    await cli.out(`session.berth.dev/${name} ${outcome}\n`);
    const first = endsFirst(session);
    if (first && !flags.wait) cli.say(`turn ${first} ends first`);
    return 0;
  });
}

/** Returns the turn that keeps the pod for now. A turn that waits for an approval does not. */
function endsFirst({ status = {} }: StoredSession): string | undefined {
  return isTrue(status, 'ApprovalPending') ? undefined : status.currentTurn;
}

function isTrue({ conditions }: SessionStatus, type: 'ApprovalPending' | 'Suspended'): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

/** Resolves with what became of the session. `request` undefined: waits until the hold has taken effect. */
async function waitSuspended(
  { metadata }: StoredSession,
  request: string | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<'suspended' | 'finished' | 'continued'> {
  const { name, uid } = metadata;
  let told = '';
  for await (const session of followObject(cluster, sessions, name, { clock: cli.clock, signal: cli.interrupted })) {
    if (session?.metadata.uid !== uid) throw failed(`session ${name} was deleted`);
    const { spec, status = {} } = session;
    if (request ? spec.suspendRequest !== request : !spec.suspend) {
      throw failed(`the suspension of session ${name} was withdrawn by another request`);
    }
    const handled = status.suspendHandled?.id === request ? status.suspendHandled : undefined;
    if (status.phase === 'Finished') return 'finished';
    if (request ? handled?.done : isTrue(status, 'Suspended')) return 'suspended';
    // The request of a session that is on hold as well is never done, because its queued turns stay queued.
    if (handled && spec.suspend && isTrue(status, 'Suspended')) return 'suspended';
    if (handled && (status.lastTurn?.index ?? 0) > handled.afterTurn) {
      cli.say(`session ${name} continued: a turn was created after the suspension was requested`);
      return 'continued';
    }
    const first = endsFirst(session);
    if (first && first !== told) cli.say(`waiting for turn ${first} to end`);
    told = first ?? told;
  }
  throw new Error('following a session ended without its end');
}
