import assert from 'node:assert/strict';
import { appendFile, mkdir, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { testServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import { folder, start, widget, widgets, withWidgets } from './widgets.ts';

describe('data kept between starts', () => {
  test('objects, versions, definitions, tokens and the certificate survive a restart', async () => {
    const dataDir = await folder();
    const first = await withWidgets({ dataDir });
    const made = (await first.api.post(widgets, widget('kept'))).body;
    await first.api.post(widgets, widget('deleted'));
    await first.api.delete(`${widgets}/deleted`);
    const account = '/api/v1/namespaces/default/serviceaccounts/default';
    await eventually(async () => (await first.api.get(account)).status === 200);
    const { token } = (await first.api.post(`${account}/token`, { spec: {} })).body.status;
    const before = (await first.api.get(widgets)).body.metadata.resourceVersion;
    await first.server.close();

    const second = await start({ dataDir });
    assert.deepEqual((await second.api.get(`${widgets}/kept`)).body, made);
    assert.equal((await second.api.get(`${widgets}/deleted`)).status, 404);
    assert.equal(second.server.ca, first.server.ca);
    assert.equal((await second.api.get('/version', { token })).status, 200);
    const after = (await second.api.post(widgets, widget('new'))).body.metadata.resourceVersion;
    assert.ok(Number(after) > Number(before));
  });

  test('an integer of 64 bits is the same after a restart', async () => {
    const dataDir = await folder();
    const kept = '"free":[9007199254740993,-9223372036854775808]';
    const raw = JSON.stringify(widget('numbers', { size: 1 })).replace('"size":1', `"size":1,${kept}`);
    const first = await withWidgets({ dataDir });
    assert.equal((await first.api.post(widgets, undefined, { raw })).status, 201);
    await first.server.close();
    const second = await start({ dataDir });
    assert.ok((await second.api.get(`${widgets}/numbers`)).text.includes(kept));
  });

  test('a half-written last line is a write that never was', async () => {
    const dataDir = await folder();
    const first = await withWidgets({ dataDir });
    await first.api.post(widgets, widget('whole'));
    await first.server.close();
    await appendFile(join(dataDir, 'objects.journal.jsonl'), '{"version":99999,"storage":"widgets.con');
    const second = await start({ dataDir });
    assert.equal((await second.api.get(widgets)).body.items.length, 1);
    await second.api.post(widgets, widget('next'));
    await second.server.close();
    const third = await start({ dataDir });
    assert.equal((await third.api.get(widgets)).body.items.length, 2);
  });

  test('of two servers on the same files the first answers no write any more once the second has read them', async () => {
    const dataDir = await folder();
    const lost: Error[] = [];
    const first = await withWidgets({ dataDir, onStorageLost: (error) => lost.push(error), logger: silentLogger });
    const before = (await first.api.post(widgets, widget('before'))).body.metadata.resourceVersion;
    const second = await start({ dataDir });
    assert.equal((await first.api.post(widgets, widget('late'))).status, 500);
    assert.deepEqual(
      lost.map((error) => error.name),
      ['JournalLost'],
    );
    assert.equal((await first.api.delete(`${widgets}/before`)).status, 500);
    const found = (await second.api.get(`${widgets}/before`)).body.metadata.resourceVersion;
    assert.equal(found, before);
    const third = await start({ dataDir });
    assert.deepEqual(
      (await third.api.get(widgets)).body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ['before'],
    );
  });

  test('a damaged line within stops the start and names the file', async () => {
    const dataDir = await folder();
    await writeFile(join(dataDir, 'objects.journal.jsonl'), 'garbage\n{"version":2,"storage":"x"}\n');
    await assert.rejects(testServer({ dataDir }), /objects\.journal\.jsonl/);
  });

  test('a grown journal is replaced by a snapshot that holds the same', async () => {
    const dataDir = await folder();
    let sweep = () => {};
    const clock = {
      ...systemClock,
      setTimer(ms: number, fn: () => void) {
        if (ms === 60_000) sweep = fn;
        return systemClock.setTimer(ms, fn);
      },
    };
    const first = await withWidgets({ dataDir, clock });
    const filler = 'x'.repeat(1_000_000);
    for (let i = 0; i < 18; i++) {
      await first.api.put('/api/v1/namespaces/default/configmaps/big', {
        metadata: { name: 'big' },
        data: { filler, i: `${i}` },
      });
      if (i === 0)
        await first.api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'big' }, data: { filler } });
    }
    await first.api.post(widgets, widget('kept'));
    const journal = join(dataDir, 'objects.journal.jsonl');
    assert.ok((await stat(journal)).size > 16 * 1024 * 1024);
    // A snapshot that cannot be written, for example because the disk is full, is tried again.
    const unwritable = join(dataDir, 'objects.snapshot.jsonl.new');
    await mkdir(unwritable);
    sweep();
    assert.ok((await stat(journal)).size > 16 * 1024 * 1024);
    await rmdir(unwritable);
    sweep();
    assert.equal((await stat(journal)).size, 0);
    await first.api.post(widgets, widget('later'));
    await first.server.close();
    const second = await start({ dataDir });
    assert.equal((await second.api.get(widgets)).body.items.length, 2);
    assert.equal((await second.api.get('/api/v1/namespaces/default/configmaps/big')).body.data.i, '17');
  });

  test('private files are readable by their owner alone', async () => {
    const dataDir = await folder();
    await start({ dataDir });
    for (const name of ['server.key', 'objects.journal.jsonl']) {
      assert.equal((await stat(join(dataDir, name))).mode & 0o077, 0, name);
    }
  });
});
