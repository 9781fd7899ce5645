import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { blobSpec } from '../../../core/resources/blob.ts';
import type { StoredBlob } from '../../../core/resources/kinds.ts';
import { BLOB_CHUNK_BYTES } from '../../../core/resources/limits.ts';
import { fromBlobs, toBlobs } from '../../../core/store/chunks.ts';
import { StoreCorruptError, type StoreKey } from '../../../core/store/store.ts';

const uid = '8f2d2c1e-0000-4000-8000-000000000001';
const owner = { name: 'notes', uid };
const key: StoreKey = { namespace: 'ns', sessionUID: uid, incarnation: 2, seq: 9, kind: 'Output' };
const made = async (data: Buffer, at: Partial<StoreKey> = {}) =>
  (await toBlobs({ ...key, ...at }, data, owner)) as StoredBlob[];
const corrupt = (problem: RegExp) => (error: unknown) =>
  error instanceof StoreCorruptError && error.code === 'StoreCorrupt' && problem.test(error.message);

describe('chunks of the store', () => {
  test('Blobs are joined to the bytes that they were cut from, each within the kind’s limits', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('State', 'Output', 'Log'),
        fc.constantFrom(0, 1, BLOB_CHUNK_BYTES - 1, BLOB_CHUNK_BYTES, BLOB_CHUNK_BYTES + 1, 3 * BLOB_CHUNK_BYTES + 5),
        fc.boolean(),
        async (kind, size, compresses) => {
          const data = compresses ? Buffer.alloc(size, 'text ') : randomBytes(size);
          const blobs = await made(data, { kind });
          for (const blob of blobs) blobSpec.parse(blob.spec);
          assert.deepEqual(await fromBlobs('it', blobs), data);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('text is compressed, a sealed state is kept as it is', async () => {
    const data = Buffer.alloc(100_000, 'line of a log\n');
    assert.equal((await made(data, { kind: 'Log' }))[0]?.spec.encoding, 'Gzip');
    const [state] = await made(data, { kind: 'State' });
    assert.equal(state?.spec.encoding, 'Identity');
    assert.equal(state?.spec.data, data.toString('base64'));
  });

  test('names follow from the key, and the Session owns each Blob', async () => {
    const blobs = await made(randomBytes(BLOB_CHUNK_BYTES + 1));
    assert.deepEqual(
      blobs.map(({ metadata }) => metadata.name),
      [`b-${uid}-2-9-1`, `b-${uid}-2-9-2`],
    );
    for (const { metadata } of blobs) {
      assert.deepEqual(metadata.ownerReferences, [
        { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid, controller: true },
      ]);
    }
  });

  test('a changed byte, a part of other content and parts in another order are refused', async () => {
    const blobs = await made(randomBytes(2 * BLOB_CHUNK_BYTES));
    const [first, second] = blobs as [StoredBlob, StoredBlob];
    const [, other] = (await made(randomBytes(2 * BLOB_CHUNK_BYTES))) as [StoredBlob, StoredBlob];
    const flipped = { ...second, spec: { ...second.spec, data: `AAAA${second.spec.data.slice(4)}` } };
    await assert.rejects(fromBlobs('it', [first, flipped]), corrupt(/digest/));
    await assert.rejects(fromBlobs('it', [first, other]), corrupt(/part 2 belongs to other content/));
    await assert.rejects(fromBlobs('it', [second, first]), corrupt(/part 1 belongs to other content/));
  });

  test('content that says it is small and decompresses to much is refused before it takes the memory', async () => {
    const [blob] = (await made(Buffer.alloc(1000, 'x'))) as [StoredBlob];
    const bomb = { ...blob, spec: { ...blob.spec, data: gzipSync(Buffer.alloc(50_000_000)).toString('base64') } };
    await assert.rejects(fromBlobs('it', [bomb]), corrupt(/cannot be decompressed/));
  });
});
