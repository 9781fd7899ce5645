import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { widget, widgets, withWidgets } from './widgets.ts';

describe('faults on demand', () => {
  test('a request fails as asked, once, and is not executed', async () => {
    const { server, api } = await withWidgets();
    const status = { code: 429, reason: 'TooManyRequests', message: 'slow down', details: { retryAfterSeconds: 1 } };
    server.faults.failNext((facts) => facts.verb === 'create' && facts.resource === 'widgets', status);
    const refused = await api.post(widgets, widget('a'));
    assert.equal(refused.status, 429);
    assert.equal(refused.headers['retry-after'], '1');
    assert.equal((await api.get(`${widgets}/a`)).status, 404);
    assert.equal((await api.post(widgets, widget('a'))).status, 201);
  });

  test('a lost answer breaks the connection after the request was executed', async () => {
    const { server, api } = await withWidgets();
    server.faults.loseAnswer((facts) => facts.verb === 'create' && facts.resource === 'widgets');
    await assert.rejects(api.post(widgets, widget('a')));
    assert.equal((await api.get(`${widgets}/a`)).status, 200);
  });

  test('dropped watches break, and a new one goes on from where the old one was', async () => {
    const { server, api } = await withWidgets();
    const { body } = await api.post(widgets, widget('a'));
    const from = `${widgets}?watch=true&resourceVersion=${body.metadata.resourceVersion}`;
    const watch = await api.watch(from);
    server.faults.dropWatches();
    await assert.rejects(async () => {
      if ((await watch.next()) === undefined) throw new Error('the watch ended');
    });
    await api.post(widgets, widget('b'));
    const second = await api.watch(from);
    assert.equal((await second.next())?.object.metadata.name, 'b');
    second.close();
  });

  test('a stalled watch is silent and delivers everything when released', async () => {
    const { server, api } = await withWidgets();
    const { body } = await api.get(widgets);
    const watch = await api.watch(`${widgets}?watch=true&resourceVersion=${body.metadata.resourceVersion}`);
    server.faults.stallWatches(true);
    await api.post(widgets, widget('a'));
    await api.post(widgets, widget('b'));
    const first = watch.next();
    assert.equal(
      await Promise.race([first.then(() => 'an event'), api.get('/readyz').then(() => 'nothing')]),
      'nothing',
    );
    server.faults.stallWatches(false);
    assert.equal((await first)?.object.metadata.name, 'a');
    assert.equal((await watch.next())?.object.metadata.name, 'b');
    watch.close();
  });

  test('a compacted history answers old watches and old pages with 410', async () => {
    const { server, api } = await withWidgets();
    for (const name of ['a', 'b', 'c']) await api.post(widgets, widget(name));
    const page = (await api.get(`${widgets}?limit=1`)).body;
    await api.post(widgets, widget('d'));
    server.faults.compact();
    const watch = await api.watch(`${widgets}?watch=true&resourceVersion=${page.metadata.resourceVersion}`);
    const event = await watch.next();
    assert.deepEqual([event?.type, event?.object.code, event?.object.reason], ['ERROR', 410, 'Expired']);
    const next = await api.get(`${widgets}?limit=1&continue=${encodeURIComponent(page.metadata.continue)}`);
    assert.equal(next.status, 410);
    assert.equal(next.body.reason, 'Expired');
  });

  test('a history of limited length forgets the oldest changes', async () => {
    const { api } = await withWidgets({ historyLength: 10 });
    const first = (await api.post(widgets, widget('first'))).body.metadata.resourceVersion;
    for (let i = 0; i < 40; i++) await api.post(widgets, widget(`w${i}`));
    const watch = await api.watch(`${widgets}?watch=true&resourceVersion=${first}`);
    assert.equal((await watch.next())?.object.code, 410);
    const latest = (await api.get(widgets)).body.metadata.resourceVersion;
    const good = await api.watch(`${widgets}?watch=true&resourceVersion=${Number(latest) - 3}`);
    assert.deepEqual(
      (await good.take(3)).map(({ object }) => object.metadata.name),
      ['w37', 'w38', 'w39'],
    );
    good.close();
  });

  test('bookmarks come as often as configured, with the newest version', async () => {
    const { api } = await withWidgets({ bookmarkIntervalMs: 30 });
    const { body } = await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'newer' } });
    const watch = await api.watch(`${widgets}?watch=true&allowWatchBookmarks=true`);
    const [first, second] = await watch.take(2);
    assert.deepEqual([first?.type, second?.type], ['BOOKMARK', 'BOOKMARK']);
    assert.ok(Number(first?.object.metadata.resourceVersion) >= Number(body.metadata.resourceVersion));
    watch.close();
  });
});
