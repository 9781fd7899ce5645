import { firstTurnName } from '../../core/resources/names.ts';
import { type Cli, type ClusterFlags, randomSuffix } from '../cli.ts';
import { withCluster } from '../cluster.ts';
import { createSession, createTurn, type SessionFlags, sessionSpec } from '../create.ts';
import { packFiles } from '../files.ts';
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
  const input = await readInput(flags, cli, {
    asText: flags.inputAs === 'text',
    stdinTaken: flags.requirements === '-',
  });
  return withCluster(flags, cli, async (cluster) => {
    const name = flags.name ?? `run-${randomSuffix(cli.random, 8)}`;
    const given = { name: firstTurnName(name), input, timeout: flags.timeout, attempts: flags.attempts };
    const spec = await sessionSpec(name, words, flags, { turns: 'One' }, cluster, cli, given);
    const archive = flags.with && (await packFiles(flags.with, { cwd: cli.cwd, all: flags.withAll === true }));
    const turn = await createSession({ name, spec, archive }, cluster, cli, (session) =>
      createTurn(given, session, cluster, cli),
    );
    cli.say(`session ${name}`);
    return finishTurn(turn, cluster, cli, flags.output);
  });
}
