import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

type Schema = { [key: string]: unknown };

interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}

const DEFINITION = '#/definitions/';
/** Definitions that Kubernetes describes by a format: what they take in JSON. */
const TYPES: Record<string, string[]> = {
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': ['integer', 'string'],
  'io.k8s.apimachinery.pkg.api.resource.Quantity': ['string', 'number'],
};

/** Returns a schema in which unknown fields are refused; `refs` gets the names of the definitions that it refers to. */
function strict(schema: unknown, refs: Set<string>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => strict(one, refs));
  if (typeof schema !== 'object' || schema === null) return schema;
  const out: Schema = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$ref') refs.add(String(value).slice(DEFINITION.length));
    if (key === 'properties') {
      const fields = Object.entries(value as Schema);
      out[key] = Object.fromEntries(fields.map(([name, field]) => [name, strict(field, refs)]));
    } else if (key !== 'description' && key !== 'format' && !key.startsWith('x-kubernetes-'))
      out[key] = strict(value, refs);
  }
  const { properties, additionalProperties, ...marks } = schema as Schema;
  if (properties && !additionalProperties && !marks['x-kubernetes-preserve-unknown-fields']) {
    out.additionalProperties = false;
  }
  return out;
}

/** Name of a schema's file for kubeconform's `-schema-location`. */
export const LOCATION = '{{ .Group }}-{{ .ResourceAPIVersion }}-{{ .ResourceKind }}.json';
const fileOf = ({ group, version, kind }: GroupVersionKind) =>
  `${group || version}-${version}-${kind.toLowerCase()}.json`;

/** Writes a JSON Schema for each kind of Kubernetes into a folder. `swagger`: Kubernetes' own OpenAPI document. */
export async function writeBuiltin(swagger: string, folder: string): Promise<void> {
  const { definitions } = JSON.parse(await readFile(swagger, 'utf8')) as { definitions: Record<string, Schema> };
  for (const [name, definition] of Object.entries(definitions)) {
    const [of, ...more] = (definition['x-kubernetes-group-version-kind'] ?? []) as GroupVersionKind[];
    // Options of requests, such as DeleteOptions, are of every group.
    if (!of || more.length > 0) continue;
    const needed: Record<string, unknown> = {};
    const add = (what: string) => {
      if (what in needed) return;
      const refs = new Set<string>();
      needed[what] = TYPES[what] ? { type: TYPES[what] } : strict(definitions[what], refs);
      for (const ref of refs) add(ref);
    };
    add(name);
    await writeFile(join(folder, fileOf(of)), JSON.stringify({ $ref: `${DEFINITION}${name}`, definitions: needed }));
  }
}

/** Writes a JSON Schema for each CustomResourceDefinition of a folder with manifests. `metadata` is checked for its type. */
export async function writeCustom(manifests: string, folder: string): Promise<void> {
  for (const file of await readdir(manifests)) {
    if (!file.endsWith('.yaml')) continue;
    const { kind, spec } = parse(await readFile(join(manifests, file), 'utf8'));
    if (kind !== 'CustomResourceDefinition') continue;
    const of = { group: spec.group, version: spec.versions[0].name, kind: spec.names.kind };
    await writeFile(
      join(folder, fileOf(of)),
      JSON.stringify(strict(spec.versions[0].schema.openAPIV3Schema, new Set())),
    );
  }
}
