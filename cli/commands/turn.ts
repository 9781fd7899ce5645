import { turnName } from '../../core/generated-name.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { checkTurn } from '../create/allowed.ts';
import { turnSpec } from '../create/create.ts';
import { refused } from '../errors.ts';
import { type InputFlags, readInput } from '../input/input.ts';
import { finishTurn } from '../wait/wait.ts';

export interface TurnFlags extends ClusterFlags, InputFlags {
  name?: string;
  timeout?: string;
  attempts?: number;
  quiet?: boolean;
  wait: boolean;
  output?: 'json' | 'yaml';
}

/** Creates a turn of a session and waits for its end. */
export async function turn(sessionName: string, flags: TurnFlags, cli: Cli): Promise<number> {
  const input = await readInput(flags, cli);
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, sessionName, cli.interrupted);
    if (session.spec.turns === 'One') {
      throw refused(`session ${sessionName} takes one turn only, the one it was made with; create one that takes many`);
    }
    if (session.metadata.deletionTimestamp) throw refused(`session ${sessionName} is being deleted`);
    await checkTurn({ timeout: flags.timeout, input }, session.spec, cluster, cli);
    const name = flags.name ?? turnName(sessionName, cli);
    const asked = { input, timeout: flags.timeout, attempts: flags.attempts };
    const given = await cluster.createTurn({ name, spec: turnSpec(asked) }, session, cli);
    if (!flags.wait) {
      await cli.out(`${name}\n`);
      return 0;
    }
    if (session.spec.suspend) {
      cli.say(`session ${sessionName} is held: the turn waits until: ${cli.name} resume ${sessionName}`);
    }
    const { output, quiet } = flags;
    return finishTurn(given, cluster, cli, { output, quiet });
  });
}
