import { type StoredTurn, sessions } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import { type Cli, type ClusterFlags, randomSuffix } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { createSession, createTurn, type GivenTurn, type SessionFlags, sessionSpec } from '../create.ts';
import { type InputFlags, readInput } from '../input.ts';
import { finishTurn } from '../wait.ts';

export interface RunFlags extends ClusterFlags, SessionFlags, InputFlags {
  name?: string;
  timeout?: string;
  attempts?: number;
  output?: 'json' | 'yaml';
}

/** Runs one turn in a session of its own. */
export async function run(words: string[], flags: RunFlags, cli: Cli): Promise<number> {
  const input = await readInput(flags, cli, flags.inputAs === 'text');
  return withCluster(flags, cli, async (cluster) => {
    const spec = await sessionSpec(words, flags, { turns: 'One' }, cluster, cli);
    const name = flags.name ?? `run-${randomSuffix(cli.random, 8)}`;
    const turn = await begin({ name, spec, input, timeout: flags.timeout, attempts: flags.attempts }, cluster, cli);
    cli.say(`session ${name}`);
    return finishTurn(turn, cluster, cli, flags.output);
  });
}

/** Creates both session and turn, or neither. */
async function begin(
  { name, spec, ...turn }: GivenTurn & { spec: SessionSpec },
  cluster: Cluster,
  cli: Cli,
): Promise<StoredTurn> {
  const session = await createSession(name, spec, cluster, cli);
  try {
    return await createTurn({ name: firstTurnName(name), ...turn }, session, cluster, cli);
  } catch (error) {
    const { namespace } = cluster;
    await cluster.api
      .delete(sessions, { namespace, name }, { uid: session.metadata.uid, deadlineMs: 5_000 })
      .catch(() => {
        cli.say(`session ${name} is left without a turn; remove it with: ${cli.name} delete ${name}`);
      });
    throw error;
  }
}
