import { anySignal } from '../../core/abort.ts';
import { defined } from '../../core/defined.ts';
import { ApiError } from '../../core/kube/errors.ts';
import type { KubeObject, Stored, WatchEvent } from '../../core/kube/types.ts';
import { environments, sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_ENVIRONMENT } from '../../core/resources/names.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { type Place, type Row, readTable, TABLE, type Table } from '../cluster/listed.ts';
import { type ClusterUse, FIRST_REQUEST, withCluster, withKubernetes } from '../connect/connect.ts';
import { refused } from '../errors.ts';
import { type Entry, type FollowedList, followList } from '../follow/list.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { TableWriter, table } from '../print/table.ts';

export interface ListFlags extends ClusterFlags {
  allNamespaces?: boolean;
  selector?: string;
  session?: string;
  parent?: string;
  watch?: boolean;
  output?: 'json' | 'yaml' | 'wide' | 'name';
}

type Listed = 'sessions' | 'turns' | 'environments';

/** Length of a watch, after which it ends by itself so that a connection that died unnoticed is detected; seconds. */
const WATCH_SECONDS = 300;

/** Lists sessions, turns or Environments. Sessions that build Environments are left out unless a selector asks for them. */
export async function list(what: Listed, flags: ListFlags, cli: Cli): Promise<number> {
  const { selector } = flags;
  try {
    return await listed(what, flags, cli);
  } catch (error) {
    if (selector === undefined || !(error instanceof ApiError) || error.code !== 400) throw error;
    throw refused(`-l ${selector}: ${error.message}; write it as for kubectl, for example team=blue,!old`);
  }
}

async function listed(what: Listed, flags: ListFlags, cli: Cli): Promise<number> {
  if (flags.parent !== undefined && what !== 'sessions') throw refused('--parent selects sessions; list those');
  if (flags.session !== undefined && what !== 'turns') throw refused('--session selects turns; write: list turns');
  const { output } = flags;
  const isTable = output === undefined || output === 'wide';
  if (flags.watch) {
    return withKubernetes('list --watch', flags, cli, async (cluster) => {
      const place = placeOf(what, flags, cluster);
      return isTable ? watchTable(place, shown(flags), cluster, cli) : watchObjects(place, output, cluster, cli);
    });
  }
  if (isTable)
    return listing(what, flags, cli, (cluster) => printTable(what, flags, cluster, cli), { asksFirst: true });
  return listing(what, flags, cli, async (cluster) => {
    const place = placeOf(what, flags, cluster);
    const { items } = await cluster.api.list(place.resource, { ...place.scope, signal: cli.interrupted });
    if (output === 'name') await cli.out(items.map((object) => `${nameOf(object)}\n`).join(''));
    else await cli.out(await formatObject({ apiVersion: 'v1', kind: 'List', items }, output));
    return 0;
  });
}

/** Calls `use` with the cluster; a list that the HTTP API does not have needs that of a kubeconfig. */
function listing(
  what: Listed,
  flags: ListFlags,
  cli: Cli,
  use: (cluster: Cluster) => Promise<number>,
  how: ClusterUse = {},
): Promise<number> {
  if (what === 'environments') return withKubernetes('env list', flags, cli, use, how);
  if (flags.allNamespaces) return withKubernetes('list --all-namespaces', flags, cli, use, how);
  return withCluster(flags, cli, use, how);
}

/** Prints the table. Most commands that people give do only this, so it makes one request. */
async function printTable(what: Listed, flags: ListFlags, cluster: Cluster, cli: Cli): Promise<number> {
  const place = placeOf(what, flags, cluster);
  const read = (options?: typeof FIRST_REQUEST) => cluster.table(place, { ...options, signal: cli.interrupted });
  // A server that refuses is there: from now on the client may try again.
  const answer = await read(FIRST_REQUEST).catch((error) =>
    error instanceof ApiError ? read() : Promise.reject(error),
  );
  if (answer.rows.length === 0) {
    cli.say(`no ${what}${flags.allNamespaces ? '' : ` in namespace ${cluster.namespace}`}`);
    return 0;
  }
  const show = shown(flags);
  const columns = columnsOf(answer, show);
  const body = answer.rows.map((row) => cellsOf(row, columns, show));
  await cli.out(table([headerOf(answer, columns, show), ...body], { terminal: cli.terminal }));
  return 0;
}

const shown = ({ output, allNamespaces }: ListFlags): Shown => ({
  wide: output === 'wide',
  namespaces: allNamespaces === true,
});

function placeOf(what: Listed, flags: ListFlags, { namespace }: Cluster): Place {
  const { allNamespaces, selector, session, parent } = flags;
  const fields = [
    ...(session === undefined ? [] : [`spec.session=${session}`]),
    ...(parent === undefined ? [] : [`spec.parent.name=${parent}`]),
  ];
  const labelSelector = selector ?? (what === 'sessions' ? `!${LABEL_ENVIRONMENT}` : undefined);
  return {
    resource: { sessions, turns, environments }[what],
    scope: {
      ...(allNamespaces ? {} : { namespace }),
      ...defined({ labelSelector }),
      ...(fields.length > 0 ? { fieldSelector: fields.join() } : {}),
    },
  };
}

/** Prints the rows that are there and, until Ctrl-C, each row that changes, also one that is deleted. */
async function watchTable(place: Place, show: Shown, cluster: KubeCluster, cli: Cli): Promise<number> {
  let definitions: Table | undefined;
  const entryOf = (row: Row): Entry<Row> => {
    const { name, namespace = '', resourceVersion } = row.object.metadata;
    return { key: `${namespace}/${name}`, version: resourceVersion, value: row };
  };
  const followed: FollowedList<Row> = {
    async list() {
      const answer = await readTable(place, cluster.api, { signal: cli.interrupted });
      definitions ??= answer;
      return { entries: answer.rows.map(entryOf), resourceVersion: answer.metadata.resourceVersion };
    },
    async *watch(resourceVersion) {
      for await (const event of watching(place, resourceVersion, cluster, cli, TABLE)) {
        if (event.type !== 'BOOKMARK') yield* (event.object as unknown as Table).rows.map(entryOf);
      }
    },
  };
  let writer: TableWriter | undefined;
  for await (const changed of followList(followed, { clock: cli.clock, signal: endOfWatch(cluster, cli) })) {
    if (!definitions || changed.length === 0) continue;
    const columns = columnsOf(definitions, show);
    const header = headerOf(definitions, columns, show);
    const body = changed.map((row) => cellsOf(row, columns, show));
    const isFirst = writer === undefined;
    writer ??= new TableWriter(header, { terminal: cli.terminal });
    await cli.out(writer.add(isFirst ? [header, ...body] : body));
  }
  return 0;
}

/** Prints the objects that are there and each one that changes: names, or documents in the format. */
async function watchObjects(
  place: Place,
  output: 'json' | 'yaml' | 'name',
  cluster: KubeCluster,
  cli: Cli,
): Promise<number> {
  const entryOf = (object: Stored<KubeObject>): Entry<KubeObject> => {
    const { uid, resourceVersion } = object.metadata;
    return { key: uid, version: resourceVersion, value: object };
  };
  const followed: FollowedList<KubeObject> = {
    async list() {
      const { items, metadata } = await cluster.api.list(place.resource, { ...place.scope, signal: cli.interrupted });
      return { entries: items.map(entryOf), resourceVersion: metadata.resourceVersion };
    },
    async *watch(resourceVersion) {
      for await (const event of watching(place, resourceVersion, cluster, cli)) {
        if (event.type !== 'BOOKMARK') yield entryOf(event.object);
      }
    },
  };
  for await (const changed of followList(followed, { clock: cli.clock, signal: endOfWatch(cluster, cli) })) {
    for (const object of changed) {
      const text = output === 'name' ? `${nameOf(object)}\n` : await formatObject(object, output);
      await cli.out(output === 'yaml' ? `---\n${text}` : text);
    }
  }
  return 0;
}

/** Aborts on Ctrl-C, and once an outage has lasted too long. */
const endOfWatch = ({ outages }: KubeCluster, cli: Cli): AbortSignal => anySignal(cli.interrupted, outages.over);

function watching(
  { resource, scope }: Place,
  resourceVersion: string,
  { api }: KubeCluster,
  cli: Cli,
  accept?: string,
): AsyncIterable<WatchEvent<KubeObject>> {
  // A watch that is silent longer than it was asked to last is dead.
  const silence = AbortSignal.timeout((WATCH_SECONDS + 15) * 1000);
  const signal = anySignal(cli.interrupted, silence);
  const options = { ...scope, resourceVersion, timeoutSeconds: WATCH_SECONDS, signal };
  return api.watch(resource, accept === undefined ? options : { ...options, accept });
}

interface Shown {
  wide: boolean;
  namespaces: boolean;
}

/** Indexes of the columns that are shown. */
const columnsOf = ({ columnDefinitions }: Table, { wide }: Shown): number[] =>
  columnDefinitions.flatMap(({ priority }, index) => (priority === 0 || wide ? [index] : []));

function headerOf({ columnDefinitions }: Table, columns: number[], { namespaces }: Shown): string[] {
  const header = columns.map((index) => columnDefinitions[index]?.name.toUpperCase() ?? '');
  return namespaces ? ['NAMESPACE', ...header] : header;
}

function cellsOf({ cells, object }: Row, columns: number[], { namespaces }: Shown): string[] {
  const shown = columns.map((index) => String(cells[index] ?? ''));
  return namespaces ? [object.metadata.namespace ?? '', ...shown] : shown;
}
