import { createHash } from 'node:crypto';
import type { Catalogue } from '../registry/catalogue.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';
import type { Schema } from '../validation/schema.ts';
import { metadataSchema } from './metadata-schema.ts';
import { openApiV2 } from './openapi-v2.ts';
import { basePath, collectionPath } from './paths.ts';

const INFO = { title: 'Kubernetes', version: 'v1.35.4' };

/** OpenAPI v3 of the served kinds. `kubectl explain` shows it, and `kubectl apply` reads it before it validates. */
export class OpenApi {
  readonly #catalogue: Catalogue;
  #cache = new Map<string, object>();

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
    catalogue.onChange(() => {
      this.#cache = new Map();
    });
  }

  /** Returns `/openapi/v3`: the places of the documents of each group and version. */
  index(): object {
    const paths = new Set(this.#catalogue.all().map(basePath));
    return {
      paths: Object.fromEntries(
        [...paths].sort().map((path) => {
          const hash = createHash('sha256')
            .update(JSON.stringify(this.document(path)))
            .digest('hex')
            .slice(0, 32);
          return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash.toUpperCase()}` }];
        }),
      ),
    };
  }

  /** Returns the document at `api/v1` or `apis/GROUP/VERSION`; undefined when nothing is served there. */
  document(path: string): object | undefined {
    const known = this.#cache.get(path);
    if (known) return known;
    const types = this.#catalogue.all().filter((type) => basePath(type) === path);
    if (types.length === 0) return undefined;
    const document = {
      openapi: '3.0.0',
      info: INFO,
      paths: Object.assign({}, ...types.map(paths)),
      components: { schemas: Object.assign({}, ...types.map((type) => ({ [schemaName(type)]: schemaOf(type) }))) },
    };
    this.#cache.set(path, document);
    return document;
  }

  /** Returns `/openapi/v2` as protobuf. */
  v2(): Buffer {
    return openApiV2(this.#catalogue, INFO.version);
  }
}

const schemaName = (type: ResourceType) =>
  type.group === ''
    ? `io.k8s.api.core.${type.version}.${type.kind}`
    : `${type.group.split('.').reverse().join('.')}.${type.version}.${type.kind}`;

const gvk = ({ group, version, kind }: ResourceType) => ({ group, version, kind });

function schemaOf(type: ResourceType): object {
  const { properties, ...schema }: Schema = type.schema ?? {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
  };
  return {
    ...schema,
    properties: {
      apiVersion: {
        type: 'string',
        description: 'APIVersion defines the versioned schema of this representation of an object.',
      },
      kind: {
        type: 'string',
        description: 'Kind is a string value representing the REST resource this object represents.',
      },
      metadata: metadataSchema,
      ...withoutMetadata(properties),
    },
    'x-kubernetes-group-version-kind': [gvk(type)],
  };
}

function withoutMetadata(properties: Schema['properties']): Schema['properties'] {
  if (!properties) return {};
  const { metadata: _, ...rest } = properties;
  return rest;
}

const query = (name: string) => ({ name, in: 'query', schema: { type: 'string', uniqueItems: true } });
const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation'].map(query);

function paths(type: ResourceType): object {
  const collection = collectionPath(type);
  const reference = { $ref: `#/components/schemas/${schemaName(type)}` };
  const operation = (action: string, parameters: object[] = []) => ({
    operationId: `${action}${type.kind}${groupVersion(type).replaceAll(/\W/g, '')}`,
    parameters,
    responses: { 200: { description: 'OK', content: { 'application/json': { schema: reference } } } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk(type),
  });
  return {
    [collection]: { get: operation('list'), post: operation('post', writeParameters) },
    [`${collection}/{name}`]: {
      get: operation('get'),
      put: operation('put', writeParameters),
      patch: operation('patch', [...writeParameters, query('force')]),
      delete: operation('delete', [query('dryRun')]),
    },
  };
}
