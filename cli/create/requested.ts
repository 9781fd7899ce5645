import { defined } from '../../core/defined.ts';
import { turnName, turnSuffix } from '../../core/generated-name.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession } from '../cluster/stored.ts';
import { refused } from '../errors.ts';
import { packFiles } from '../files/agent-files.ts';
import { type InputFlags, readInput } from '../input/input.ts';
import { checkAllowed, checkTurn } from './allowed.ts';
import { tellMachinePaths } from './embedded-notes.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { inputOf, type ManifestFlags, refuseConflicts } from './manifest-flags.ts';
import type { NewSession, NewTurn } from './new-objects.ts';
import { type SessionFlags, sessionSpec } from './session-spec.ts';

/** The session and the turn that flags or a manifest ask for, checked as far as can be known before they are created. */

export interface CreationFlags extends ClusterFlags, SessionFlags, ManifestFlags {
  timeout?: string;
  dryRun?: 'client' | 'server';
  output?: 'json' | 'yaml' | 'name';
}

/** Settings of the turn of a new session. */
interface Asked {
  input: unknown;
  timeout?: string | undefined;
}

/** Reads the manifest of `-f` and refuses flags that say the same; the flags come back with the manifest's namespace. */
export async function withManifest<F extends CreationFlags & InputFlags & { name?: string }>(
  words: string[],
  flags: F,
  cli: Cli,
): Promise<{ manifest?: Manifest; flags: F }> {
  if (flags.filename === undefined) return { flags };
  const manifest = await readManifest(flags.filename, cli);
  refuseConflicts(words, flags, manifest);
  const { namespace } = manifest;
  return { manifest, flags: namespace === undefined ? flags : { ...flags, namespace } };
}

/** Reads the turn's input: that of the manifest, of a flag, or of stdin where nothing else reads it. */
export async function inputFor(
  manifest: Manifest | undefined,
  flags: CreationFlags & InputFlags,
  cli: Cli,
): Promise<unknown> {
  const own = manifest && inputOf(manifest);
  if (own !== undefined) return own;
  const stdinTaken = flags.requirements === '-' || flags.filename === '-';
  return readInput(flags, cli, { asText: flags.inputAs === 'text', stdinTaken });
}

/** Returns the session of the flags. `first`: the turn that it is made for. */
export async function sessionOfFlags(
  name: string,
  words: string[],
  flags: CreationFlags,
  own: Pick<SessionSpec, 'turns' | 'timeouts'>,
  cluster: Cluster,
  cli: Cli,
  first?: Asked,
): Promise<NewSession> {
  const wanted = await sessionSpec(name, words, flags, own, cluster, cli, first);
  const isPrinted = flags.dryRun !== undefined && (flags.output === 'json' || flags.output === 'yaml');
  if (isPrinted) await tellMachinePaths(wanted.spec, cluster, cli);
  const archive = flags.with && (await packFiles(flags.with, { cwd: cli.cwd, all: flags.withAll === true }));
  return { name, ...wanted, ...(flags.label && { metadata: { labels: flags.label } }), archive };
}

/** Returns the session of the manifest. Its input is left to the turn that is created beside it, if there is one. */
export async function sessionOfManifest(
  name: string,
  { session, turn }: Manifest,
  cluster: Cluster,
  cli: Cli,
  first?: Asked,
): Promise<NewSession> {
  if (!session) throw new TypeError('the manifest has no Session');
  const { input, ...rest } = session.spec;
  const spec = first || input === undefined ? rest : { ...rest, input };
  await checkAllowed(spec, cluster, cli);
  if (first) await checkTurn({ ...first, timeout: first.timeout ?? turn?.spec.timeout }, spec, cluster, cli);
  return { name, metadata: session.metadata, spec };
}

/** Returns the Turn of a manifest without a Session, and its session. */
export async function turnOfManifest(
  manifest: Manifest,
  input: unknown,
  named: string | undefined,
  cluster: Cluster,
  cli: Cli,
) {
  if (!manifest.turn) throw new TypeError('the manifest has no Turn');
  const { spec, metadata, name, generateName } = manifest.turn;
  const existing = await getSession(cluster, spec.session, cli.interrupted);
  if (existing.spec.turns === 'One') {
    throw refused(
      `-f: session ${spec.session} takes one turn only, the one it was made with; name one that takes many`,
    );
  }
  await checkTurn({ input, timeout: spec.timeout }, existing.spec, cluster, cli);
  const generated = generateName === undefined ? turnName(spec.session, cli) : `${generateName}${turnSuffix(cli)}`;
  const own = named ?? name ?? generated;
  const turn: NewTurn = { name: own, metadata, spec: { ...spec, ...defined({ input }) } };
  return { turn, existing };
}
