import { anySignal } from '../../core/abort.ts';
import type { Placed } from '../../core/follow/session-events.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { refused } from '../errors.ts';
import { inWords } from '../follow/words.ts';

export interface WatchFlags extends ClusterFlags {
  logs?: boolean;
  output?: 'json';
}

/**
 * Prints what happens to a session until it is deleted, or to all sessions and turns of the namespace. Each event is a line,
 * with the time at which it came, or as JSON.
 */
export async function watch(name: string | undefined, flags: WatchFlags, cli: Cli): Promise<number> {
  if (name === undefined && flags.logs) throw refused('--logs needs the name of a session');
  return withCluster(flags, cli, async (cluster) => {
    const signal = anySignal(cli.interrupted, cluster.outages.over);
    const session = name === undefined ? undefined : await getSession(cluster, name, signal);
    const events: AsyncIterable<Placed> = session
      ? cluster.sessionEvents(session, { logs: flags.logs === true, signal }, cli)
      : cluster.namespaceEvents(signal, cli);
    for await (const { id, event } of events) {
      const line = flags.output
        ? JSON.stringify({ type: event.type, id, data: event.data })
        : `${clockTime(cli.clock.now())} ${inWords(event)}`;
      await cli.out(`${line}\n`);
    }
    return 0;
  });
}

/** Time of day as `12:00:05`. */
const clockTime = (now: number): string => new Date(now).toTimeString().slice(0, 8);
