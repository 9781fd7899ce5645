import { VERSION } from '../../core/program/version.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { ServerVersion } from '../cluster/backend.ts';
import { withCluster } from '../connect/connect.ts';
import { formatObject } from '../print/print.ts';

export interface VersionFlags extends ClusterFlags {
  client?: boolean;
  output?: 'json' | 'yaml';
}

/** Prints the version of this program and, unless `--client`, those in the cluster as far as the caller may see them. */
export async function version(flags: VersionFlags, cli: Cli): Promise<number> {
  const print = (server?: ServerVersion) => {
    const versions = { client: VERSION, ...(server ? { server } : {}) };
    return flags.output ? formatObject(versions, flags.output) : text(versions);
  };
  if (flags.client) {
    await cli.out(await print());
    return 0;
  }
  let server: ServerVersion;
  try {
    server = await withCluster(flags, cli, (cluster) => cluster.versions(cli.interrupted));
  } catch (error) {
    // The client's version is known without a cluster.
    await cli.out(await print());
    throw error;
  }
  await cli.out(await print(server));
  if (!server.api && !server.installations)
    cli.say('the version of Berth in the cluster is unknown: you may not list its Deployments');
  return 0;
}

function text({ client, server }: { client: string; server?: ServerVersion }): string {
  const installed = (server?.installations ?? []).map(({ controller, version, chart }) => {
    const where = [controller, chart && `chart ${chart}`].filter(Boolean).join(', ');
    return ['controller', where ? `${version} (${where})` : version];
  });
  const missing = server?.installations?.length === 0 ? [['controller', 'none is installed']] : [];
  const rows = [
    ['client', client],
    ...installed,
    ...missing,
    ...(server?.api ? [['api', server.api]] : []),
    ...(server?.kubernetes ? [['kubernetes', server.kubernetes]] : []),
  ];
  return rows.map(([name = '', value]) => `${name.padEnd(12)}${value}\n`).join('');
}
