/**
 * Creates that can be repeated. The object remembers the request that created it. Concurrent requests are distinguished by
 * an Event whose name follows from the key: only one of them creates it. A second Event remembers the object's UID, so that a
 * repeat creates no other one when the object was deleted. The TTL of Events in the API server, an hour by default, removes
 * both.
 */
import { createHash } from 'node:crypto';
import { defined } from '../../core/defined.ts';
import { canonicalJson } from '../../core/json.ts';
import type { Event } from '../../core/kube/builtin.ts';
import { ifThere, isAlreadyExists } from '../../core/kube/errors.ts';
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
 * Returns the object, created now or by an earlier request with the same key and body. Rejects with a Problem, Gone where an
 * earlier request has created it and it was deleted, or an ApiError.
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
  const found = items[0] && same(items[0]);
  if (found) return remembered(options, keyHash, found);
  await check();
  const name = given ?? `${prefix}${keyHash.slice(0, 16)}`;
  const isRepeat = await claim(options, { keyHash, bodyHash, name });
  const object = build(name);
  if (isRepeat) {
    const present = await madeBefore(options, keyHash, object.metadata.name);
    const known = present && same(present);
    if (known) return known;
  }
  object.metadata.labels = { ...object.metadata.labels, [LABEL_IDEMPOTENCY_KEY]: keyHash };
  object.metadata.annotations = { ...object.metadata.annotations, [ANNOTATION_IDEMPOTENCY]: bodyHash };
  try {
    const made = await api.create(resource, object);
    return await remembered(options, keyHash, { object: made, created: true });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const known = same(await api.get(resource, { namespace, name: object.metadata.name }));
    if (known) return remembered(options, keyHash, known);
    throw error;
  }
}

const claimName = (keyHash: string) => `idempotency-key-${keyHash}`;
const madeName = (keyHash: string) => `idempotency-made-${keyHash}`;

/**
 * Resolves with `made` once an Event has the UID of its object. Every answer of success comes after that. A repeat does it too,
 * for a request that ended between the two writes.
 */
async function remembered<T extends KubeObject, M extends { object: Stored<T> }>(
  { api, clock, resource: { kind }, namespace }: CreateOnce<T>,
  keyHash: string,
  made: M,
): Promise<M> {
  const { name, uid } = made.object.metadata;
  const event = keyEvent(clock, {
    name: madeName(keyHash),
    object: { kind, namespace, name, uid },
    reason: 'CreatedWithIdempotencyKey',
    message: 'Created through the HTTP API; as long as this event is there, a repeat of the request creates no other.',
  });
  try {
    await api.create(events, event);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  return made;
}

/**
 * Resolves with the object that an earlier request with the key has created; undefined where none has. Rejects with Gone where it
 * was deleted.
 */
async function madeBefore<T extends KubeObject>(
  { api, resource, namespace }: CreateOnce<T>,
  keyHash: string,
  name: string,
): Promise<Stored<T> | undefined> {
  const event = await ifThere(api.get(events, { namespace, name: madeName(keyHash) }));
  if (!event) return undefined;
  const { uid = '' } = event.involvedObject;
  const present = await ifThere(api.get(resource, { namespace, name }));
  if (present?.metadata.uid === uid) return present;
  const now = present
    ? `, and another ${resource.kind}, with the UID ${present.metadata.uid}, has its name now`
    : ' since';
  const text = `${resource.kind} "${name}" with the UID ${uid} was created with this Idempotency-Key, and was deleted${now}. Nothing was created. To create another, use a new key.`;
  throw new Problem('Gone', text);
}

/**
 * Claims the key for this body, so that no other body is used with it at the same time. A request that is refused later
 * keeps its claim, because another request may rely on it by then. Resolves with whether an earlier request has claimed it.
 */
async function claim<T extends KubeObject>(
  { api, clock, resource, namespace }: CreateOnce<T>,
  { keyHash, bodyHash, name }: { keyHash: string; bodyHash: string; name: string },
): Promise<boolean> {
  const event = claimEvent(clock, {
    name: claimName(keyHash),
    object: { kind: resource.kind, namespace, name },
    value: bodyHash,
  });
  try {
    await api.create(events, event);
    return false;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { metadata, involvedObject } = await api.get(events, { namespace, name: event.metadata.name as string });
    if (metadata.annotations?.[ANNOTATION_IDEMPOTENCY] !== bodyHash) throw reused(resource, involvedObject.name ?? '');
    return true;
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
  const eventName = claimName(hash(canonicalJson([scope, key])));
  const event = claimEvent(clock, { name: eventName, object: { kind: 'Session', namespace, name }, value });
  try {
    await api.create(events, event);
    return value;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { metadata } = await api.get(events, { namespace, name: eventName });
    return metadata.annotations?.[ANNOTATION_IDEMPOTENCY] ?? '';
  }
}

interface Named {
  kind: string;
  namespace: string;
  name: string;
  uid?: string;
}

function claimEvent(clock: Clock, { value, ...of }: { name: string; object: Named; value: string }): Event {
  return keyEvent(clock, {
    ...of,
    annotations: { [ANNOTATION_IDEMPOTENCY]: value },
    reason: 'IdempotencyKeyUsed',
    message: 'Asked for through the HTTP API with an Idempotency-Key; the key cannot be used for anything else now.',
  });
}

function keyEvent(
  clock: Clock,
  {
    name,
    object,
    annotations,
    reason,
    message,
  }: {
    name: string;
    object: Named;
    annotations?: Record<string, string>;
    reason: keyof typeof reasons;
    message: string;
  },
): Event {
  const at = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  return {
    metadata: { name, namespace: object.namespace, ...defined({ annotations }) },
    involvedObject: { apiVersion: API_GROUP_VERSION, ...object },
    type: 'Normal',
    reason,
    message,
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
