import { turnName } from '../../core/generated-name.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import { mergedAgent } from '../../core/resources/merged-agent.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { checkTurn, findClass } from '../create/allowed.ts';
import { turnSpec } from '../create/create.ts';
import { refused } from '../errors.ts';
import { checked, type InputFlags, readInput } from '../input/input.ts';
import { nameOf } from '../print/print.ts';
import { finishTurn } from '../wait/wait.ts';

export interface TurnFlags extends ClusterFlags, InputFlags {
  name?: string;
  timeout?: string;
  attempts?: number;
  quiet?: boolean;
  wait: boolean;
  output?: 'json' | 'yaml' | 'name';
}

/** Creates a turn of a session and waits for its end. */
export async function turn(sessionName: string, flags: TurnFlags, cli: Cli): Promise<number> {
  if (flags.output === 'name' && flags.wait) {
    throw refused('-o name prints the name alone: add --no-wait, or use -o json');
  }
  const given = await readInput(flags, cli);
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, sessionName, cli.interrupted);
    if (session.spec.turns === 'One') {
      throw refused(`session ${sessionName} takes one turn only, the one it was made with; create one that takes many`);
    }
    if (session.metadata.deletionTimestamp) throw refused(`session ${sessionName} is being deleted`);
    const isCommand = flags.word !== undefined && (await runsCommands(session, cluster, cli));
    const input = isCommand ? checked({ command: flags.word }, 'TEXT') : given;
    await checkTurn({ timeout: flags.timeout, input }, session.spec, cluster, cli);
    const name = flags.name ?? turnName(sessionName, cli);
    const asked = { input, timeout: flags.timeout, attempts: flags.attempts };
    const created = await cluster.createTurn({ name, spec: turnSpec(asked) }, session, cli);
    if (!flags.wait) {
      await cli.out(`${flags.output === 'name' ? nameOf(created) : name}\n`);
      return 0;
    }
    if (session.spec.suspend) {
      cli.say(`session ${sessionName} is held: the turn waits until: ${cli.name} resume ${sessionName}`);
    }
    const { quiet } = flags;
    const output = flags.output === 'name' ? undefined : flags.output;
    return finishTurn(created, cluster, cli, { output, quiet });
  });
}

/** Reports whether the input of the session's turns is a command for a shell. Where the class cannot be read, the session's own words count. */
async function runsCommands({ spec }: StoredSession, cluster: Cluster, cli: Cli): Promise<boolean> {
  const found = await findClass(spec.class, cluster, cli);
  const defaults = found === 'NotFound' ? undefined : found?.agent;
  return mergedAgent(spec.agent ?? {}, defaults ?? {}).driver === 'Shell';
}
