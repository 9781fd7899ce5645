import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { customResourceDefinition, kinds } from '../../../core/resources/crd.ts';
import { CHECKOUT } from '../../support/pages.ts';

interface Schema {
  description?: string;
  default?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  enum?: string[];
  additionalProperties?: Schema;
}

/** Maximum bytes of the annotation in which `kubectl apply` keeps an object, together with the other annotations. */
const MAX_ANNOTATIONS = 262_144;
/** Described by the API server itself, which refuses a description of `metadata`. */
const SERVERS_OWN = ['apiVersion', 'kind', 'metadata'];

const definitions = kinds.map((kind) => {
  // biome-ignore lint/suspicious/noExplicitAny: a document
  const definition = customResourceDefinition(kind) as any;
  const [version] = definition.spec.versions;
  return { kind: kind.kind, definition, schema: version.schema.openAPIV3Schema as Schema };
});

/** Every field of a kind, by its path as `kubectl explain` takes it. */
function fields({ properties = {}, items, additionalProperties }: Schema, path: string): [string, Schema][] {
  const own = Object.entries(properties).flatMap(([name, field]): [string, Schema][] => [
    [`${path}.${name}`, field],
    ...fields(field, `${path}.${name}`),
  ]);
  return [...own, ...[items, additionalProperties].flatMap((schema) => (schema ? fields(schema, path) : []))];
}

test('every generated manifest says the same to kubectl and Helm, which read YAML 1.1, as to Berth', () => {
  const files = globSync(['manifests/**/*.yaml', 'charts/berth-crds/templates/*.yaml'], { cwd: CHECKOUT });
  assert.ok(files.length > 14);
  for (const file of files) {
    const text = readFileSync(join(CHECKOUT, file), 'utf8');
    const [older, newer] = (['1.1', '1.2'] as const).map((version) =>
      parseAllDocuments(text, { version }).map((document) => document.toJS()),
    );
    assert.deepEqual(older, newer, file);
  }
});

describe('the CustomResourceDefinitions', () => {
  for (const { kind, definition, schema } of definitions) {
    const own = fields(schema, kind).filter(([path]) => !SERVERS_OWN.includes(path.slice(kind.length + 1)));

    test(`${kind}: the description of a list names the values that it may have, which kubectl explain does not show`, () => {
      const silent = own.filter(([, { items, description = '' }]) =>
        items?.enum?.some((value) => !description.includes(value)),
      );
      assert.deepEqual(silent, []);
    });

    test(`${kind}: every field has a description, for kubectl explain`, () => {
      assert.ok(own.length > 5);
      assert.deepEqual(
        own.filter(([, { description }]) => !/\w.*[.…]$/.test(description ?? '')).map(([path]) => path),
        [],
      );
    });

    test(`${kind}: a field that has a default says so`, () => {
      const silent = own.filter(
        ([, field]) => field.default !== undefined && !/\bDefault\b/.test(field.description ?? ''),
      );
      assert.deepEqual(
        silent.map(([path]) => path),
        [],
      );
    });

    test(`${kind}: the definition is small enough for kubectl apply`, () => {
      assert.ok(Buffer.byteLength(JSON.stringify(definition)) < MAX_ANNOTATIONS);
    });
  }
});
