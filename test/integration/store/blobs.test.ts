import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeApi, Resource } from '../../../core/kube/types.ts';
import { blobs, sessions } from '../../../core/resources/kinds.ts';
import { BLOB_CHUNK_BYTES } from '../../../core/resources/limits.ts';
import { blobName } from '../../../core/resources/names.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import { readStored } from '../../../core/store/read.ts';
import {
  StoreConflictError,
  StoreFullError,
  type StoreKey,
  StoreMissingError,
  type StoreOwner,
} from '../../../core/store/store.ts';
import { systemClock } from '../../../core/system.ts';
import { type BerthServer, berthServer } from '../../support/berth-server.ts';
import { eventually } from '../../support/eventually.ts';

describe('the store of Blobs', () => {
  const signal = new AbortController().signal;
  let berth: BerthServer;
  let store: BlobStore;
  let owner: StoreOwner;
  let key: StoreKey;
  let count = 0;

  beforeAll(async () => {
    berth = await berthServer();
  });
  afterAll(() => berth.close());
  beforeEach(async () => {
    count += 1;
    const made = await berth.admin.create(sessions, {
      metadata: { name: `s${count}`, namespace: 'test' },
      spec: {} as never,
    });
    owner = { name: made.metadata.name, uid: made.metadata.uid };
    key = { namespace: 'test', sessionUID: owner.uid, incarnation: 1, seq: 7, kind: 'State' };
    store = storeOf();
  });

  const storeOf = (ceilingBytes = 256 * 1024 * 1024, api: KubeApi = berth.admin) =>
    new BlobStore({ api, clock: systemClock, ceilingBytes });
  const three = () => randomBytes(2 * BLOB_CHUNK_BYTES + 100);
  const stored = async () => {
    const { items } = await berth.admin.list(blobs, { namespace: 'test' });
    return items.filter(({ spec }) => spec.sessionUID === owner.uid);
  };

  test('stored content can be read with nothing but the right to get blobs', async () => {
    const data = three();
    await store.put(key, data, owner, signal);
    assert.equal((await stored()).length, 3);
    assert.deepEqual(await store.get(key, signal), data);
    const rbac = (plural: string, kind: string): Resource => ({
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      plural,
      kind,
      namespaced: true,
    });
    await berth.admin.create(rbac('roles', 'Role'), {
      metadata: { name: 'reader', namespace: 'test' },
      rules: [{ apiGroups: ['berth.dev'], resources: ['blobs'], verbs: ['get'] }],
    } as never);
    await berth.admin.create(rbac('rolebindings', 'RoleBinding'), {
      metadata: { name: 'reader', namespace: 'test' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
    } as never);
    assert.deepEqual(await readStored(berth.as({ username: 'reader' }), key), data);
    await assert.rejects(
      readStored(berth.as({ username: 'stranger' }), key),
      (error) => error instanceof ApiError && error.code === 403,
    );
  });

  test('putting the same again changes nothing; other content under the key is refused', async () => {
    const data = three();
    await store.put(key, data, owner, signal);
    const before = (await stored()).map(({ metadata }) => metadata.resourceVersion);
    await store.put(key, data, owner, signal);
    assert.deepEqual(
      (await stored()).map(({ metadata }) => metadata.resourceVersion),
      before,
    );
    await assert.rejects(store.put(key, three(), owner, signal), StoreConflictError);
  });

  test('a put that failed half-way is not readable and is completed by the next', async () => {
    const data = three();
    const status = { code: 500, reason: 'InternalError', message: 'induced' };
    berth.server.faults.failNext(
      ({ verb, resource, name }) => verb === 'create' && resource === 'blobs' && name !== blobName(key, 1),
      status,
      1,
    );
    await assert.rejects(store.put(key, data, owner, signal));
    await assert.rejects(store.get(key, signal), StoreMissingError);
    await store.put(key, data, owner, signal);
    assert.deepEqual(await store.get(key, signal), data);
  });

  test('a put whose answer was lost is a success', async () => {
    const data = randomBytes(100);
    berth.server.faults.loseAnswer(({ verb, resource }) => verb === 'create' && resource === 'blobs');
    await store.put(key, data, owner, signal).catch(() => store.put(key, data, owner, signal));
    assert.deepEqual(await store.get(key, signal), data);
  });

  test('two leaders that put the same at once both succeed', async () => {
    const data = three();
    await Promise.all([store.put(key, data, owner, signal), storeOf().put(key, data, owner, signal)]);
    assert.deepEqual(await store.get(key, signal), data);
  });

  test('the ceiling holds however many puts come at once, and what is refused leaves nothing', async () => {
    const { bytes: used } = await storeOf().usage(signal);
    const one = Math.ceil(100_000 / 3) * 4;
    const small = storeOf(used + 5 * one);
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, seq) => small.put({ ...key, seq }, randomBytes(100_000), owner, signal)),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    assert.equal(refused.length, 5);
    for (const { reason } of refused) assert.ok(reason instanceof StoreFullError);
    assert.equal((await stored()).length, 5);
    const { bytes } = await storeOf().usage(signal);
    assert.equal(bytes, used + 5 * one);
  });

  test('deleted content makes room, and content that is already stored needs none', async () => {
    const { bytes: used } = await storeOf().usage(signal);
    const full = storeOf(used + 150_000);
    const data = randomBytes(100_000);
    await full.put(key, data, owner, signal);
    await full.put(key, data, owner, signal);
    const other = { ...key, seq: 8 };
    await assert.rejects(full.put(other, randomBytes(100_000), owner, signal), StoreFullError);
    await full.delete(key, signal);
    await full.put(other, randomBytes(100_000), owner, signal);
  });

  test('content that is already stored is no reason to refuse it where more is stored than the ceiling allows', async () => {
    const data = three();
    await store.put(key, data, owner, signal);
    const lowered = storeOf(1000);
    await lowered.put(key, data, owner, signal);
    assert.deepEqual(await lowered.get(key, signal), data);
    await berth.admin.delete(blobs, { namespace: 'test', name: blobName(key, 1) });
    await assert.rejects(lowered.put(key, data, owner, signal), StoreFullError);
  });

  test('a delete removes every part, also of a put that failed half-way, and nothing of another key', async () => {
    await store.put(key, three(), owner, signal);
    const other = { ...key, seq: 70 };
    await store.put(other, randomBytes(10), owner, signal);
    await berth.admin.delete(blobs, { namespace: 'test', name: blobName(key, 1) });
    await store.delete(key, signal);
    assert.deepEqual(
      (await stored()).map(({ metadata }) => metadata.name),
      [blobName(other, 1)],
    );
    await store.delete(key, signal);
  });

  test('two deletes at once both succeed', async () => {
    await store.put(key, three(), owner, signal);
    await Promise.all([store.delete(key, signal), storeOf().delete(key, signal)]);
    assert.deepEqual(await stored(), []);
  });

  test('missing content is reported by name', async () => {
    await assert.rejects(
      store.get(key, signal),
      (error) => error instanceof StoreMissingError && error.message.includes(blobName(key, 1)),
    );
  });

  test('Blobs go with their Session', async () => {
    await store.put(key, three(), owner, signal);
    await berth.admin.delete(sessions, { namespace: 'test', name: owner.name });
    await eventually(async () => (await stored()).length === 0, { what: 'the Blobs are gone' });
  });
});
