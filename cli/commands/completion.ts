import type { Command } from 'commander';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { environments, sessionclasses, sessions, turns } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { type Candidates, candidates, type Named } from '../completion/candidates.ts';
import { SCRIPTS, type Shell } from '../completion/scripts.ts';
import { withCluster } from '../connect/connect.ts';
import { withSession } from '../enter/open.ts';
import { refused } from '../errors.ts';
import { deadline } from '../wait/deadline.ts';

/** Time after which a word is completed without the names of objects, milliseconds. */
const NAMES_MS = 3_000;
/** Maximum number of objects whose names are offered. */
const MAX_NAMES = 500;

type Names = NonNullable<Candidates['names']>;
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const RESOURCES: Record<Exclude<Named, 'commands'>, Resource> = {
  sessions,
  turns,
  sessionclasses,
  environments,
  namespaces,
};

/** Prints the completion script of a shell. */
export async function completion(shell: Shell, cli: Cli): Promise<number> {
  if (cli.name !== 'berth') throw refused('completion is for the command berth; call it by that name');
  await cli.out(SCRIPTS[shell]);
  return 0;
}

/** Prints the candidates for the last word, in the form that the scripts read. Names that cannot be read are left out. */
export async function complete(program: Command, words: string[], cli: Cli): Promise<number> {
  const found = candidates(program, words);
  const current = words.at(-1) ?? '';
  const all = [...found.words, ...(await namesOf(found, cli))].filter(([word]) => word.startsWith(current));
  const lines = all.map(([word, description]) => (description ? `${word}\t${oneLine(description)}` : word));
  await cli.out([found.files ? 'files' : 'words', ...lines].map((line) => `${line}\n`).join(''));
  return 0;
}

async function namesOf({ names, cluster: flags }: Candidates, cli: Cli): Promise<Candidates['words']> {
  if (!names) return [];
  using limit = deadline(cli, NAMES_MS);
  const bounded = { ...cli, interrupted: limit.signal };
  try {
    const objects = names.of.filter((of) => of !== 'commands');
    if (objects.length === 0) return await commandsOf(names, flags, bounded);
    return await withCluster(flags, bounded, async (cluster) => {
      const lists = await Promise.all(objects.map((of) => list(of, names.session, cluster, limit.signal)));
      return lists.flat().map((object) => [`${names.prefix ?? ''}${object.metadata.name}`, phaseOf(object)]);
    });
  } catch {
    // A shell that completes a word has no place for an error.
    return [];
  }
}

/** Ids of the commands of the session that stands before the word. */
async function commandsOf(
  { session, prefix = '' }: Names,
  flags: ClusterFlags,
  cli: Cli,
): Promise<Candidates['words']> {
  if (session === undefined) return [];
  const { statusOf } = await import('./exec.ts');
  return withSession(session, flags, cli, async ({ inside }) =>
    (await inside.commands()).map((each): [string, string] => [
      prefix + each.id,
      `${statusOf(each)}: ${each.command.join(' ')}`,
    ]),
  );
}

async function list(
  of: keyof typeof RESOURCES,
  session: string | undefined,
  { api, namespace }: Cluster,
  signal: AbortSignal,
) {
  const resource = RESOURCES[of];
  const { items } = await api.list(resource, {
    limit: MAX_NAMES,
    signal,
    ...(resource.namespaced ? { namespace } : {}),
    ...(of === 'turns' && session !== undefined ? { fieldSelector: `spec.session=${session}` } : {}),
  });
  return items;
}

const phaseOf = (object: Stored<KubeObject>) => (object as { status?: { phase?: string } }).status?.phase ?? '';
const oneLine = (text: string) => text.replace(/\s+/g, ' ');
