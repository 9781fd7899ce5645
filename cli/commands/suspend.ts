import type { StoredSession } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { finishedMessage, getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { failed, refused } from '../errors.ts';
import { doneText } from '../print/print.ts';
import { endsFirst, untilPodReleased } from '../wait/pod-release.ts';

export interface SuspendFlags extends ClusterFlags {
  hold?: boolean;
  wait: boolean;
  timeout?: string;
  output?: 'name';
}

export interface ResumeFlags extends ClusterFlags {
  output?: 'name';
}

/**
 * Suspends the session: its pod ends once its turns have ended, or wait for an approval, and its state is stored. With
 * `hold`, new turns stay queued from then on. The request stays when the wait for it ends early.
 */
export async function suspend(name: string, flags: SuspendFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    if (session.status?.phase === 'Finished') throw refused(finishedMessage(name, cli));
    const asked = await cluster.suspend(session, flags.hold === true, cli.interrupted);
    const outcome = flags.wait
      ? await waitSuspended(asked, flags.hold ? undefined : asked.spec.suspendRequest, flags.timeout, cluster, cli)
      : 'asked to suspend';
    await cli.out(doneText(`session.berth.dev/${name}`, outcome, flags.output));
    const first = endsFirst(session);
    if (first && !flags.wait) cli.say(`turn ${first} ends first`);
    return 0;
  });
}

function isSuspended({ conditions }: SessionStatus): boolean {
  return conditions?.some(({ type, status }) => type === 'Suspended' && status === 'True') ?? false;
}

/** Resolves with what became of the session. `request` undefined: waits until the hold has taken effect. */
function waitSuspended(
  asked: StoredSession,
  request: string | undefined,
  timeout: string | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<'suspended' | 'finished' | 'continued'> {
  const { name } = asked.metadata;
  const words = { still: 'is still suspended', late: 'has not been suspended' };
  return untilPodReleased(asked, { timeout, words }, cluster, cli, ({ spec, status = {} }) => {
    if (request ? spec.suspendRequest !== request : !spec.suspend) {
      throw failed(`the suspension of session ${name} was withdrawn by another request`);
    }
    const handled = status.suspendHandled?.id === request ? status.suspendHandled : undefined;
    if (status.phase === 'Finished') return 'finished';
    if (request ? handled?.done : isSuspended(status)) return 'suspended';
    // The request of a session that is on hold as well is never done, because its queued turns stay queued.
    if (handled && spec.suspend && isSuspended(status)) return 'suspended';
    if (handled && (status.lastTurn?.index ?? 0) > handled.afterTurn) {
      cli.say(`session ${name} continued: a turn was created after the suspension was requested`);
      return 'continued';
    }
    return undefined;
  });
}

/** Removes a hold, or a suspension that has not happened yet. Starts no pod by itself: the next turn does. */
export async function resume(name: string, flags: ResumeFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    await cluster.resume(session, cli.interrupted);
    await cli.out(doneText(`session.berth.dev/${name}`, 'resumed', flags.output));
    return 0;
  });
}
