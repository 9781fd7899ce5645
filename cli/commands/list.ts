import { collectionPath } from '../../core/kube/paths.ts';
import { environments, sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_ENVIRONMENT } from '../../core/resources/names.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { refused } from '../errors.ts';
import { formatObject, nameOf, table } from '../print.ts';

export interface ListFlags extends ClusterFlags {
  allNamespaces?: boolean;
  selector?: string;
  session?: string;
  parent?: string;
  output?: 'json' | 'yaml' | 'wide' | 'name';
}

type Listed = 'sessions' | 'turns' | 'environments';

/** The API server's answer to a request for a table: its columns are those that kubectl shows. */
interface Table {
  columnDefinitions: { name: string; priority: number }[];
  rows: { cells: unknown[]; object: { metadata: { name: string; namespace?: string } } }[];
}

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Lists sessions, turns or Environments. Sessions that build Environments are left out unless a selector asks for them. */
export async function list(what: Listed, flags: ListFlags, cli: Cli): Promise<number> {
  if (flags.parent !== undefined && what !== 'sessions') throw refused('--parent selects sessions; list those');
  return withCluster(flags, cli, async (cluster) => {
    const { output } = flags;
    if (output === 'json' || output === 'yaml' || output === 'name') {
      const found = await items(what, flags, cluster, cli.interrupted);
      if (output === 'name') await cli.out(found.map((object) => `${nameOf(object)}\n`).join(''));
      else await cli.out(await formatObject({ apiVersion: 'v1', kind: 'List', items: found }, output));
      return 0;
    }
    const { namespace, query } = scope(what, flags, cluster);
    const path = collectionPath(resourceOf(what) as typeof sessions, namespace);
    const answer = (await cluster.api.raw('GET', path, { query, accept: TABLE, signal: cli.interrupted })) as Table;
    if (answer.rows.length === 0) {
      cli.say(`no ${what}${flags.allNamespaces ? '' : ` in namespace ${cluster.namespace}`}`);
      return 0;
    }
    await cli.out(table(rows(answer, { wide: output === 'wide', namespaces: flags.allNamespaces === true })));
    return 0;
  });
}

const resourceOf = (what: Listed) => ({ sessions, turns, environments })[what];

function scope(what: Listed, { allNamespaces, selector, session, parent }: ListFlags, { namespace }: Cluster) {
  const fields = [
    ...(session === undefined ? [] : [`spec.session=${session}`]),
    ...(parent === undefined ? [] : [`spec.parent.name=${parent}`]),
  ];
  const fieldSelector = fields.length > 0 ? fields.join() : undefined;
  const labelSelector = selector ?? (what === 'sessions' ? `!${LABEL_ENVIRONMENT}` : undefined);
  return { namespace: allNamespaces ? undefined : namespace, query: { labelSelector, fieldSelector } };
}

async function items(what: Listed, flags: ListFlags, cluster: Cluster, signal: AbortSignal) {
  const { namespace, query } = scope(what, flags, cluster);
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
