import { age } from '../../../../core/table/age.ts';
import { compileJsonPath } from '../../../../core/table/jsonpath.ts';
import { type FieldError, invalid, required } from '../../fields.ts';
import { type ApiObject, equal, timestamp } from '../../object.ts';
import { celRuleErrors } from '../../validation/cel.ts';
import type { Schema } from '../../validation/schema.ts';
import { builtinSchema } from '../builtin/schemas.ts';
import type { ResourceType } from '../types.ts';
import { type Crd, crdStorage } from './types.ts';

/** Resource `customresourcedefinitions` itself. */
export const definitions: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  namespaced: false,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  storage: crdStorage,
  custom: false,
  schema: builtinSchema('V1CustomResourceDefinition'),
  columns: [
    { name: 'Name', type: 'string', format: 'name', cell: (object) => object.metadata.name },
    { name: 'Created At', type: 'date', cell: (object) => object.metadata.creationTimestamp },
    { name: 'Age', type: 'string', priority: 1, cell: (object, now) => age(object.metadata.creationTimestamp, now) },
  ],
  selectable: {},
  status: true,
  generation: true,
  prepareCreate(object, context) {
    setDefaults(object as Crd);
    (object as Crd).status = acceptedStatus(object as Crd, context.now);
  },
  prepareUpdate(object, old, context) {
    setDefaults(object as Crd);
    (object as Crd).status = {
      ...acceptedStatus(object as Crd, context.now),
      conditions: (old as Crd).status?.conditions ?? [],
    };
  },
  validate: definitionErrors,
};

function setDefaults(crd: Crd): void {
  const names = crd.spec?.names;
  if (!names) return;
  names.singular ||= names.kind?.toLowerCase() ?? '';
  names.listKind ||= `${names.kind}List`;
  crd.spec.conversion ??= { strategy: 'None' };
}

/**
 * Returns the status of an accepted definition, which is served at once: its name ensures that its names belong to it
 * alone.
 */
function acceptedStatus(crd: Crd, now: number): NonNullable<Crd['status']> {
  const lastTransitionTime = timestamp(now);
  return {
    conditions: [
      {
        type: 'NamesAccepted',
        status: 'True',
        reason: 'NoConflicts',
        message: 'no conflicts found',
        lastTransitionTime,
      },
      {
        type: 'Established',
        status: 'True',
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
        lastTransitionTime,
      },
    ],
    acceptedNames: crd.spec?.names,
    storedVersions: (crd.spec?.versions ?? []).filter((version) => version.storage).map((version) => version.name),
  };
}

function definitionErrors(object: ApiObject, before: ApiObject | undefined): FieldError[] {
  const { spec, metadata } = object as Crd;
  const errors: FieldError[] = [];
  if (!spec?.group) errors.push(required('spec.group'));
  if (!spec?.names?.plural) errors.push(required('spec.names.plural'));
  if (!spec?.names?.kind) errors.push(required('spec.names.kind'));
  if (spec?.scope !== 'Namespaced' && spec?.scope !== 'Cluster') errors.push(required('spec.scope'));
  if (errors.length > 0) return errors;
  const name = `${spec.names.plural}.${spec.group}`;
  if (metadata.name !== name) {
    errors.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  const versions = spec.versions ?? [];
  if (versions.filter((version) => version.storage).length !== 1) {
    errors.push(invalid('spec.versions', versions, 'must have exactly one version marked as storage version'));
  }
  const old = (before as Crd | undefined)?.spec;
  for (const field of ['group', 'scope'] as const) {
    if (old && !equal(old[field], spec[field]))
      errors.push(invalid(`spec.${field}`, spec[field], 'field is immutable'));
  }
  versions.forEach((version, i) => {
    errors.push(...versionErrors(version, `spec.versions[${i}]`));
  });
  return errors;
}

function versionErrors(version: Crd['spec']['versions'][number], path: string): FieldError[] {
  const schema = version.schema?.openAPIV3Schema;
  const schemaPath = `${path}.schema.openAPIV3Schema`;
  if (!schema) return [required(schemaPath, 'schemas are required')];
  const errors = [...structuralErrors(schema, schemaPath), ...celRuleErrors(schema, schemaPath)];
  const checkPath = (jsonPath: string, at: string) => {
    try {
      compileJsonPath(jsonPath);
    } catch (error) {
      errors.push(invalid(at, jsonPath, (error as Error).message));
    }
  };
  version.additionalPrinterColumns?.forEach((column, i) => {
    checkPath(column.jsonPath, `${path}.additionalPrinterColumns[${i}].jsonPath`);
  });
  version.selectableFields?.forEach((field, i) => {
    checkPath(field.jsonPath, `${path}.selectableFields[${i}].jsonPath`);
  });
  return errors;
}

/** Returns the violations of a structural schema: a type everywhere, no mix of properties and additionalProperties. */
function structuralErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const typeless = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields'];
  if (!schema.type && !typeless) errors.push(required(`${path}.type`, 'must not be empty for specified object fields'));
  if (schema.properties && schema.additionalProperties) {
    errors.push({
      reason: 'FieldValueForbidden',
      field: `${path}.additionalProperties`,
      message: 'Forbidden: additionalProperties and properties are mutual exclusive',
    });
  }
  for (const forbidden of ['$ref', 'definitions', 'dependencies', 'patternProperties', 'additionalItems']) {
    if (Object.hasOwn(schema, forbidden)) {
      errors.push({
        reason: 'FieldValueForbidden',
        field: `${path}.${forbidden}`,
        message: `Forbidden: ${forbidden} is not supported`,
      });
    }
  }
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (path.endsWith('openAPIV3Schema') && key === 'metadata') continue;
    errors.push(...structuralErrors(child, `${path}.properties[${key}]`));
  }
  if (schema.items) errors.push(...structuralErrors(schema.items, `${path}.items`));
  if (typeof schema.additionalProperties === 'object') {
    errors.push(...structuralErrors(schema.additionalProperties, `${path}.additionalProperties`));
  }
  return errors;
}
