import { randomSuffix } from '../../core/generated-name.ts';
import type { KubeObject } from '../../core/kube/types.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { withCluster } from '../connect/connect.ts';
import { showDryRun } from '../create/dry-run.ts';
import { tellOfRealClusters } from '../create/embedded-notes.ts';
import type { NewTurn } from '../create/new-objects.ts';
import {
  type CreationFlags,
  sessionOfFlags,
  sessionOfManifest,
  turnOfManifest,
  withManifest,
} from '../create/requested.ts';
import { refused } from '../errors.ts';
import { formatObject, nameOf } from '../print/print.ts';

export interface CreateFlags extends CreationFlags, ClusterFlags {}

/** Creates a session that waits for turns, or what a manifest has. */
export async function create(
  named: string | undefined,
  words: string[],
  given: CreateFlags,
  cli: Cli,
): Promise<number> {
  if (named === undefined && given.filename === undefined) {
    throw refused(`there is no name; write: ${cli.name} create NAME -- PROGRAM ARGS…, or give a manifest with -f FILE`);
  }
  const { manifest, flags } = await withManifest(words, named === undefined ? given : { ...given, name: named }, cli);
  if (manifest?.session && flags.timeout !== undefined) {
    throw refused('--timeout and -f are both given; leave --timeout out and set spec.timeouts.turn in the manifest');
  }
  return withCluster(flags, cli, async (cluster) => {
    if (manifest && !manifest.session) {
      const objects = await turnOfManifest(manifest, manifest.turn?.spec.input, named, cluster, cli);
      if (flags.dryRun) return showDryRun(objects, flags.dryRun, flags.output, cluster, cli);
      await print([await cluster.createTurn(objects.turn, objects.existing, cli)], flags, cli);
      return 0;
    }
    const ofManifest = manifest?.session;
    const name = named ?? ofManifest?.name ?? generated(ofManifest?.generateName, cli);
    const timeouts = flags.timeout === undefined ? {} : { timeouts: { turn: flags.timeout } };
    const session = manifest
      ? await sessionOfManifest(name, manifest, cluster, cli)
      : await sessionOfFlags(name, words, flags, { turns: 'Many', ...timeouts }, cluster, cli);
    const turn: NewTurn | undefined = manifest?.turn && {
      ...manifest.turn,
      name: manifest.turn.name ?? firstTurnName(name),
    };
    if (flags.dryRun) return showDryRun({ session, turn }, flags.dryRun, flags.output, cluster, cli);
    await tellOfRealClusters(session.spec, cluster, cli);
    const created = await cluster.createSession(session, turn, cli);
    await print(created.turn ? [created.session, created.turn] : [created.session], flags, cli);
    return 0;
  });
}

function generated(prefix: string | undefined, cli: Cli): string {
  if (prefix === undefined) throw refused('-f: metadata.name is not set; set it, or give a name: create NAME -f FILE');
  return `${prefix}${randomSuffix(cli.random, 5)}`;
}

async function print(created: KubeObject[], { output }: CreateFlags, cli: Cli): Promise<void> {
  const [first] = created;
  if (first && (output === 'json' || output === 'yaml')) await cli.out(await formatObject(first, output));
  else await cli.out(created.map((each) => `${nameOf(each)}${output === 'name' ? '' : ' created'}\n`).join(''));
}
