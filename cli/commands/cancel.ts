import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession, turnsOf } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { failed, refused } from '../errors.ts';
import { doneText } from '../print/print.ts';
import { cancelTurn } from '../wait/wait.ts';

export interface CancelFlags extends ClusterFlags {
  turn?: string;
  wait: boolean;
  output?: 'name';
}

/** Cancels the session's running and queued turns, or one of them. */
export async function cancel(name: string, flags: CancelFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    const own = await turnsOf(cluster, session, cli.interrupted);
    const named = flags.turn === undefined ? own : own.filter(({ metadata }) => metadata.name === flags.turn);
    if (flags.turn !== undefined && named.length === 0) throw refused(`session ${name} has no turn "${flags.turn}"`);
    const live = named.filter(({ status }) => !isTerminal(status?.phase));
    if (live.length === 0) {
      cli.say(flags.turn ? `turn ${flags.turn} has already ended` : `session ${name} has no turn to cancel`);
      return 0;
    }
    // The last turn is cancelled first, so that none of them starts because the one before it has ended.
    for (const turn of live.toReversed()) await cluster.cancelTurn(turn, cli.interrupted);
    for (const turn of live) {
      const ended = flags.wait ? await cancelTurn(turn, cluster, cli) : undefined;
      if (flags.wait && !ended)
        throw failed(`turn ${turn.metadata.name} has not ended yet; its cancellation is requested`);
      const done = ended ? `${ended.status?.phase}` : 'asked to end';
      await cli.out(doneText(`turn.berth.dev/${turn.metadata.name}`, done, flags.output));
    }
    return 0;
  });
}
