/**
 * Creates that can be repeated. The object remembers the request that created it. Concurrent requests are distinguished by
 * an Event whose name follows from the key: only one of them creates it. The TTL of Events in the API server, an hour
 * by default, is longer than any request, and removes the Event.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Event } from '../../core/kube/builtin.ts';
import { isAlreadyExists } from '../../core/kube/errors.ts';
import { events } from '../../core/kube/resources.ts';
import type { KubeApi, KubeObject, ObjectRef, Resource, Stored } from '../../core/kube/types.ts';
import { ANNOTATION_IDEMPOTENCY, API_GROUP_VERSION, LABEL_IDEMPOTENCY_KEY } from '../../core/resources/names.ts';
import type { reasons } from '../../core/resources/reasons.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import { Problem } from '../problems/problems.ts';

export interface CreateOnce<T extends KubeObject> {
  api: Pick<KubeApi, 'create' | 'get' | 'list'>;
  clock: Clock;
  random: Random;
  resource: Resource<T>;
  namespace: string;
  /** Scope of the key: different users and routes have different keys. */
  scope: string | readonly string[];
  key: string | undefined;
  /** Body that the client sent; a repeat must send the same. */
  body: { metadata: { name?: string | undefined } };
  /** Prefix of a name that the server generates. */
  prefix: string;
  /** Returns a name for an object that neither its body nor a key names; default: the prefix and random digits. */
  newName?: () => string;
  /**
   * Rejects where the object may not be created as things are now. Not called for the repeat of a request whose object is
   * there: what was accepted stays accepted.
   */
  check: () => Promise<void>;
  /** Builds the object with this name, without annotations of this file. */
  build: (name: string) => T;
}

/**
 * Returns the object, created now or by an earlier request with the same key and body. Rejects with a Problem or an
 * ApiError.
 */
export async function createOnce<T extends KubeObject>(
  options: CreateOnce<T>,
): Promise<{ object: Stored<T>; created: boolean }> {
  const { api, random, resource, namespace, key, body, prefix, check, build } = options;
  const newName = options.newName ?? (() => `${prefix}${random.bytes(8).toString('hex')}`);
  const given = body.metadata.name;
  if (key === undefined) {
    await check();
    const name = given ?? newName();
    return { object: await api.create(resource, build(name)), created: true };
  }
  const keyHash = hash(canonicalJson([options.scope, resource.plural, key]));
  const bodyHash = hash(canonicalJson([keyHash, body]));
  const same = (object: Stored<T>) => {
    if (object.metadata.annotations?.[ANNOTATION_IDEMPOTENCY] === bodyHash) return { object, created: false };
    if (object.metadata.labels?.[LABEL_IDEMPOTENCY_KEY] !== keyHash) return undefined;
    throw reused(resource, object.metadata.name);
  };
  // An object whose name does not follow from the key may have been created with it, even long ago.
  const labelSelector = `${LABEL_IDEMPOTENCY_KEY}=${keyHash}`;
  const { items } = await api.list(resource, { namespace, labelSelector, limit: 1 });
  const known = items[0] && same(items[0]);
  if (known) return known;
  await check();
  const name = given ?? `${prefix}${keyHash.slice(0, 16)}`;
  await claim(options, { keyHash, bodyHash, name });
  const object = build(name);
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

/**
 * Claims the key for this body, so that no other body is used with it at the same time. A request that is refused later
 * keeps its claim, because another request may rely on it by then.
 */
async function claim<T extends KubeObject>(
  { api, clock, resource, namespace }: CreateOnce<T>,
  { keyHash, bodyHash, name }: { keyHash: string; bodyHash: string; name: string },
): Promise<void> {
  const event = keyEvent(clock, {
    name: `idempotency-key-${keyHash}`,
    kind: resource.kind,
    namespace,
    of: name,
    value: bodyHash,
  });
  try {
    await api.create(events, event);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { metadata, involvedObject } = await api.get(events, { namespace, name: event.metadata.name as string });
    if (metadata.annotations?.[ANNOTATION_IDEMPOTENCY] !== bodyHash) throw reused(resource, involvedObject.name ?? '');
  }
}

/**
 * Binds a key to a value, and resolves with the value that it is bound to: this one, or that of an earlier request. The
 * Event that keeps it goes after its TTL in the cluster.
 */
export async function boundValue(
  { api, clock }: { api: Pick<KubeApi, 'create' | 'get'>; clock: Clock },
  {
    scope,
    key,
    value,
    session,
  }: { scope: readonly string[]; key: string; value: string; session: ObjectRef & { namespace: string } },
): Promise<string> {
  const { namespace, name } = session;
  const eventName = `idempotency-key-${hash(canonicalJson([scope, key]))}`;
  const event = keyEvent(clock, { name: eventName, kind: 'Session', namespace, of: name, value });
  try {
    await api.create(events, event);
    return value;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { metadata } = await api.get(events, { namespace, name: eventName });
    return metadata.annotations?.[ANNOTATION_IDEMPOTENCY] ?? '';
  }
}

function keyEvent(
  clock: Clock,
  { name, kind, namespace, of, value }: { name: string; kind: string; namespace: string; of: string; value: string },
): Event {
  const at = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    metadata: { name, namespace, annotations: { [ANNOTATION_IDEMPOTENCY]: value } },
    involvedObject: { apiVersion: API_GROUP_VERSION, kind, namespace, name: of },
    type: 'Normal',
    reason: 'IdempotencyKeyUsed' satisfies keyof typeof reasons,
    message: 'Asked for through the HTTP API with an Idempotency-Key; the key cannot be used for anything else now.',
    count: 1,
    firstTimestamp: at,
    lastTimestamp: at,
    source: { component: 'berth-api' },
  };
}

function reused({ kind }: Pick<Resource, 'kind'>, name: string): Problem {
  const text = `The Idempotency-Key was used for ${kind} "${name}" with another body. Use a new key.`;
  return new Problem('IdempotencyKeyReused', text);
}

/** Digest that is short enough for a label's value. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
