import type { KubeObject } from '../../core/kube/types.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession, getTurn, turnsOf } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { refused } from '../errors.ts';
import { describeSession, describeTurn } from '../print/describe.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { list } from './list.ts';

export interface GetFlags extends ClusterFlags {
  output?: 'json' | 'yaml' | 'name';
}

const KINDS: Record<string, 'session' | 'turn'> = { session: 'session', sess: 'session', turn: 'turn' };
const PLURALS: Record<string, 'sessions' | 'turns'> = { sessions: 'sessions', turns: 'turns' };

/**
 * Shows objects. `NAME` and `session NAME`: a session with its conditions and turns; `turn NAME`: a turn, its output
 * and log.
 */
export async function get(words: string[], flags: GetFlags, cli: Cli): Promise<number> {
  const [first = '', second] = words.flatMap((word) => word.split('/'));
  const plural = second === undefined ? PLURALS[first] : undefined;
  if (plural) return list(plural, flags, cli);
  const kind = second === undefined ? 'session' : (KINDS[first] ?? KINDS[first.replace(/s$/, '')]);
  if (!kind) throw refused(`"${first}" is no kind that get knows; write: ${cli.name} get session NAME, or turn NAME`);
  return withCluster(flags, cli, async (cluster) => {
    await cli.out(await text(kind, second ?? first, flags, cluster, cli));
    return 0;
  });
}

async function text(
  kind: 'session' | 'turn',
  name: string,
  { output }: GetFlags,
  cluster: Cluster,
  cli: Cli,
): Promise<string> {
  const signal = cli.interrupted;
  const now = cli.clock.now();
  if (kind === 'session') {
    const session = await getSession(cluster, name, signal);
    if (output) return formatted(session, output);
    return describeSession(session, await turnsOf(cluster, session, signal), now, cli.terminal);
  }
  const turn = await getTurn(cluster, name, signal);
  const value = await cluster.output(turn, signal);
  if (output)
    return formatted(value === undefined ? turn : { ...turn, status: { ...turn.status, output: value } }, output);
  return describeTurn(turn, { output: value, log: await cluster.log(turn, signal) }, now, cli.terminal);
}

async function formatted(object: KubeObject, output: 'json' | 'yaml' | 'name'): Promise<string> {
  if (output === 'name') return `${nameOf(object)}\n`;
  return formatObject(object, output);
}
