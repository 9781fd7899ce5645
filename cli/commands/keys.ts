import type { Cli, ClusterFlags } from '../cli.ts';
import { withKubernetes } from '../connect/connect.ts';
import { findInstalled } from '../doctor/installation.ts';
import { failed } from '../errors.ts';
import { type Keys, type KeyUse, keysOf } from '../keys/keys.ts';
import { table } from '../print/table.ts';

export interface KeysFlags extends ClusterFlags {
  output?: 'json';
}

/** Shows the master keys of the installations, what still needs each of them, and whether it may be removed. */
export function keys(flags: KeysFlags, cli: Cli): Promise<number> {
  return withKubernetes('keys', flags, cli, async (cluster) => {
    const installed = await findInstalled(cluster, cli.interrupted);
    if (installed.length === 0) throw failed('no controller was found in the cluster; see berth doctor');
    const found: Keys[] = [];
    for (const each of installed) found.push(await keysOf(each, cluster, cli.interrupted));
    await cli.out(flags.output ? `${JSON.stringify({ installations: found }, null, 2)}\n` : text(found));
    return 0;
  });
}

function text(installations: readonly Keys[]): string {
  const severally = installations.length > 1;
  const header = ['KEY', 'CURRENT', 'STATES', 'ENVIRONMENTS', 'PODS', 'MAY GO'];
  const rows = installations.flatMap(({ namespace, name, keys }) =>
    keys.map((key) => [...(severally ? [`${namespace}/${name}`] : []), ...rowOf(key)]),
  );
  const notes = installations.flatMap(({ notes }) => notes.map((note) => `note: ${note}\n`));
  return `${table([severally ? ['INSTALLATION', ...header] : header, ...rows])}${notes.join('')}`;
}

function rowOf({ id, current, states, environments, pods, mayGo, why }: KeyUse): string[] {
  const counts = [states, environments, pods].map((names) => String(names.length));
  return [id, current ? 'yes' : '', ...counts, `${mayGo ? 'yes' : 'no'}: ${why}`];
}
