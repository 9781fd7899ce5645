import { resolve } from 'node:path';
import { shownArtifact } from '../../core/artifacts/shown.ts';
import type { StoredTurn } from '../../core/resources/kinds.ts';
import type { Artifact } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { sessionOrTurn, turnsOf } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { refused } from '../errors.ts';
import { DownloadFolder } from '../files/download-folder.ts';
import { filesText, formatObject } from '../print/print.ts';
import { printableName } from '../print/printable.ts';
import { table } from '../print/table.ts';

export interface ArtifactsListFlags extends ClusterFlags {
  turn?: string;
  output?: 'json' | 'yaml' | 'name';
}

export interface ArtifactsDownloadFlags extends ClusterFlags {
  turn?: string;
  dir: string;
  overwrite?: boolean;
}

/** Number of names that an error lists. */
const NAMED = 10;

/** Lists the artifacts of the named turn, or of all turns of the named session in their order. */
export async function listArtifacts(named: string, flags: ArtifactsListFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const { turns } = await turnsNamed(named, flags.turn, cluster, cli);
    const items = turns.flatMap(({ metadata, status }) =>
      (status?.artifacts ?? []).map((artifact) => ({ turn: metadata.name, ...shownArtifact(artifact) })),
    );
    if (flags.output === 'name') await cli.out(items.map(({ name }) => `${printableName(name)}\n`).join(''));
    else if (flags.output) await cli.out(await formatObject({ items }, flags.output));
    else if (items.length === 0) cli.say(`${named} has no artifacts`);
    else {
      const rows = items.map(({ turn, name, bytes, digest }) => [
        turn,
        printableName(name),
        String(bytes),
        digest.slice(0, 12),
      ]);
      await cli.out(table([['TURN', 'NAME', 'BYTES', 'SHA256'], ...rows], { terminal: cli.terminal }));
    }
    for (const turn of turns) sayLeftOut(turn, cli);
    return 0;
  });
}

/** Writes artifacts into a folder and prints their paths: of the named turn, or of the newest one that has some. */
export async function downloadArtifacts(
  named: string,
  names: readonly string[],
  flags: ArtifactsDownloadFlags,
  cli: Cli,
): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const { turns, only } = await turnsNamed(named, flags.turn, cluster, cli);
    const turn = only ?? turns.findLast(({ status }) => status?.artifacts);
    if (!turn?.status?.artifacts) throw refused(noArtifacts(named, only));
    const artifacts = chosen(turn, turn.status.artifacts, names);
    const target = new DownloadFolder({
      folder: resolve(cli.cwd, flags.dir),
      overwrite: flags.overwrite ?? false,
      random: cli.random,
    });
    const missing = await target.missing(artifacts);
    for (const artifact of missing) {
      cli.interrupted.throwIfAborted();
      const content = await cluster.artifact(turn, artifact, cli.interrupted);
      await cli.out(`${printableName(await target.write(artifact, content, cli.interrupted))}\n`);
    }
    const there = artifacts.length - missing.length;
    const already = there > 0 ? `, ${there} already there` : '';
    cli.say(`turn ${turn.metadata.name}: ${filesText(missing.length)} written${already}`);
    sayLeftOut(turn, cli);
    return 0;
  });
}

/** The turns that a name and the flag --turn stand for; `only` where they name a single one. */
async function turnsNamed(
  named: string,
  flag: string | undefined,
  cluster: Cluster,
  cli: Cli,
): Promise<{ turns: StoredTurn[]; only?: StoredTurn }> {
  const { session, turn } = await sessionOrTurn(cluster, named, cli.interrupted);
  if (turn && flag !== undefined && flag !== turn.metadata.name) {
    throw refused(`${named} and --turn ${flag} name two turns; leave one of them out`);
  }
  const wanted = flag ?? turn?.metadata.name;
  const own = await turnsOf(cluster, session, cli.interrupted);
  if (wanted === undefined) return { turns: own };
  const only = own.find(({ metadata }) => metadata.name === wanted);
  if (!only) throw refused(`session ${session.metadata.name} has no turn "${wanted}"`);
  return { turns: [only], only };
}

function noArtifacts(named: string, turn: StoredTurn | undefined): string {
  if (!turn) return `no turn of ${named} has left artifacts`;
  const { phase = 'Queued' } = turn.status ?? {};
  const { name } = turn.metadata;
  return isTerminal(phase)
    ? `turn ${name} has left no artifacts`
    : `turn ${name} is ${phase}; its artifacts come with its end`;
}

/** The artifacts that the names stand for: a name itself, or a folder above it. Throws a CliError for one without any. */
function chosen({ metadata }: StoredTurn, artifacts: readonly Artifact[], names: readonly string[]): Artifact[] {
  if (names.length === 0) return [...artifacts];
  const found = new Set<Artifact>();
  for (const name of names) {
    const folder = `${name.replace(/\/+$/, '')}/`;
    const matches = artifacts.filter((one) => one.name === name || one.name.startsWith(folder));
    if (matches.length === 0) {
      const some = artifacts.slice(0, NAMED).map((one) => printableName(one.name));
      const more = artifacts.length > NAMED ? ` and ${artifacts.length - NAMED} more` : '';
      throw refused(`turn ${metadata.name} has no artifact "${printableName(name)}"; it has ${some.join(', ')}${more}`);
    }
    for (const match of matches) found.add(match);
  }
  return artifacts.filter((one) => found.has(one));
}

function sayLeftOut({ metadata, status }: StoredTurn, cli: Cli): void {
  const { count, entries } = status?.artifactsLeftOut ?? {};
  if (!count || !entries) return;
  const named = entries.map(({ name, reason }) => `${printableName(name)} (${reason})`);
  const more = count > named.length ? [`${count - named.length} more`] : [];
  cli.say(`turn ${metadata.name}: left out ${[...named, ...more].join(', ')}`);
}
