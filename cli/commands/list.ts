import { collectionPath } from '../../core/kube/paths.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { formatObject, nameOf, table } from '../print.ts';

export interface ListFlags extends ClusterFlags {
  allNamespaces?: boolean;
  selector?: string;
  session?: string;
  output?: 'json' | 'yaml' | 'wide' | 'name';
}

/** The API server's answer to a request for a table: its columns are those that kubectl shows. */
interface Table {
  columnDefinitions: { name: string; priority: number }[];
  rows: { cells: unknown[]; object: { metadata: { name: string; namespace?: string } } }[];
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Lists sessions or turns. */
export async function list(what: 'sessions' | 'turns', flags: ListFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const { output } = flags;
    if (output === 'json' || output === 'yaml' || output === 'name') {
      const found = await items(what, flags, cluster, cli.interrupted);
      if (output === 'name') await cli.out(found.map((object) => `${nameOf(object)}\n`).join(''));
      else await cli.out(await formatObject({ apiVersion: 'v1', kind: 'List', items: found }, output));
      return 0;
    }
    const { namespace, query } = scope(flags, cluster);
    const path = collectionPath(resourceOf(what), namespace);
    const answer = (await cluster.api.raw('GET', path, { query, accept: TABLE, signal: cli.interrupted })) as Table;
    if (answer.rows.length === 0) {
      cli.say(`no ${what}${flags.allNamespaces ? '' : ` in namespace ${cluster.namespace}`}`);
      return 0;
    }
    await cli.out(table(rows(answer, { wide: output === 'wide', namespaces: flags.allNamespaces === true })));
    return 0;
  });
}

const resourceOf = (what: 'sessions' | 'turns') => (what === 'sessions' ? sessions : turns);

function scope({ allNamespaces, selector, session }: ListFlags, { namespace }: Cluster) {
  const fieldSelector = session === undefined ? undefined : `spec.session=${session}`;
  return { namespace: allNamespaces ? undefined : namespace, query: { labelSelector: selector, fieldSelector } };
}

async function items(what: 'sessions' | 'turns', flags: ListFlags, cluster: Cluster, signal: AbortSignal) {
  const { namespace, query } = scope(flags, cluster);
  const { labelSelector, fieldSelector } = query;
  const found = await cluster.api.list(resourceOf(what) as typeof sessions, {
    signal,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  });
  return found.items;
}

function rows({ columnDefinitions, rows }: Table, show: { wide: boolean; namespaces: boolean }): string[][] {
  const columns = columnDefinitions.flatMap(({ priority }, index) => (priority === 0 || show.wide ? [index] : []));
  const header = columns.map((index) => columnDefinitions[index]?.name.toUpperCase() ?? '');
  const body = rows.map(({ cells, object }) => {
    const shown = columns.map((index) => String(cells[index] ?? ''));
    return show.namespaces ? [object.metadata.namespace ?? '', ...shown] : shown;
  });
  return [show.namespaces ? ['NAMESPACE', ...header] : header, ...body];
}
