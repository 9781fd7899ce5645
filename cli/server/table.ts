import type { KubeList, KubeObject, Resource } from '../../core/kube/types.ts';
import type { Table } from '../cluster/listed.ts';

/** Returns the table of objects that the API server would make of them. */
export async function tableOf(resource: Resource, list: KubeList<KubeObject>, now: number): Promise<Table> {
  // The definitions load the schemas, which no other command reads.
  const { kinds } = await import('../../core/resources/crd.ts');
  const { columns } = await import('../../core/table/columns.ts');
  const kind = kinds.find(({ plural }) => plural === resource.plural);
  if (!kind) throw new TypeError(`there is no table of ${resource.plural}`);
  const shown = columns({ additionalPrinterColumns: kind.columns });
  return {
    metadata: { resourceVersion: list.metadata.resourceVersion },
    columnDefinitions: shown.map(({ name, priority = 0 }) => ({ name, priority })),
    rows: list.items.map((object) => ({ cells: shown.map(({ cell }) => cell(object as never, now)), object })),
  };
}
