import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession, getTurn } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { findClass } from '../create/allowed.ts';
import { CliError, failed, refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { doneText } from '../print/print.ts';
import { printableLine } from '../print/printable.ts';
import { deadline } from '../wait/deadline.ts';
import { type Progress, sessionProgress, turnProgress, type WaitTarget } from '../wait/target.ts';

export interface WaitFlags extends ClusterFlags {
  for: WaitTarget;
  /** Milliseconds; 0: one look. */
  timeout: number;
  output?: 'name';
}

/**
 * Waits by a watch until the session, or a turn of it, is where `--for` says. Fails at the deadline, and at once where the
 * object can never get there. Says on stderr what it waits for.
 */
export async function wait(name: string, { for: target, timeout, ...flags }: WaitFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    if ('turn' in target) {
      const turn = await getTurn(cluster, target.turn, cli.interrupted);
      if (turn.spec.session !== name) {
        throw refused(`--for: turn ${target.turn} belongs to session ${turn.spec.session}, not to ${name}`);
      }
      await reach({ resource: turns, object: turn, what: 'succeeded', progress: turnProgress }, timeout, cluster, cli);
      await cli.out(doneText(`turn.berth.dev/${target.turn}`, 'condition met', flags.output));
      return 0;
    }
    const found = target.session === 'finished' ? await findClass(session.spec.class, cluster, cli) : undefined;
    const allowed = found === 'NotFound' ? undefined : found;
    const progress = (now: typeof session | undefined) => sessionProgress(now, target.session, allowed, cli.name);
    await reach({ resource: sessions, object: session, what: target.session, progress }, timeout, cluster, cli);
    await cli.out(doneText(`session.berth.dev/${name}`, 'condition met', flags.output));
    return 0;
  });
}

interface Target<T extends KubeObject> {
  resource: Resource<T>;
  object: Stored<T>;
  /** The target, as it is said of the object. */
  what: string;
  progress(now: Stored<T> | undefined): Progress;
}

/** Resolves once the object has reached its target. */
async function reach<T extends KubeObject>(
  { resource, object, what, progress }: Target<T>,
  timeoutMs: number,
  cluster: Cluster,
  cli: Cli,
): Promise<void> {
  const { name, uid } = object.metadata;
  const thing = `${resource.kind.toLowerCase()} ${name}`;
  const late = (why: string) => failed(`${thing} has not ${done(what)} within ${formatDuration(timeoutMs)}: ${why}`);
  using limit = deadline(cli, Math.max(timeoutMs, 1));
  let why = 'the cluster has not answered';
  // The object was read before; a deadline of 0 is one look.
  const signal = timeoutMs === 0 ? cli.interrupted : limit.signal;
  try {
    for await (const now of followObject(cluster, resource, name, { clock: cli.clock, signal })) {
      const how = progress(now?.metadata.uid === uid ? now : undefined);
      if (how.is === 'met') return;
      if (how.is === 'never') throw failed(never(thing, what, how.why));
      if (how.why !== why && timeoutMs > 0) cli.say(`waiting: ${printableLine(how.why)}`);
      why = how.why;
      if (timeoutMs === 0) break;
    }
  } catch (error) {
    if (!limit.isOver || cli.interrupted.aborted || error instanceof CliError) throw error;
  }
  // The last view of the object is out of date while the cluster does not answer.
  throw cluster.outages.present ?? late(why);
}

const done = (what: string) => (what === 'succeeded' ? what : `become ${what}`);
const never = (thing: string, what: string, why: string) =>
  what === 'succeeded' ? `${thing} has not succeeded: ${why}` : `${thing} can never be ${what}: ${why}`;
