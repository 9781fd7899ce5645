import { sessions } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { withCluster } from '../cluster.ts';
import { createSession, type SessionFlags, sessionSpec } from '../create.ts';
import { packFiles } from '../files.ts';
import { formatObject, nameOf } from '../print.ts';

export interface CreateFlags extends ClusterFlags, SessionFlags {
  timeout?: string;
  output?: 'json' | 'yaml' | 'name';
}

/** Creates a session that waits for turns. */
export async function create(name: string, words: string[], flags: CreateFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const timeouts = flags.timeout === undefined ? {} : { timeouts: { turn: flags.timeout } };
    const spec = await sessionSpec(name, words, flags, { turns: 'Many', ...timeouts }, cluster, cli);
    const archive = flags.with && (await packFiles(flags.with, { cwd: cli.cwd, all: flags.withAll === true }));
    const session = await createSession({ name, spec, archive }, cluster, cli, async (created) => created);
    if (flags.output === 'json' || flags.output === 'yaml') await cli.out(await formatObject(session, flags.output));
    else {
      const id = nameOf({ kind: sessions.kind, metadata: session.metadata });
      await cli.out(flags.output === 'name' ? `${id}\n` : `${id} created\n`);
    }
    return 0;
  });
}
