import type { Cli, ClusterFlags } from '../cli.ts';
import { withKubernetes } from '../connect/connect.ts';
import { EXIT } from '../errors.ts';
import { table } from '../print/table.ts';
import { type SecretFacts, type Uses, usesOf } from '../secrets/uses.ts';

export interface SecretFlags extends ClusterFlags {
  allNamespaces?: boolean;
  output?: 'json' | 'name';
}

/** Says which sessions and pools use a Secret, and which of them have a pod from before its last change. */
export async function secret(name: string, flags: SecretFlags, cli: Cli): Promise<number> {
  return withKubernetes('secret', flags, cli, async (cluster) => {
    const allNamespaces = flags.allNamespaces === true;
    const found = await usesOf(name, { allNamespaces }, cluster, cli);
    if (flags.output === 'json') {
      await cli.out(`${JSON.stringify({ secret: name, ...found }, null, 2)}\n`);
      return EXIT.ok;
    }
    for (const facts of found.secrets) cli.say(factsText(name, facts));
    const of = allNamespaces ? '' : ` of namespace ${cluster.namespace}`;
    if (found.uses.length === 0) cli.say(`no session and no pool${of} uses the Secret ${name}`);
    else if (flags.output === 'name') await cli.out(namesText(found));
    else await cli.out(table(rows(found, allNamespaces), { terminal: cli.terminal }));
    return EXIT.ok;
  });
}

function factsText(name: string, { namespace, changedAt, isMissing }: SecretFacts): string {
  if (isMissing) return `there is no Secret ${namespace}/${name}`;
  if (changedAt) return `Secret ${namespace}/${name} was changed last at ${changedAt}`;
  return `you may not get the Secret ${namespace}/${name}: when it was changed is unknown`;
}

const namesText = ({ uses }: Uses): string =>
  uses.map(({ kind, name }) => `${kind.toLowerCase()}.berth.dev/${name}\n`).join('');

const POD: Record<Uses['uses'][number]['pod'], string> = {
  Before: 'before the change',
  After: 'after it',
  None: 'none',
  Unknown: 'unknown',
};

function rows({ uses }: Uses, withNamespace: boolean): string[][] {
  const row = (namespace: string, ...cells: string[]) => (withNamespace ? [namespace, ...cells] : cells);
  return [
    row('NAMESPACE', 'NAME', 'POD', 'USED BY'),
    ...uses.map(({ kind, namespace, name, by, pod }) =>
      row(namespace, kind === 'Session' ? name : `sessionpool/${name}`, POD[pod], by.join(', ')),
    ),
  ];
}
