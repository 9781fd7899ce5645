import type { StoredTurn } from '../../core/resources/kinds.ts';
import { turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { sessionOrTurn, turnsOf } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { refused } from '../errors.ts';
import { finishTurn } from '../wait/wait.ts';

export interface AttachFlags extends ClusterFlags {
  quiet?: boolean;
  output?: 'json' | 'yaml' | 'name';
}

/** Number of turns that a refusal names. */
const NAMED = 5;

/**
 * Waits for a turn that was created before, and prints what the command that created it would have printed. A session stands
 * for its running turn, otherwise for the next queued one, otherwise for its last. Without a name, the only turn of the namespace that has not ended.
 */
export async function attach(named: string | undefined, flags: AttachFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const turn = named === undefined ? await onlyTurn(cluster, cli) : await namedTurn(named, cluster, cli);
    const { output, quiet } = flags;
    return finishTurn(turn, cluster, cli, { output, quiet });
  });
}

async function namedTurn(named: string, cluster: Cluster, cli: Cli): Promise<StoredTurn> {
  const { session, turn } = await sessionOrTurn(cluster, named, cli.interrupted);
  if (turn) return turn;
  const all = await turnsOf(cluster, session, cli.interrupted);
  const running = all.find(({ metadata: { name } }) => name === session.status?.currentTurn);
  const found = running ?? all.find(({ status }) => !isTerminal(status?.phase)) ?? all.at(-1);
  if (!found) throw refused(`session ${named} has no turn yet; to give it one: ${cli.name} turn ${named}`);
  return found;
}

async function onlyTurn({ api, namespace }: Cluster, cli: Cli): Promise<StoredTurn> {
  const { items } = await api.list(turns, { namespace, signal: cli.interrupted });
  const open = items.filter(({ status }) => !isTerminal(status?.phase));
  const [only, another] = open;
  if (!only)
    throw refused(`no turn of namespace "${namespace}" is running; name one that has ended, to see its result`);
  if (!another) return only;
  const names = open.slice(0, NAMED).map(({ metadata: { name } }) => name);
  const more = open.length > NAMED ? ` and ${open.length - NAMED} more` : '';
  throw refused(`${open.length} turns have not ended, name one: ${names.join(', ')}${more}`);
}
