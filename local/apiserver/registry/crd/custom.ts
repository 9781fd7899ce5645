import { columns } from '../../../../core/table/columns.ts';
import { compileJsonPath } from '../../../../core/table/jsonpath.ts';
import { type ApiObject, at, isObject, type Json } from '../../object.ts';
import { celErrors } from '../../validation/cel.ts';
import { duplicateItems } from '../../validation/lists.ts';
import type { Schema } from '../../validation/schema.ts';
import { type ResourceType, storageName, type Verb } from '../types.ts';
import type { Crd, CrdVersion } from './types.ts';

const allVerbs: Verb[] = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** Returns the resources of a CustomResourceDefinition, one per served version. */
export function customResources(crd: Crd): ResourceType[] {
  return crd.spec.versions.filter((version) => version.served).map((version) => customResource(crd, version));
}

function customResource(crd: Crd, version: CrdVersion): ResourceType {
  const { group, names, scope } = crd.spec;
  const schema: Schema = version.schema?.openAPIV3Schema ?? {};
  const status = version.subresources?.status !== undefined;
  const scale = version.subresources?.scale;
  return {
    group,
    version: version.name,
    plural: names.plural,
    singular: names.singular || names.kind.toLowerCase(),
    kind: names.kind,
    listKind: names.listKind || `${names.kind}List`,
    namespaced: scope === 'Namespaced',
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: allVerbs,
    storage: storageName(group, names.plural),
    custom: true,
    schema: withoutRootMetadata(schema),
    columns: columns(version),
    selectable: Object.fromEntries(
      (version.selectableFields ?? []).map(({ jsonPath }) => {
        const read = compileJsonPath(jsonPath);
        return [jsonPath.replace(/^\./, ''), (object: ApiObject) => text(read(object)[0])];
      }),
    ),
    status,
    ...(scale
      ? {
          scale: {
            specReplicas: steps(scale.specReplicasPath),
            statusReplicas: steps(scale.statusReplicasPath),
            ...(scale.labelSelectorPath ? { labelSelector: steps(scale.labelSelectorPath) } : {}),
          },
        }
      : {}),
    generation: true,
    prepareCreate(object) {
      if (status) delete object.status;
    },
    prepareUpdate(object, old) {
      if (!status) return;
      if (old.status === undefined) delete object.status;
      else object.status = old.status;
    },
    validate(object, old) {
      if (old && duplicateItems(old, schema).length > 0) return [];
      return duplicateItems(object, schema);
    },
    validateLate: (object, old) => celErrors(object, schema, old),
  };
}

const steps = (path: string) => path.replace(/^\./, '').split('.');
const text = (value: unknown) => (value === undefined || value === null ? '' : String(value));

/** Removes the type of metadata, which has rules of its own; limits of the CRD on the name are kept. */
function withoutRootMetadata(schema: Schema): Schema {
  const { apiVersion: _, kind: __, ...properties } = schema.properties ?? {};
  return { ...schema, ...(schema.properties ? { properties } : {}) };
}

/** Returns the Scale object of a custom resource. */
export function scaleOf(object: ApiObject, type: ResourceType): ApiObject {
  const paths = type.scale;
  if (!paths) throw new Error(`${type.plural} has no scale subresource`);
  const number = (path: string[]) => (at(object, ...path) as number | undefined) ?? 0;
  const selector = paths.labelSelector ? (at(object, ...paths.labelSelector) as string | undefined) : undefined;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      ...(uid ? { uid } : {}),
      ...(resourceVersion ? { resourceVersion } : {}),
      ...(creationTimestamp ? { creationTimestamp } : {}),
    },
    spec: { replicas: number(paths.specReplicas) },
    status: { replicas: number(paths.statusReplicas), ...(selector ? { selector } : {}) },
  };
}

/** Writes the replicas of a Scale into a copy of the object. */
export function withReplicas(object: ApiObject, type: ResourceType, replicas: number): void {
  const path = type.scale?.specReplicas ?? [];
  let here: Json = object;
  for (const step of path.slice(0, -1)) {
    const next = here[step];
    if (isObject(next)) here = next;
    else {
      const made: Json = {};
      here[step] = made;
      here = made;
    }
  }
  here[path.at(-1) as string] = replicas;
}
