import { randomSuffix } from '../../core/generated-name.ts';
import { isNotFound } from '../../core/kube/errors.ts';
import type { StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { withCluster } from '../connect/connect.ts';
import { turnSpec } from '../create/create.ts';
import { showDryRun } from '../create/dry-run.ts';
import { tellOfRealClusters } from '../create/embedded-notes.ts';
import type { NewTurn } from '../create/new-objects.ts';
import {
  type CreationFlags,
  inputFor,
  sessionOfFlags,
  sessionOfManifest,
  turnOfManifest,
  withManifest,
} from '../create/requested.ts';
import { refused } from '../errors.ts';
import type { InputFlags } from '../input/input.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { finishTurn } from '../wait/wait.ts';

export interface RunFlags extends CreationFlags, InputFlags, ClusterFlags {
  name?: string;
  attempts?: number;
  quiet?: boolean;
  rm?: boolean;
  detach?: boolean;
}

/** Time to delete the session of `--rm`, milliseconds. */
const DELETE_MS = 10_000;

/** Runs one turn in a session of its own, or the turn of a manifest. */
export async function run(words: string[], given: RunFlags, cli: Cli): Promise<number> {
  if (given.rm && given.detach) throw refused('--rm deletes the session at the end, for which --detach does not wait');
  if (given.output === 'name' && !given.detach && !given.dryRun) {
    throw refused('-o name prints names alone: add --detach or --dry-run, or use -o json');
  }
  const { manifest, flags } = await withManifest(words, given, cli);
  if (flags.rm && manifest && !manifest.session) {
    throw refused('--rm deletes the session that run makes; the manifest has only a Turn of a session that exists');
  }
  if (manifest?.session?.spec.turns === 'Many') {
    throw refused(
      '-f: spec.turns is Many, and run makes a session of one turn; use create -f, or leave spec.turns out',
    );
  }
  const input = await inputFor(manifest, flags, cli);
  return withCluster(flags, cli, async (cluster) => {
    if (manifest && !manifest.session) {
      const objects = await turnOfManifest(manifest, input, flags.name, cluster, cli);
      if (flags.dryRun) return showDryRun(objects, flags.dryRun, flags.output, cluster, cli);
      return finish([], await cluster.createTurn(objects.turn, objects.existing, cli), flags, cluster, cli);
    }
    const { session: ofManifest, turn: turnManifest } = manifest ?? {};
    const name =
      flags.name ?? ofManifest?.name ?? `${ofManifest?.generateName ?? 'run-'}${randomSuffix(cli.random, 8)}`;
    const asked = { input, timeout: flags.timeout, attempts: flags.attempts };
    const turn: NewTurn = {
      name: turnManifest?.name ?? firstTurnName(name),
      metadata: turnManifest?.metadata,
      spec: { ...turnManifest?.spec, ...turnSpec(asked) },
    };
    const session = manifest
      ? await sessionOfManifest(name, manifest, cluster, cli, asked)
      : await sessionOfFlags(name, words, flags, { turns: 'One' }, cluster, cli, asked);
    session.spec.turns = 'One';
    if (flags.dryRun) return showDryRun({ session, turn }, flags.dryRun, flags.output, cluster, cli);
    await tellOfRealClusters(session.spec, cluster, cli);
    const created = await cluster.createSession(session, turn, cli);
    if (!created.turn) throw new TypeError('the session was created without its turn');
    if (!flags.detach) cli.say(`session ${name}`);
    try {
      return await finish([nameOf(created.session)], created.turn, flags, cluster, cli);
    } finally {
      if (flags.rm) await removeSession(created.session, cluster, cli);
    }
  });
}

/** Waits for the turn and prints its output; with `--detach` prints the names of the new objects. */
async function finish(names: string[], turn: StoredTurn, flags: RunFlags, cluster: Cluster, cli: Cli): Promise<number> {
  const { output, detach, rm, quiet } = flags;
  const format = output === 'name' ? undefined : output;
  if (!detach) return finishTurn(turn, cluster, cli, { isKept: !rm, quiet, ...(format ? { output: format } : {}) });
  await cli.out(format ? await formatObject(turn, format) : `${[...names, nameOf(turn)].join('\n')}\n`);
  return 0;
}

/** Deletes the session, also after Ctrl-C. */
async function removeSession(session: StoredSession, cluster: Cluster, cli: Cli): Promise<void> {
  const { name } = session.metadata;
  await cluster.deleteSession(session, { deadlineMs: DELETE_MS }).catch((error) => {
    if (!isNotFound(error)) cli.say(`session ${name} is not deleted; remove it with: ${cli.name} delete ${name}`);
  });
}
