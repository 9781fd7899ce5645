import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { homeFolder } from '../../core/embedded.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { findClass } from './allowed.ts';

/** Notes on stderr about what sessions have on the embedded cluster alone. */

/** File in the embedded cluster's folder that says that somebody has read the note. */
const TOLD = 'told-of-real-clusters';

/**
 * Says once for each folder of an embedded cluster what a session of it would lack on a real cluster. Says nothing where it would lack
 * nothing: its files came by `--with`, and its class lets it reach every address.
 */
export async function tellOfRealClusters(
  { class: className, agent }: Pick<SessionSpec, 'class' | 'agent'>,
  cluster: Cluster,
  cli: Cli,
): Promise<void> {
  const told = join(homeFolder(cli.env), TOLD);
  if (existsSync(told) || !(await cluster.embedded())) return;
  const found = await findClass(className, cluster, cli);
  const mode = (found !== 'NotFound' && found?.sandbox?.network?.mode) || 'None';
  const lacks = [
    ...(agent?.command && !agent.files
      ? ['the programs and files of this machine (--with sends those of the agent)']
      : []),
    ...(mode === 'None' ? [`the network, of which class "${className}" allows nothing`] : []),
    ...(mode === 'AllowList' ? [`the addresses that class "${className}" does not list`] : []),
  ];
  if (lacks.length === 0) return;
  // Where KUBECONFIG alone names the cluster, there may be no folder that keeps what was said: better nothing than the same each time.
  const isKept = await writeFile(told, '').then(
    () => true,
    () => false,
  );
  if (!isKept) return;
  cli.say(`note: the cluster is embedded. On a real one this session lacks ${lacks.join(', and ')}.`);
  cli.say('note: docs/to-your-cluster.md has the whole list. This is said once.');
}

/** Says which fields of a manifest that is printed have paths of this machine, which flags make on the embedded cluster. */
export async function tellMachinePaths(
  { agent }: Pick<SessionSpec, 'agent'>,
  cluster: Cluster,
  cli: Cli,
): Promise<void> {
  if (!(await cluster.embedded())) return;
  const fields = [
    ...(agent?.command?.some(isAbsolute) ? ['agent.command'] : []),
    ...(agent?.workingDir === undefined ? [] : ['agent.workingDir']),
  ];
  if (fields.length === 0) return;
  const [verb, noun, them] = fields.length > 1 ? ['have', 'paths', 'them'] : ['has', 'a path', 'it'];
  cli.say(
    `note: ${fields.join(' and ')} ${verb} ${noun} of this machine, because the cluster is embedded. For another cluster name that with --context, or remove ${them}.`,
  );
}
