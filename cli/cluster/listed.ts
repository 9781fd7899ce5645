import type { KubeClient } from '../../core/kube/client.ts';
import { collectionPath } from '../../core/kube/paths.ts';
import type { CallOptions, Resource } from '../../core/kube/types.ts';

/** Resource to list, and the part of the cluster that is listed. */
export interface Place {
  resource: Resource;
  scope: { namespace?: string; labelSelector?: string; fieldSelector?: string };
}

/** The API server's answer to a request for a table: its columns are those that kubectl shows. */
export interface Table {
  metadata: { resourceVersion: string };
  columnDefinitions: { name: string; priority: number }[];
  rows: Row[];
}

export interface Row {
  cells: unknown[];
  object: { metadata: { name: string; namespace?: string; resourceVersion: string } };
}

export type ReadTableOptions = CallOptions & { signal: AbortSignal };

export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

export async function readTable(
  { resource, scope }: Place,
  api: KubeClient,
  options: ReadTableOptions,
): Promise<Table> {
  const { namespace, ...query } = scope;
  return (await api.raw('GET', collectionPath(resource, namespace), { ...options, query, accept: TABLE })) as Table;
}
