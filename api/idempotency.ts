/** Creates that can be repeated: the object itself remembers the request that made it. */
import { createHash } from 'node:crypto';
import { isAlreadyExists } from '../core/kube/errors.ts';
import type { KubeApi, KubeObject, Resource, Stored } from '../core/kube/types.ts';
import { ANNOTATION_IDEMPOTENCY, LABEL_IDEMPOTENCY_KEY } from '../core/resources/names.ts';
import type { Random } from '../core/runtime.ts';
import { canonicalJson } from './json.ts';
import { Problem } from './problems.ts';

export interface CreateOnce<T extends KubeObject> {
  api: Pick<KubeApi, 'create' | 'get' | 'list'>;
  random: Random;
  resource: Resource<T>;
  namespace: string;
  /** Keys of different users and routes are different keys. */
  scope: string;
  key: string | undefined;
  /** What the client sent: a repeat sends the same. */
  body: { metadata: { name?: string | undefined } };
  /** Put before a name that the server gives. */
  prefix: string;
  /** The object for a name, without annotations of this file. */
  build: (name: string) => T;
}

/** The object, made now or by an earlier request with the same key and body. Rejects with a Problem or an ApiError. */
export async function createOnce<T extends KubeObject>(
  options: CreateOnce<T>,
): Promise<{ object: Stored<T>; created: boolean }> {
  const { api, random, resource, namespace, key, body, prefix, build } = options;
  const given = body.metadata.name;
  if (key === undefined) {
    const name = given ?? `${prefix}${random.bytes(8).toString('hex')}`;
    return { object: await api.create(resource, build(name)), created: true };
  }
  const keyHash = hash(canonicalJson([options.scope, resource.plural, key]));
  const bodyHash = hash(canonicalJson([keyHash, body]));
  const same = (object: Stored<T>) => {
    if (object.metadata.annotations?.[ANNOTATION_IDEMPOTENCY] === bodyHash) return { object, created: false };
    if (object.metadata.labels?.[LABEL_IDEMPOTENCY_KEY] !== keyHash) return undefined;
    const text = `The Idempotency-Key was used for ${resource.kind} "${object.metadata.name}" with another body. Use a new key.`;
    throw new Problem('IdempotencyKeyReused', text);
  };
  if (given !== undefined) {
    // The name does not follow from the key: the key may have been used for another.
    const labelSelector = `${LABEL_IDEMPOTENCY_KEY}=${keyHash}`;
    const { items } = await api.list(resource, { namespace, labelSelector, limit: 1 });
    const known = items[0] && same(items[0]);
    if (known) return known;
  }
  const object = build(given ?? `${prefix}${keyHash.slice(0, 16)}`);
  object.metadata.labels = { ...object.metadata.labels, [LABEL_IDEMPOTENCY_KEY]: keyHash };
  object.metadata.annotations = { ...object.metadata.annotations, [ANNOTATION_IDEMPOTENCY]: bodyHash };
  try {
    return { object: await api.create(resource, object), created: true };
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const known = same(await api.get(resource, { namespace, name: object.metadata.name }));
    if (known) return known;
    throw error;
  }
}

/** Short enough for a label's value. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
