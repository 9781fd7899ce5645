import type { Event } from '../../core/kube/builtin.ts';
import { ifAllowed } from '../../core/kube/errors.ts';
import { events } from '../../core/kube/resources.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { getSession, turnsOf } from '../cluster/stored.ts';
import { withKubernetes } from '../connect/connect.ts';
import { findClass } from '../create/allowed.ts';
import { table } from '../print/table.ts';
import { explain, whyText } from '../wait/why.ts';

/** Number of events that are shown. */
const SHOWN = 5;

/** Says in one screen what blocks a session, since when, and what happens next, with its last events. */
export async function why(name: string, flags: ClusterFlags, cli: Cli): Promise<number> {
  return withKubernetes('why', flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    const [turns, found, happened] = await Promise.all([
      turnsOf(cluster, session, cli.interrupted),
      findClass(session.spec.class, cluster, cli),
      eventsOf(session, cluster, cli.interrupted),
    ]);
    const now = cli.clock.now();
    const allowed = found === 'NotFound' ? undefined : found;
    const text = whyText(explain({ session, turns, allowed, cliName: cli.name, now }), now);
    await cli.out(text + (happened?.length ? `\n${eventTable(happened, now, cli)}` : ''));
    if (!happened) cli.say('its events are not shown: you may not list events');
    return 0;
  });
}

/** Returns the last events of the session and of its pod, the oldest first; undefined where they may not be read. */
async function eventsOf(
  { metadata: { name, uid }, status }: StoredSession,
  { api, namespace }: KubeCluster,
  signal: AbortSignal,
): Promise<Event[] | undefined> {
  const about = async (object: string) =>
    (await api.list(events, { namespace, fieldSelector: `involvedObject.name=${object}`, signal })).items;
  const all = await ifAllowed(Promise.all([about(name), ...(status?.podName ? [about(status.podName)] : [])]));
  return all
    ?.flat()
    .filter(({ involvedObject }) => involvedObject.uid === uid || involvedObject.uid === status?.podUID)
    .sort((a, b) => timeOf(a) - timeOf(b))
    .slice(-SHOWN);
}

/** Events of newer reporters have a time of their own (events.k8s.io) and none of these two. */
const timeOf = ({ lastTimestamp, metadata }: Event) => Date.parse(lastTimestamp ?? metadata.creationTimestamp ?? '');

function eventTable(happened: Event[], now: number, { terminal }: Cli): string {
  const rows = happened.map((event) => [
    `${formatDuration(Math.max(0, now - timeOf(event)))} ago`,
    event.involvedObject.kind ?? '',
    event.reason,
    event.count > 1 ? String(event.count) : '',
    event.message,
  ]);
  return table([['EVENT', 'OF', 'REASON', 'TIMES', 'MESSAGE'], ...rows], { terminal, wraps: true });
}
