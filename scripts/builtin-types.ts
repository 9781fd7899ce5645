import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Kinds of Kubernetes that the embedded API server serves. */
const roots = [
  'CoreV1Event',
  'V1ClusterRole',
  'V1ClusterRoleBinding',
  'V1ConfigMap',
  'V1CustomResourceDefinition',
  'V1Lease',
  'V1Namespace',
  'V1NetworkPolicy',
  'V1Node',
  'V1PersistentVolumeClaim',
  'V1Pod',
  'V1Role',
  'V1RoleBinding',
  'V1Secret',
  'V1ServiceAccount',
  'V1ValidatingAdmissionPolicy',
  'V1ValidatingAdmissionPolicyBinding',
];

/** Types that are described by hand, have any shape, or are recursive. */
const opaque = new Set(['V1ObjectMeta', 'V1JSONSchemaProps', 'V1MicroTime', 'IntOrString']);

interface Attribute {
  baseName: string;
  type: string;
  format: string;
}

/**
 * Returns the field names and types of the built-in kinds, from the models of the Kubernetes client library: by type,
 * field to type. The embedded API server needs them to find unknown fields and wrong types.
 */
export function builtinTypes(): Record<string, Record<string, string>> {
  const client = dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node'));
  const types: Record<string, Record<string, string>> = {};
  const visit = (name: string) => {
    if (types[name] || opaque.has(name)) return;
    const source = readFileSync(join(client, 'gen', 'models', `${name}.js`), 'utf8');
    const attributes = JSON.parse(/attributeTypeMap = (\[.*?\n\]);/s.exec(source)?.[1] ?? '[]') as Attribute[];
    const fields: Record<string, string> = {};
    types[name] = fields;
    for (const { baseName, type, format } of attributes) {
      if (roots.includes(name) && ['apiVersion', 'kind', 'metadata'].includes(baseName)) continue;
      fields[baseName] = format === 'int32' || format === 'int64' ? format : type;
      for (const [reference] of type.matchAll(/\b[A-Z]\w*V1\w+|\bV1\w+/g)) visit(reference);
    }
  };
  for (const root of roots) visit(root);
  return Object.fromEntries(Object.entries(types).sort(([a], [b]) => (a < b ? -1 : 1)));
}
