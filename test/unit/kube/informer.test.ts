import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'vitest';
import type { Pod } from '../../../core/kube/builtin.ts';
import { Informer, type InformerOptions } from '../../../core/kube/informer.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { KubeApi, Stored } from '../../../core/kube/types.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { answer, type KubeServer, refuse } from '../../support/kube-server.ts';
import { seededRandom } from '../../support/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { serverAndClient } from './support.ts';

const NS = '/api/v1/namespaces/ns/pods';
const pod = (name: string, label = '') => ({ metadata: { name, labels: { v: label } } });

async function started(
  t: TestContext,
  options: Partial<InformerOptions<Pod>> = {},
  prepare: (server: KubeServer) => void = () => {},
) {
  const { server, client } = await serverAndClient(t);
  prepare(server);
  const informer = new Informer<Pod>({
    api: client,
    clock: systemClock,
    random: seededRandom(),
    log: silentLogger,
    resource: pods,
    ...options,
  });
  const changes: string[] = [];
  informer.addHandler({
    add: ({ metadata }) => void changes.push(`+${metadata.name}`),
    update: ({ metadata }) => void changes.push(`~${metadata.name}`),
    delete: ({ metadata }) => void changes.push(`-${metadata.name}`),
  });
  informer.start();
  t.onTestFinished(() => informer.stop());
  await informer.synced();
  const watching = () => eventually(() => server.watchers > 0, { what: 'a watch' });
  return { server, client, informer, changes, watching };
}

const lists = (server: KubeServer) => server.requests.filter(({ query }) => !query.has('watch')).length;

describe('informer', () => {
  test('lists, then follows additions, changes and deletions', async (t) => {
    const { server, informer, changes } = await started(t, {}, (fresh) => fresh.put(NS, pod('a')));
    assert.deepEqual(changes, ['+a']);
    server.put(NS, pod('b'));
    server.put(NS, pod('a', '2'));
    await eventually(() => changes.length === 3);
    server.remove(`${NS}/b`);
    await eventually(() => changes.length === 4);
    assert.deepEqual(changes, ['+a', '+b', '~a', '-b']);
    assert.equal(informer.get('ns', 'a')?.metadata.labels?.v, '2');
    assert.equal(informer.get('ns', 'b'), undefined);
    assert.equal(informer.list().length, 1);
    assert.equal(lists(server), 1);
  });

  test('a handler that is told of the first list finds the cache synced', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put(NS, pod('a'));
    const options = { clock: systemClock, random: seededRandom(), log: silentLogger, resource: pods };
    const informer = new Informer<Pod>({ api: client, ...options });
    const found: boolean[] = [];
    informer.addHandler({ add: () => void found.push(informer.isSynced) });
    informer.start();
    t.onTestFinished(() => informer.stop());
    await informer.synced();
    assert.deepEqual(found, [true]);
  });

  test('a list of more than a page is read page by page', async (t) => {
    const { server, informer } = await started(t, {}, (fresh) => {
      for (let i = 0; i < 1_100; i++) fresh.put(NS, pod(`p${i}`));
    });
    assert.equal(informer.list().length, 1_100);
    assert.equal(lists(server), 3);
  });

  test('a list whose pages expired in between is read in one piece', async (t) => {
    const { informer } = await started(t, {}, (server) => {
      for (let i = 0; i < 600; i++) server.put(NS, pod(`p${i}`));
      server.intercept = ({ query }, response) => {
        if (!query.has('continue')) return false;
        refuse(response, 410, 'Expired', 'the provided continue parameter is too old');
        return true;
      };
    });
    assert.equal(informer.list().length, 600);
  });

  test('a watch that the server ended in order goes on without a new list', async (t) => {
    const { server, changes, watching } = await started(t);
    await watching();
    server.put(NS, pod('a'));
    await eventually(() => changes.length === 1);
    server.endWatches();
    server.put(NS, pod('b'));
    await eventually(() => changes.length === 2);
    assert.equal(lists(server), 1);
  });

  test('410 as an HTTP status leads to a new list that finds what was missed, deletions too', async (t) => {
    const { server, informer, changes, watching } = await started(t, {}, (fresh) => {
      fresh.put(NS, pod('a'));
      fresh.put(NS, pod('b'));
    });
    await watching();
    server.put(NS, pod('b', '2'));
    await eventually(() => changes.includes('~b'));
    // Two changes happen while the client is away, and the history no longer holds them.
    let away = true;
    server.intercept = async ({ query }) => {
      if (query.has('watch')) await eventually(() => !away);
      return false;
    };
    server.endWatches();
    server.remove(`${NS}/a`);
    server.put(NS, pod('c'));
    server.expire();
    away = false;
    await eventually(() => changes.includes('+c'));
    assert.ok(changes.includes('-a'));
    assert.deepEqual(
      informer
        .list()
        .map(({ metadata }) => metadata.name)
        .sort(),
      ['b', 'c'],
    );
  });

  test('410 as an ERROR event leads to a new list', async (t) => {
    const { server, changes, watching } = await started(t);
    await watching();
    server.objects.set(`${NS}/unseen`, {
      metadata: { ...server.put('/elsewhere', pod('unseen')).metadata, namespace: 'ns' },
    });
    server.writeToWatchers('{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}\n');
    await eventually(() => changes.includes('+unseen'));
    assert.equal(lists(server), 2);
  });

  test('a connection that is cut is followed by a new list', async (t) => {
    const { server, changes, watching } = await started(t);
    await watching();
    server.cut();
    server.put(NS, pod('a'));
    await eventually(() => changes.length === 1);
    assert.ok(lists(server) >= 2);
  });

  test('a silent connection is given up and what it did not say is found', async (t) => {
    const clock = new VirtualClock();
    const { server, informer, changes, watching } = await started(t, { clock, silentMs: 90_000 });
    await watching();
    // Bookmarks keep it alive.
    await clock.advance(80_000);
    server.bookmark();
    await eventually(() => informer.staleness === 0, { what: 'the bookmark' });
    await clock.advance(80_000);
    assert.equal(server.watchers, 1);
    assert.equal(informer.staleness, 80_000);
    assert.equal(lists(server), 1);
    // Objects appear without an event, as behind a dead connection: the second time nothing was heard of the watch at all.
    for (const [name, ms, watches] of [
      ['first', 11_000, 1],
      ['second', 91_000, 2],
    ] as const) {
      await eventually(() => server.requests.filter(({ query }) => query.has('watch')).length === watches);
      server.objects.set(`${NS}/${name}`, {
        metadata: { ...server.put('/elsewhere', pod(name)).metadata, namespace: 'ns' },
      });
      await clock.advance(ms);
      await eventually(async () => {
        await clock.advance(100);
        return changes.includes(`+${name}`);
      });
      assert.ok(informer.staleness < 10_000);
    }
  });

  test('a watch of what never changes is taken up again at once, however often it is cut or without a bookmark', async (t) => {
    const clock = new VirtualClock();
    const { server } = await started(t, { clock, silentMs: 90_000 });
    const watches = () => server.requests.filter(({ query }) => query.has('watch')).length;
    for (let i = 1; i <= 8; i++) {
      await eventually(() => watches() === i && server.watchers === 1);
      // A load balancer does this with a connection that has been silent for a while.
      await clock.advance(i % 2 ? 35_000 : 90_000);
      if (i % 2) server.cut();
      // No longer than any wait for the next watch, and less than what is left of the silence.
      const wait = await eventually(() => [clock.nextIn ?? Infinity].find((ms) => ms <= 30_000), { what: 'a wait' });
      assert.ok(wait <= 200, `after ${i} watches ${wait} ms`);
      await clock.advance(wait);
    }
  });

  test('a list that is asked for shows what a late watch has not told, deletions too, and the watch goes on from there', async (t) => {
    const { server, informer, changes, watching } = await started(t, {}, (fresh) => {
      fresh.put(NS, pod('gone'));
    });
    await watching();
    // The watch does not see this change.
    server.objects.delete(`${NS}/gone`);
    const { metadata } = server.put('/elsewhere', pod('new'));
    server.objects.set(`${NS}/new`, { metadata: { ...metadata, namespace: 'ns' } });
    await informer.relist(new AbortController().signal);
    assert.deepEqual(changes, ['+gone', '-gone', '+new']);
    server.put(NS, pod('later'));
    await eventually(() => changes.includes('+later'));
    assert.equal(lists(server), 2);
  });

  test('a list that is asked for is tried until it succeeds, the informer is stopped or nobody waits any more', async (t) => {
    const { server, informer } = await started(t);
    let refuses = true;
    server.intercept = ({ query }, response) => {
      if (refuses && !query.has('watch')) refuse(response, 503, 'ServiceUnavailable', 'not now');
      return refuses && !query.has('watch');
    };
    const nobody = AbortSignal.abort(new Error('nobody waits'));
    await assert.rejects(informer.relist(nobody), /nobody waits/);
    const first = informer.relist(new AbortController().signal);
    await eventually(() => lists(server) >= 2);
    refuses = false;
    await first;
    refuses = true;
    const second = informer.relist(new AbortController().signal);
    await Promise.all([assert.rejects(second, /was stopped/), informer.stop()]);
  });

  test('a server that comes back with an older history is believed', async (t) => {
    const { server, informer, changes, watching } = await started(t, {}, (fresh) => {
      fresh.put(NS, pod('kept'));
      fresh.put(NS, pod('lost'));
    });
    await watching();
    await server.stop();
    server.reset(10);
    server.put(NS, {
      metadata: { ...pod('kept', 'older').metadata, uid: informer.get('ns', 'kept')?.metadata.uid ?? '' },
    });
    await server.start();
    await eventually(() => changes.includes('-lost'));
    assert.equal(informer.get('ns', 'kept')?.metadata.labels?.v, 'older');
    assert.equal(informer.get('ns', 'kept')?.metadata.resourceVersion, '11');
    await eventually(() => server.watchers === 1);
    server.put(NS, pod('new'));
    await eventually(() => changes.includes('+new'));
  });

  test('a watch whose events go back in versions leads to a new list', async (t) => {
    const { server, informer, changes, watching } = await started(t, {}, (fresh) => fresh.put(NS, pod('a')));
    await watching();
    server.reset(5);
    server.put(NS, pod('b'));
    await eventually(() => changes.includes('+b'));
    assert.deepEqual(
      informer.list().map(({ metadata }) => metadata.name),
      ['b'],
    );
  });

  test('an object replaced by one of the same name while away is deleted and added', async (t) => {
    const { server, changes, watching } = await started(t, {}, (fresh) => fresh.put(NS, pod('a')));
    await watching();
    await server.stop();
    server.remove(`${NS}/a`);
    server.put(NS, pod('a'));
    await server.start();
    await eventually(() => changes.length === 3);
    assert.deepEqual(changes, ['+a', '-a', '+a']);
  });

  test('errors of list and watch are survived with growing waits and told as the problem', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t);
    server.put(NS, pod('a'));
    let forbidden = true;
    server.intercept = (_request, response) => {
      if (forbidden) refuse(response, 403, 'Forbidden', 'pods is forbidden');
      return forbidden;
    };
    const informer = new Informer<Pod>({
      api: client,
      clock,
      random: seededRandom(),
      log: silentLogger,
      resource: pods,
    });
    informer.start();
    t.onTestFinished(() => informer.stop());
    const waits: number[] = [];
    for (let i = 1; i <= 4; i++) {
      await eventually(() => server.requests.length === i && clock.nextIn !== undefined);
      waits.push(clock.nextIn ?? 0);
      await clock.advance(clock.nextIn ?? 0);
    }
    assert.ok(waits[3]! > 2 * waits[0]!, `waits ${waits}`);
    assert.match(informer.problem?.message ?? '', /forbidden/);
    assert.equal(informer.isSynced, false);
    assert.equal(informer.staleness, Infinity);
    forbidden = false;
    await eventually(async () => {
      await clock.advance(1_000);
      return informer.isSynced;
    });
    assert.equal(informer.problem, undefined);
  });

  test('a server that ends every watch at once is not asked in a tight loop', async (t) => {
    const clock = new VirtualClock();
    const { server } = await started(t, { clock }, (fresh) => {
      fresh.intercept = ({ query }, response) => {
        if (query.has('watch')) answer(response, 200, {});
        return query.has('watch');
      };
    });
    await eventually(() => server.requests.length === 2 && clock.pending === 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(server.requests.length, 2);
  });

  test('a handler, transform or index function that throws is logged and kills nothing', async (t) => {
    const errors: string[] = [];
    const log = { ...silentLogger, error: (_fields: object, message: string) => void errors.push(message) };
    const bad = (name: string) => {
      if (name === 'bad') throw new Error('cannot cope');
      return name;
    };
    const { server, informer, changes, watching } = await started(t, {
      log,
      transform: (object) => ({ ...object, kind: bad(object.metadata.name) }),
      indexes: { name: ({ metadata }) => [bad(metadata.name)] },
    });
    informer.addHandler({ add: ({ metadata }) => void bad(metadata.name) });
    await watching();
    server.put(NS, pod('bad'));
    server.put(NS, pod('good'));
    await eventually(() => changes.length === 2);
    assert.deepEqual([informer.byIndex('name', 'good').length, informer.byIndex('name', 'bad').length], [1, 0]);
    assert.ok(informer.get('ns', 'bad'));
    assert.deepEqual(new Set(errors), new Set(['handler of an informer failed', 'function of an informer failed']));
    assert.equal(lists(server), 1);
  });

  test('a transform drops bodies before they are kept and handlers see what is kept', async (t) => {
    const { server, informer } = await started(t, {
      transform: ({ spec: _, ...rest }) => ({ ...rest, spec: { containers: [] } }) as never,
    });
    const seen: unknown[] = [];
    informer.addHandler({ add: (object) => void seen.push(object.spec) });
    server.put(NS, { ...pod('a'), spec: { containers: [{ name: 'large' }] } } as never);
    await eventually(() => seen.length === 1);
    assert.deepEqual(seen, [{ containers: [] }]);
  });

  test('indexes follow every change', async (t) => {
    const { server, informer, changes } = await started(t, {
      indexes: { label: ({ metadata }) => [metadata.labels?.v ?? ''] },
    });
    const names = (value: string) => informer.byIndex('label', value).map(({ metadata }) => metadata.name);
    server.put(NS, pod('a', 'x'));
    server.put(NS, pod('b', 'x'));
    await eventually(() => changes.length === 2);
    assert.deepEqual(names('x'), ['a', 'b']);
    server.put(NS, pod('a', 'y'));
    server.remove(`${NS}/b`);
    await eventually(() => changes.length === 4);
    assert.deepEqual([names('x'), names('y')], [[], ['a']]);
    assert.throws(() => informer.byIndex('nothing', 'x'), /there is no index/);
  });

  test('listed namespaces are followed each with a watch of its own and nothing cluster-wide is asked', async (t) => {
    const { server, informer, changes } = await started(t, { namespaces: ['ns', 'two'] });
    server.put(NS, pod('a'));
    server.put('/api/v1/namespaces/two/pods', pod('a'));
    server.put('/api/v1/namespaces/three/pods', pod('a'));
    await eventually(() => changes.length === 2);
    assert.equal(informer.list().length, 2);
    assert.ok(informer.get('two', 'a'));
    assert.equal(informer.get('three', 'a'), undefined);
    assert.deepEqual(new Set(server.requests.map(({ path }) => path)), new Set([NS, '/api/v1/namespaces/two/pods']));
  });

  test('a namespace that cannot be listed keeps the informer from being synced at first', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = ({ path }, response) => {
      const denied = path.includes('/denied/');
      if (denied) refuse(response, 403, 'Forbidden', 'no');
      return denied;
    };
    const informer = new Informer<Pod>({
      api: client,
      clock: systemClock,
      random: seededRandom(),
      log: silentLogger,
      resource: pods,
      namespaces: ['ns', 'denied'],
    });
    informer.start();
    await eventually(() => informer.problem);
    const waiting = informer.synced();
    await eventually(() => server.watchers === 1);
    assert.equal(informer.isSynced, false);
    await informer.stop();
    await assert.rejects(waiting, /stopped/);
  });

  test('a namespace that stays closed is left out with what it last showed, until it is open again', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t);
    server.put('/api/v1/namespaces/lost/pods', pod('last-seen'));
    let closed = false;
    server.intercept = ({ path }, response) => {
      const denied = path.includes('/never/') || (closed && path.includes('/lost/'));
      if (denied) refuse(response, 403, 'Forbidden', 'pods is forbidden');
      return denied;
    };
    const said: [string, string | undefined][] = [];
    let [wasSynced, knew] = [false, [] as string[]];
    const options = { clock, random: seededRandom(), log: silentLogger, resource: pods };
    const informer = new Informer<Pod>({
      api: client,
      ...options,
      namespaces: ['ns', 'lost', 'never'],
      onClosed: (namespace, error) => said.push([namespace, error?.message]),
      onKnown: () => {
        wasSynced = informer.isSynced;
        knew = ['ns', 'lost', 'never'].filter((namespace) => !informer.closed(namespace));
      },
    });
    informer.start();
    t.onTestFinished(() => informer.stop());
    const pass = (check: () => boolean) =>
      eventually(async () => {
        await clock.advance(1_000);
        return check();
      });
    const since = clock.monotonic();
    await pass(() => informer.isSynced);
    assert.ok(clock.monotonic() - since >= 30_000, 'it may be being set up');
    assert.deepEqual(said.splice(0), [['never', 'pods is forbidden']]);
    assert.deepEqual([wasSynced, knew], [true, ['ns', 'lost']], 'what is known now is told');
    assert.equal(informer.stalenessIn('never'), Infinity);
    // A reader of the whole set does not wait for the namespace that is closed.
    await informer.relist(new AbortController().signal);
    closed = true;
    server.cut();
    await pass(() => informer.closed('lost') !== undefined);
    assert.deepEqual(said.splice(0), [['lost', 'pods is forbidden']]);
    assert.deepEqual(knew, ['ns']);
    assert.ok(informer.get('lost', 'last-seen'));
    await pass(() => informer.staleness < informer.stalenessIn('lost') - 20_000);
    server.remove('/api/v1/namespaces/lost/pods/last-seen');
    const closedAtDeletion: unknown[] = [];
    informer.addHandler({ delete: () => void closedAtDeletion.push(informer.closed('lost')) });
    closed = false;
    await pass(() => informer.closed('lost') === undefined);
    assert.deepEqual(closedAtDeletion, [undefined], 'a handler finds it open');
    assert.deepEqual(said, [['lost', undefined]]);
    assert.deepEqual([wasSynced, knew], [true, ['ns', 'lost']], 'and what is known again');
    assert.equal(informer.get('lost', 'last-seen'), undefined);
  });

  test('no object counts as known if no namespace can be read', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t);
    server.intercept = (_request, response) => {
      refuse(response, 403, 'Forbidden', 'pods is forbidden');
      return true;
    };
    const options = { clock, random: seededRandom(), log: silentLogger, resource: pods };
    const informer = new Informer<Pod>({ api: client, ...options, namespaces: ['a', 'b'] });
    informer.start();
    t.onTestFinished(() => informer.stop());
    await eventually(async () => {
      await clock.advance(1_000);
      return informer.closed('a') && informer.closed('b');
    });
    assert.deepEqual([informer.isSynced, informer.staleness], [false, Infinity]);
  });

  test('a stop ends the watch and nothing is asked any more', async (t) => {
    const { server, informer, watching } = await started(t);
    await watching();
    await informer.stop();
    await eventually(() => server.watchers === 0);
    const { length } = server.requests;
    server.put(NS, pod('a'));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(server.requests.length, length);
    assert.equal(informer.list().length, 0);
  });

  test('a writer that applies its result sees it at once and its event changes nothing more', async (t) => {
    const { client, informer, changes, watching } = await started(t);
    await watching();
    const created = await client.create(pods, { metadata: { namespace: 'ns', name: 'a' }, spec: { containers: [] } });
    informer.apply(created);
    assert.equal(informer.get('ns', 'a')?.metadata.resourceVersion, created.metadata.resourceVersion);
    const patched = await client.patch(pods, { namespace: 'ns', name: 'a' }, { metadata: { labels: { v: '2' } } });
    informer.apply(patched);
    informer.apply(created);
    assert.equal(informer.get('ns', 'a')?.metadata.labels?.v, '2');
    await client.create(pods, { metadata: { namespace: 'ns', name: 'last' }, spec: { containers: [] } });
    await eventually(() => changes.includes('+last'));
    assert.deepEqual(changes, ['+a', '~a', '+last']);
  });

  test('the event of a result that its writer has applied is not transformed again', async (t) => {
    const applied = Promise.withResolvers<void>();
    const at = (name: string, resourceVersion: string) => ({
      metadata: { namespace: 'ns', name, uid: name, resourceVersion, creationTimestamp: '2030-01-01T00:00:00Z' },
      spec: { containers: [] },
    });
    const api = {
      list: async () => ({ items: [], metadata: { resourceVersion: '1' } }),
      async *watch(_resource: unknown, { signal }: { signal: AbortSignal }) {
        await applied.promise;
        for (const object of [at('a', '2'), at('b', '3')]) yield { type: 'ADDED', object };
        await once(signal, 'abort');
      },
    } as unknown as KubeApi;
    const transformed: string[] = [];
    const transform = (object: Stored<Pod>) => {
      transformed.push(object.metadata.name);
      return object;
    };
    const options = { clock: systemClock, random: seededRandom(), log: silentLogger, resource: pods };
    const informer = new Informer<Pod>({ api, transform, unreadable: (object) => object, ...options });
    informer.start();
    t.onTestFinished(() => informer.stop());
    await informer.synced();
    informer.apply(at('a', '2'));
    applied.resolve();
    await eventually(() => informer.get('ns', 'b') !== undefined);
    assert.deepEqual(transformed, ['a', 'b']);
  });

  test('an applied result that the watch has already seen deleted does not come back', async (t) => {
    const { server, client, informer, changes } = await started(t);
    const created = await client.create(pods, { metadata: { namespace: 'ns', name: 'a' }, spec: { containers: [] } });
    server.remove(`${NS}/a`);
    await eventually(() => changes.includes('-a'));
    informer.apply(created);
    assert.equal(informer.get('ns', 'a'), undefined);
  });
});
