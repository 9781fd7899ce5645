import type { ApiObject } from '../object.ts';
import type { Column, ResourceType } from '../registry/types.ts';

/** View of an object that a client asks for in its Accept header. */
export type View =
  | { as: 'object' }
  | { as: 'metadata' }
  | { as: 'table'; include: 'None' | 'Metadata' | 'Object'; headers: boolean };

/** Returns the first known form of the Accept header. */
export function viewOf(accept: string | undefined, query: URLSearchParams): View {
  for (const clause of (accept ?? '').split(',')) {
    const parameters = new Map(
      clause
        .split(';')
        .slice(1)
        .map((part) => part.trim().split('=') as [string, string]),
    );
    if (parameters.get('g') !== 'meta.k8s.io') continue;
    const as = parameters.get('as');
    if (as === 'Table') {
      const include = query.get('includeObject');
      return { as: 'table', include: include === 'None' || include === 'Object' ? include : 'Metadata', headers: true };
    }
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') return { as: 'metadata' };
  }
  return { as: 'object' };
}

export const partial = (object: ApiObject) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata: object.metadata,
});

const definition = ({ name, type, format, description, priority }: Column) => ({
  name,
  type,
  format: format ?? '',
  description: description ?? '',
  priority: priority ?? 0,
});

/** Returns the rows of `kubectl get`. */
export function table(
  type: ResourceType,
  objects: ApiObject[],
  metadata: object,
  view: View & { as: 'table' },
  now: number,
): object {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: view.headers ? type.columns.map(definition) : null,
    rows: objects.map((object) => ({
      cells: type.columns.map((column) => column.cell(object, now)),
      ...(view.include === 'None' ? {} : { object: view.include === 'Object' ? object : partial(object) }),
    })),
  };
}

/** Renders one object in the requested view. */
export function render(object: ApiObject, type: ResourceType, view: View, now: number): object {
  if (view.as === 'metadata') return partial(object);
  if (view.as === 'table')
    return table(type, [object], { resourceVersion: object.metadata.resourceVersion }, view, now);
  return object;
}
