import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Archives } from '../../../../controller/environments/archives.ts';

const MIB = 1024 * 1024;

describe('the archives of environments', () => {
  const reader = (megabytes: number) => {
    let reads = 0;
    const read = async () => {
      reads += 1;
      return Buffer.alloc(megabytes * MIB);
    };
    return { read, count: () => reads };
  };

  test('are read once for sessions that start together or one after another', async () => {
    const archives = new Archives();
    const { read, count } = reader(1);
    const [one, two] = await Promise.all([archives.get('a', read), archives.get('a', read)]);
    assert.equal(one, two);
    assert.equal(await archives.get('a', read), one);
    assert.equal(count(), 1);
  });

  test('are held up to 64 MiB together, the last used ones', async () => {
    const archives = new Archives();
    const [a, b, c] = [reader(30), reader(30), reader(30)];
    await archives.get('a', a.read);
    await archives.get('b', b.read);
    await archives.get('a', a.read);
    await archives.get('c', c.read);
    await archives.get('a', a.read);
    await archives.get('b', b.read);
    assert.deepEqual([a.count(), b.count(), c.count()], [1, 2, 1]);
  });

  test('that could not be read are read again', async () => {
    const archives = new Archives();
    await assert.rejects(
      archives.get('a', async () => {
        throw new Error('slow');
      }),
      /slow/,
    );
    assert.equal((await archives.get('a', reader(1).read)).length, MIB);
  });
});
