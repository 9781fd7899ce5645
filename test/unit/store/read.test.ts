import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeApi } from '../../../core/kube/types.ts';
import { BLOB_CHUNK_BYTES } from '../../../core/resources/limits.ts';
import { toBlobs } from '../../../core/store/chunks.ts';
import { readStored } from '../../../core/store/read.ts';
import { type StoreKey, StoreMissingError } from '../../../core/store/store.ts';

const uid = '8f2d2c1e-0000-4000-8000-000000000001';
const key: StoreKey = { namespace: 'ns', sessionUID: uid, incarnation: 2, seq: 9, kind: 'State' };
const content = randomBytes(2 * BLOB_CHUNK_BYTES + 5);
const parts = await toBlobs(key, content, { name: 'notes', uid });

/** Reads content whose size is said to be `bytes`; resolves with it and the number of parts asked for before the first is there. */
async function read(bytes: number | undefined, stored = parts) {
  let asked = 0;
  let atOnce = 0;
  const get = async (_kind: unknown, { name }: { name: string }) => {
    const number = ++asked;
    const blob = stored.find(({ metadata }) => metadata.name === name);
    await new Promise((resolve) => setImmediate(resolve));
    if (number === 1) atOnce = asked;
    if (!blob) throw new ApiError({ code: 404, reason: 'NotFound', message: name });
    return blob;
  };
  return { data: await readStored({ get } as unknown as Pick<KubeApi, 'get'>, key, undefined, bytes), atOnce, asked };
}

describe('content of several parts', () => {
  test('is read at once where its size is known, and each part once', async () => {
    assert.deepEqual(await read(content.length), { data: content, atOnce: 3, asked: 3 });
    assert.deepEqual(await read(undefined), { data: content, atOnce: 1, asked: 3 });
  });

  test('is the same where its size was said to be another', async () => {
    for (const bytes of [0, 1, BLOB_CHUNK_BYTES + 1, 9 * BLOB_CHUNK_BYTES])
      assert.deepEqual((await read(bytes)).data, content);
  });

  test('is missing where a part is', async () => {
    for (const bytes of [0, content.length]) await assert.rejects(read(bytes, parts.slice(0, 2)), StoreMissingError);
  });
});
