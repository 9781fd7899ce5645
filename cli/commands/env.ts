import { defined } from '../../core/defined.ts';
import type { EnvironmentSpec } from '../../core/resources/environment.ts';
import { environments, type StoredEnvironment } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { withKubernetes } from '../connect/connect.ts';
import {
  checkedRequirements,
  getEnvironment,
  type RequirementFlags,
  readRequirements,
} from '../create/environments.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { table } from '../print/table.ts';

export interface EnvCreateFlags extends ClusterFlags, RequirementFlags {
  class: string;
  image?: string;
  output?: 'json' | 'yaml' | 'name';
}

export interface EnvGetFlags extends ClusterFlags {
  output?: 'json' | 'yaml' | 'name';
}

/** Creates an Environment. It is built when a session needs it. */
export async function createEnvironment(
  name: string,
  words: string[],
  flags: EnvCreateFlags,
  cli: Cli,
): Promise<number> {
  const ofFile = flags.requirements === undefined ? [] : await readRequirements(flags.requirements, cli);
  const spec: EnvironmentSpec = {
    class: flags.class,
    requirements: [...ofFile, ...checkedRequirements(words)],
    ...defined({ python: flags.python, image: flags.image }),
  };
  return withKubernetes('env', flags, cli, async ({ api, namespace }) => {
    const wanted = { metadata: { name, namespace }, spec } as unknown as StoredEnvironment;
    const created = await api.create(environments, wanted, { signal: cli.interrupted });
    if (flags.output === 'json' || flags.output === 'yaml') await cli.out(await formatObject(created, flags.output));
    else await cli.out(flags.output === 'name' ? `${nameOf(created)}\n` : `${nameOf(created)} created\n`);
    return 0;
  });
}

/** Shows an Environment with its packages. */
export async function showEnvironment(name: string, flags: EnvGetFlags, cli: Cli): Promise<number> {
  return withKubernetes('env', flags, cli, async (cluster) => {
    const found = await getEnvironment(cluster, name, cli.interrupted);
    if (flags.output === 'json' || flags.output === 'yaml') await cli.out(await formatObject(found, flags.output));
    else if (flags.output === 'name') await cli.out(`${nameOf(found)}\n`);
    else await cli.out(described(found));
    return 0;
  });
}

/** Deletes Environments. Sessions that have one keep it. */
export async function deleteEnvironments(names: string[], flags: ClusterFlags, cli: Cli): Promise<number> {
  return withKubernetes('env', flags, cli, async (cluster) => {
    const found = await Promise.all(names.map((name) => getEnvironment(cluster, name, cli.interrupted)));
    for (const { metadata } of found) {
      const ref = { namespace: cluster.namespace, name: metadata.name };
      await cluster.api.delete(environments, ref, { uid: metadata.uid, signal: cli.interrupted });
      await cli.out(`environment.berth.dev/${metadata.name} deleted\n`);
    }
    return 0;
  });
}

function described({ metadata, spec, status = {} }: StoredEnvironment): string {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const facts = [
    ['Name:', metadata.name],
    ['Class:', spec.class],
    ['Requirements:', spec.requirements.join(', ')],
    ['Phase:', status.phase ?? ''],
    ['Reason:', ready ? `${ready.reason}: ${ready.message}` : ''],
    ['Python:', status.pythonVersion ?? ''],
    ['Size:', status.bytes === undefined ? '' : `${status.bytes} bytes`],
  ].filter(([, value]) => value !== '');
  const packages = status.packages?.map(({ name, version }) => ['', name, version]) ?? [];
  const width = Math.max(...facts.map(([label = '']) => label.length)) + 3;
  const lines = facts.map(([label = '', value]) => `${label.padEnd(width)}${value}\n`);
  return lines.join('') + (packages.length > 0 ? `Packages:\n${table(packages)}` : '');
}
