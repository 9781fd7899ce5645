import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Waits } from '../../../api/streams/waits.ts';
import { ownedBy, type StoredSession, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import type { SessionSpec } from '../../../core/resources/session.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import { systemClock } from '../../../core/system.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster, type Ask, EVERYTHING, type Reply } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const RUNS = '/v1/namespaces/default/runs';

/** No controller runs here: what it would write, the tests write. */
describe('sessions and turns over HTTP', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start({ BERTH_API_MAX_WAITS: '3', BERTH_API_CALLER_SHARE: '100' });
    ({ token } = await api.user(EVERYTHING));
  });
  afterAll(() => api.close());

  const call = (method: string, path: string, ask: Ask = {}): Promise<Reply> =>
    api.call(method, path, { token, ...ask });
  const create = async (name: string, spec: object = {}) => {
    const answer = await call('POST', SESSIONS, { body: { metadata: { name }, spec } });
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  };
  const end = (name: string, status: object) =>
    api.cluster.client.patch(
      turns,
      { namespace: 'default', name },
      { status: { phase: 'Succeeded', ...status } },
      { subresource: 'status' },
    );

  test('a session is created, read, listed and deleted', async () => {
    const made = await create('life', { timeouts: { turn: '5m' } });
    assert.equal(made.spec.class, 'default');
    const seen = await call('GET', `${SESSIONS}/life`);
    assert.equal(seen.status, 200);
    assert.equal(seen.body.metadata.uid, made.metadata.uid);
    assert.deepEqual(seen.body.spec.timeouts, { turn: '5m' });
    const list = await call('GET', SESSIONS);
    assert.ok(list.body.items.some((item: { metadata: { name: string } }) => item.metadata.name === 'life'));
    assert.equal((await call('DELETE', `${SESSIONS}/life`)).status, 204);
    const gone = await call('GET', `${SESSIONS}/life`);
    assert.equal(gone.status, 404);
    assert.equal(gone.problem.code, 'NotFound');
  });

  test('without a name the server gives one, and Location leads to it', async () => {
    const made = await call('POST', SESSIONS, { body: {} });
    assert.equal(made.status, 201, made.text);
    assert.equal((await call('GET', made.headers.get('location') ?? '')).body.metadata.name, made.body.metadata.name);
  });

  test('a session made for another is found by its parent, which cannot change, and outlives it', async () => {
    const { metadata } = await create('parent');
    const parent = { name: 'parent', uid: metadata.uid };
    assert.deepEqual((await create('child', { parent })).spec.parent, parent);
    await create('other-child', { parent: { name: 'other' } });
    const children = async (of: string) =>
      (await call('GET', `${SESSIONS}?parent=${of}`)).body.items.map((item: StoredSession) => item.metadata.name);
    assert.deepEqual([await children('parent'), await children('child')], [['child'], []]);
    const child = { namespace: 'default', name: 'child' };
    for (const changed of [null, { uid: 'another' }, { uid: null }, { name: 'other', uid: null }]) {
      await assert.rejects(
        api.cluster.client.patch(sessions, child, { spec: { parent: changed } }),
        /the parent cannot change; create a new Session/,
      );
    }
    await assert.rejects(
      api.cluster.client.patch(sessions, { ...child, name: 'parent' }, { spec: { parent: { name: 'x' } } }),
      /the parent cannot change/,
    );
    const { items } = await api.cluster.client.list(sessions, {
      namespace: 'default',
      fieldSelector: 'spec.parent.name!=,spec.parent.name!=other',
    });
    assert.deepEqual(
      items.map((item) => item.metadata.name),
      ['child'],
    );
    await call('DELETE', `${SESSIONS}/parent`);
    assert.equal((await call('GET', `${SESSIONS}/child`)).status, 200);
  });

  test('a second session of the same name is answered 409', async () => {
    await create('twin');
    const second = await call('POST', SESSIONS, { body: { metadata: { name: 'twin' } } });
    assert.equal(second.status, 409);
    assert.equal(second.problem.code, 'AlreadyExists');
  });

  test('a long list comes in pages', async () => {
    for (const name of ['page-1', 'page-2', 'page-3']) await create(name);
    const first = await call('GET', `${SESSIONS}?limit=2`);
    assert.equal(first.body.items.length, 2);
    const seen = [...first.body.items];
    let next = first.body.continue;
    while (next) {
      const page = await call('GET', `${SESSIONS}?limit=2&continue=${encodeURIComponent(next)}`);
      assert.equal(page.status, 200, page.text);
      seen.push(...page.body.items);
      next = page.body.continue;
    }
    const names = seen.map(({ metadata }) => metadata.name);
    assert.equal(new Set(names).size, names.length);
    assert.ok(['page-1', 'page-2', 'page-3'].every((name) => names.includes(name)));
  });

  test('lists have the objects in some phases, and on request little of their specs', async () => {
    const { client } = api.cluster;
    const labels = { of: 'phases' };
    const phases = { new: undefined, waits: 'Queued', runs: 'Running', asks: 'AwaitingApproval', ended: 'Finished' };
    const spec = { agent: { command: ['cat'], env: [{ name: 'A', value: 'b' }] }, input: 1 };
    for (const [name, phase] of Object.entries(phases)) {
      const body = { metadata: { name: `phase-${name}`, labels }, spec };
      assert.equal((await call('POST', SESSIONS, { body })).status, 201);
      const turn = { metadata: { name: `phase-${name}-1`, labels }, spec: { input: 1, timeout: '1m' } };
      assert.equal((await call('POST', `${SESSIONS}/phase-${name}/turns`, { body: turn })).status, 201);
      if (!phase) continue;
      const ref = { namespace: 'default', name: `phase-${name}` };
      await client.patch(sessions, ref, { status: { phase } }, { subresource: 'status' });
      const ofTurn = phase === 'Finished' ? 'Failed' : phase;
      await client.patch(
        turns,
        { ...ref, name: `${ref.name}-1` },
        { status: { phase: ofTurn } },
        { subresource: 'status' },
      );
    }
    const listed = async (path: string, query: string) => {
      const { body, text } = await call('GET', `${path}?labelSelector=of%3Dphases&${query}`);
      assert.ok(body.items, text);
      return body.items.map(({ metadata }: StoredSession) => metadata.name.replace(/^phase-|-1$/g, ''));
    };
    const all = ['asks', 'ended', 'new', 'runs', 'waits'];
    for (const [path, end] of [
      [SESSIONS, 'Finished'],
      ['/v1/namespaces/default/turns', 'Failed'],
    ] as const) {
      assert.deepEqual(await listed(path, ''), all);
      assert.deepEqual(await listed(path, 'phase=Running'), ['runs']);
      assert.deepEqual(await listed(path, 'phase=Queued'), ['new', 'waits'], 'what has no status yet is Queued');
      assert.deepEqual(await listed(path, `phase=Running,${end}`), ['ended', 'runs']);
      assert.deepEqual(await listed(path, `phase=Running&phase=${end}&phase=Queued`), [
        'ended',
        'new',
        'runs',
        'waits',
      ]);
    }
    assert.deepEqual(await listed(`${SESSIONS}/phase-runs/turns`, 'phase=Running'), ['runs']);
    assert.deepEqual(await listed(`${SESSIONS}/phase-runs/turns`, 'phase=Failed'), []);
    for (const path of [SESSIONS, '/v1/namespaces/default/turns']) {
      const wrong = await call('GET', `${path}?phase=Running,Sideways`);
      assert.deepEqual([wrong.status, wrong.problem.code], [400, 'InvalidParameter']);
      assert.match(wrong.problem.detail, /^phase\[1\]: it must be "Queued", /);
    }
    const specOf = async (path: string, query: string) =>
      (await call('GET', `${path}?labelSelector=of%3Dphases&phase=Running${query}`)).body.items[0].spec;
    assert.deepEqual(await specOf(SESSIONS, '&specs=false'), { class: 'default', turns: 'Many', suspend: false });
    assert.deepEqual((await specOf(SESSIONS, '')).agent, spec.agent);
    const short = { session: 'phase-runs', cancel: false };
    for (const path of ['/v1/namespaces/default/turns', `${SESSIONS}/phase-runs/turns`]) {
      assert.deepEqual(await specOf(path, '&specs=false'), short);
      assert.equal((await specOf(path, '&specs=true')).timeout, '1m');
    }
  });

  test('turns that nobody names are listed in the order in which they were given', async () => {
    await create('unnamed');
    const given: string[] = [];
    for (let i = 0; i < 12; i++) {
      const made = await call('POST', `${SESSIONS}/unnamed/turns`, { body: { spec: { input: i } } });
      given.push(made.body.metadata.name);
    }
    const { body } = await call('GET', `${SESSIONS}/unnamed/turns`);
    const listed: { metadata: { name: string } }[] = body.items;
    assert.deepEqual(
      listed.map(({ metadata }) => metadata.name),
      given,
    );
    assert.match(given[0] ?? '', /^unnamed-[2-9b-z]{13}$/);
  });

  test('a turn belongs to its session by uid, and only there it is found', async () => {
    const session = await create('owner');
    await create('other');
    const made = await call('POST', `${SESSIONS}/owner/turns`, {
      body: { metadata: { name: 't1' }, spec: { input: 7 } },
    });
    assert.equal(made.status, 201, made.text);
    const stored = await api.cluster.client.get(turns, { namespace: 'default', name: 't1' });
    assert.equal(stored.metadata.ownerReferences?.[0]?.uid, session.metadata.uid);
    assert.equal((await call('GET', `${SESSIONS}/owner/turns/t1`)).body.spec.input, 7);
    assert.equal((await call('GET', `${SESSIONS}/other/turns/t1`)).status, 404);
    assert.equal((await call('POST', `${SESSIONS}/other/turns/t1/cancel`)).status, 404);
    assert.deepEqual((await call('GET', `${SESSIONS}/other/turns`)).body.items, []);
    // A turn of an earlier session with the same name.
    const elder = await create('elder');
    const kind = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session' };
    const ownerReferences = [{ ...kind, name: 'elder', uid: elder.metadata.uid }];
    await api.cluster.client.create(turns, {
      metadata: { name: 'left', namespace: 'default', ownerReferences },
      spec: { session: 'owner', cancel: false },
    });
    const { items } = (await call('GET', `${SESSIONS}/owner/turns`)).body;
    assert.deepEqual(
      items.map((item: { metadata: { name: string } }) => item.metadata.name),
      ['t1'],
    );
    assert.equal(items[0].spec.input, undefined);
  });

  test('the maximum number of attempts is set once, and within bounds', async () => {
    await create('tries');
    const spec = { input: 1, retry: { maxAttempts: 3 } };
    const made = await call('POST', `${SESSIONS}/tries/turns`, { body: { metadata: { name: 'tries-1' }, spec } });
    assert.deepEqual([made.status, made.body.spec.retry], [201, { maxAttempts: 3 }]);
    const many = { ...spec, retry: { maxAttempts: 11 } };
    assert.equal((await call('POST', `${SESSIONS}/tries/turns`, { body: { spec: many } })).status, 422);
    const ref = { namespace: 'default', name: 'tries-1' };
    for (const retry of [{ maxAttempts: 4 }, null]) {
      await assert.rejects(api.cluster.client.patch(turns, ref, { spec: { retry } }), /only cancel can change/);
    }
    await api.cluster.client.patch(turns, ref, { spec: { cancel: true } });
  });

  test('a turn without an input is refused where its session’s program needs one, by the class as it is now', async () => {
    const agent = { command: ['echo', '$(INPUT)'], input: 'Args' };
    await create('needy', { agent });
    const path = `${SESSIONS}/needy/turns`;
    for (const spec of [{}, { input: null }]) {
      const { status, problem } = await call('POST', path, { body: { spec } });
      assert.deepEqual([status, problem.code, problem.errors?.[0]?.field], [422, 'InputMissing', 'spec.input']);
      assert.equal(problem.detail, 'spec.input: there is none, and agent.input Args needs a value for $(INPUT).');
    }
    assert.equal((await call('POST', path, { body: { spec: { input: '' } } })).status, 201);
    assert.equal((await call('GET', path)).body.items.length, 1);
    await create('easy');
    assert.equal((await call('POST', `${SESSIONS}/easy/turns`, { body: {} })).status, 201);
    // A class may still come, and decides then.
    const metadata = { name: 'classless', namespace: 'default' };
    const spec = { class: 'later', agent, suspend: false, turns: 'Many' } as SessionSpec;
    await api.cluster.client.create(sessions, { metadata, spec });
    assert.equal((await call('POST', `${SESSIONS}/classless/turns`, { body: {} })).status, 201);
  });

  test('a turn for a session that does not exist, goes away or takes only one is refused', async () => {
    const missing = await call('POST', `${SESSIONS}/nobody/turns`, { body: {} });
    assert.equal(missing.status, 404);
    await create('single', { turns: 'One', input: 1 });
    const second = await call('POST', `${SESSIONS}/single/turns`, { body: {} });
    assert.equal(second.status, 409);
    assert.equal(second.problem.code, 'SessionTakesOneTurn');
    await create('leaving');
    await api.cluster.client.patch(
      sessions,
      { namespace: 'default', name: 'leaving' },
      { metadata: { finalizers: ['test.example/hold'] } },
    );
    await call('DELETE', `${SESSIONS}/leaving`);
    const late = await call('POST', `${SESSIONS}/leaving/turns`, { body: {} });
    assert.equal(late.problem.code, 'SessionTerminating');
    await api.cluster.client.patch(
      sessions,
      { namespace: 'default', name: 'leaving' },
      { metadata: { finalizers: null } },
    );
  });

  test('cancel sets spec.cancel; on a turn that has ended it changes nothing', async () => {
    await create('canceller');
    await call('POST', `${SESSIONS}/canceller/turns`, { body: { metadata: { name: 'c1' } } });
    const cancelled = await call('POST', `${SESSIONS}/canceller/turns/c1/cancel`);
    assert.equal(cancelled.status, 202);
    assert.equal(cancelled.body.spec.cancel, true);
    await call('POST', `${SESSIONS}/canceller/turns`, { body: { metadata: { name: 'c2' } } });
    await end('c2', {});
    assert.equal((await call('POST', `${SESSIONS}/canceller/turns/c2/cancel`)).body.spec.cancel, false);
  });

  test('suspend writes one suspension with an id, or a hold; resume takes both back', async () => {
    await create('sleeper');
    const once = await call('POST', `${SESSIONS}/sleeper/suspend`, { headers: { 'idempotency-key': 'night-1' } });
    assert.equal(once.status, 202, once.text);
    assert.match(once.body.spec.suspendRequest, /^key-[0-9a-f]{40}$/);
    assert.equal(once.body.spec.suspend, false);
    const hold = await call('POST', `${SESSIONS}/sleeper/suspend`, { body: { hold: true } });
    assert.equal(hold.body.spec.suspend, true);
    const resumed = await call('POST', `${SESSIONS}/sleeper/resume`);
    assert.equal(resumed.status, 200);
    assert.deepEqual([resumed.body.spec.suspend, resumed.body.spec.suspendRequest], [false, undefined]);
    const [first, second] = [
      await call('POST', `${SESSIONS}/sleeper/suspend`),
      await call('POST', `${SESSIONS}/sleeper/suspend`),
    ];
    assert.notEqual(first.body.spec.suspendRequest, second.body.spec.suspendRequest);
  });

  test('restart writes a new id, and the same for a repeat with the same key', async () => {
    await create('renewed');
    const path = `${SESSIONS}/renewed/restart`;
    const [first, second] = [await call('POST', path), await call('POST', path)];
    assert.deepEqual([first.status, second.status], [202, 202], first.text);
    assert.match(first.body.spec.restartRequest, /^[0-9a-f]{16}$/);
    assert.notEqual(first.body.spec.restartRequest, second.body.spec.restartRequest);
    const key = { headers: { 'idempotency-key': 'once' } };
    const [once, again] = [await call('POST', path, key), await call('POST', path, key)];
    assert.equal(once.body.metadata.resourceVersion, again.body.metadata.resourceVersion);
    const renewed = { namespace: 'default', name: 'renewed' };
    await api.cluster.client.patch(sessions, renewed, { status: { phase: 'Finished' } }, { subresource: 'status' });
    const late = await call('POST', path);
    assert.deepEqual([late.status, late.problem.code], [409, 'SessionFinished']);
    assert.equal((await call('POST', path, key)).status, 202);
  });

  test('suspend refuses a finished session, and answers the repeat of a request that came in time', async () => {
    await create('over');
    const key = { headers: { 'idempotency-key': 'in-time' } };
    const inTime = await call('POST', `${SESSIONS}/over/suspend`, key);
    const status = { phase: 'Finished' };
    const over = { namespace: 'default', name: 'over' };
    await api.cluster.client.patch(sessions, over, { status }, { subresource: 'status' });
    for (const ask of [{}, { body: { hold: true } }, { headers: { 'idempotency-key': 'late' } }]) {
      const late = await call('POST', `${SESSIONS}/over/suspend`, ask);
      assert.deepEqual([late.status, late.problem.code], [409, 'SessionFinished'], late.text);
    }
    const repeated = await call('POST', `${SESSIONS}/over/suspend`, key);
    assert.equal(repeated.status, 202, repeated.text);
    assert.deepEqual(repeated.body.spec, inTime.body.spec);
    assert.equal((await call('POST', `${SESSIONS}/nobody/suspend`)).status, 404);
  });

  test('a run that has ended is answered with the session that has counted it', async () => {
    let watched = '';
    api.cluster.server.faults.failNext(
      ({ verb, resource }) => {
        if (verb === 'watch') watched = resource ?? '';
        return false;
      },
      { code: 500, reason: 'InternalError', message: 'never used' },
    );
    const running = call('POST', `${RUNS}?wait=60s`, { body: { metadata: { name: 'counted' }, spec: { input: 1 } } });
    await eventually(() => watched === 'turns', { what: 'the turn is waited for' });
    const counted = { namespace: 'default', name: 'counted' };
    const { metadata } = await api.cluster.client.get(sessions, counted);
    await api.cluster.client.create(turns, {
      metadata: { ...counted, ownerReferences: [ownedBy({ metadata: { name: 'counted', uid: metadata.uid } })] },
      spec: { session: 'counted', input: 1, cancel: false },
    });
    await end('counted', { index: 1, output: 1 });
    await eventually(() => watched === 'sessions', { what: 'the session is waited for' });
    const status = { phase: 'Finished', lastTurn: { name: 'counted', index: 1, phase: 'Succeeded' } };
    await api.cluster.client.patch(sessions, counted, { status }, { subresource: 'status' });
    const { body } = await running;
    assert.deepEqual([body.phase, body.session.status.phase, body.output], ['Succeeded', 'Finished', 1]);
  });

  test('a run that has ended is answered with its output, also when its session has been deleted by then', async () => {
    const { faults } = api.cluster.server;
    let isWatched = false;
    faults.failNext(
      ({ verb, resource }) => {
        isWatched ||= verb === 'watch' && resource === 'turns';
        return false;
      },
      { code: 500, reason: 'InternalError', message: 'never used' },
    );
    const running = call('POST', `${RUNS}?wait=60s`, { body: { metadata: { name: 'brief' }, spec: { input: 1 } } });
    await eventually(() => isWatched, { what: 'the turn is waited for' });
    const brief = { namespace: 'default', name: 'brief' };
    const { metadata } = await api.cluster.client.get(sessions, brief);
    await api.cluster.client.create(turns, {
      metadata: { ...brief, ownerReferences: [ownedBy({ metadata: { name: 'brief', uid: metadata.uid } })] },
      spec: { session: 'brief', input: 1, cancel: false },
    });
    const isRead = ({ verb, resource }: RequestFacts) => verb === 'get' && resource === 'sessions';
    faults.failNext(isRead, { code: 404, reason: 'NotFound', message: 'sessions.berth.dev "brief" not found' });
    await end('brief', { index: 1, output: 1 });
    const { status, body } = await running;
    assert.deepEqual(
      [status, body.phase, body.output, body.session?.metadata.uid],
      [200, 'Succeeded', 1, metadata.uid],
    );
  });

  test('touch says that the session is in use, and changes nothing else', async () => {
    const { spec } = await create('in-use');
    const before = Date.now() - 1;
    const touched = await call('POST', `${SESSIONS}/in-use/touch`);
    assert.equal(touched.status, 200, touched.text);
    const stored = await api.cluster.client.get(sessions, { namespace: 'default', name: 'in-use' });
    assert.ok(Date.parse(stored.metadata.annotations?.['berth.dev/touched-at'] ?? '') >= before);
    assert.deepEqual([touched.body.spec, stored.metadata.generation], [spec, 1]);
    assert.equal((await call('POST', `${SESSIONS}/nobody/touch`)).status, 404);
  });

  describe('Idempotency-Key', () => {
    const headers = { 'idempotency-key': 'a-key' };

    test('a repeat returns the object of the first, also when all are sent at once', async () => {
      const body = { spec: { timeouts: { turn: '1m' } } };
      const answers = await Promise.all(Array.from({ length: 5 }, () => call('POST', SESSIONS, { body, headers })));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 201]);
      assert.equal(new Set(answers.map(({ body }) => body.metadata.uid)).size, 1);
      const reordered = await call('POST', SESSIONS, {
        body: `{"spec":{"timeouts":{"turn":"1m"}},"metadata":{}}`,
        headers,
      });
      assert.equal(reordered.status, 200);
    });

    test('a second body with the same key is refused, with or without a name', async () => {
      const key = { 'idempotency-key': 'other-key' };
      await call('POST', SESSIONS, { body: { metadata: { name: 'named' } }, headers: key });
      for (const body of [{ spec: { turns: 'One', input: 1 } }, { metadata: { name: 'renamed' } }]) {
        const answer = await call('POST', SESSIONS, { body: { ...body, metadata: { name: 'renamed' } }, headers: key });
        assert.equal(answer.status, 422, answer.text);
        assert.equal(answer.problem.code, 'IdempotencyKeyReused');
      }
      const unnamed = await call('POST', SESSIONS, { body: { spec: { turns: 'One', input: 1 } }, headers });
      assert.equal(unnamed.problem.code, 'IdempotencyKeyReused');
      assert.equal((await call('GET', `${SESSIONS}/renamed`)).status, 404);
    });

    test('keys of different users are different keys', async () => {
      const other = await api.user(EVERYTHING);
      const key = { 'idempotency-key': 'shared' };
      const mine = await call('POST', SESSIONS, { body: {}, headers: key });
      const theirs = await call('POST', SESSIONS, { body: {}, headers: key, token: other.token });
      assert.deepEqual([mine.status, theirs.status], [201, 201]);
      assert.notEqual(mine.body.metadata.uid, theirs.body.metadata.uid);
    });

    test('a name that is taken by an object of another request is 409, key or not', async () => {
      await create('taken');
      const answer = await call('POST', SESSIONS, {
        body: { metadata: { name: 'taken' } },
        headers: { 'idempotency-key': 'k3' },
      });
      assert.equal(answer.problem.code, 'AlreadyExists');
    });

    test('a create whose answer was lost is found by the repeat', async () => {
      const key = { 'idempotency-key': 'lost' };
      api.cluster.server.faults.loseAnswer(({ verb, resource }) => verb === 'create' && resource === 'sessions');
      const lost = await call('POST', SESSIONS, { body: {}, headers: key });
      assert.equal(lost.status, 503);
      assert.ok(Number(lost.headers.get('retry-after')) >= 1);
      assert.equal((await call('POST', SESSIONS, { body: {}, headers: key })).status, 200);
    });

    test('turns and runs take one too', async () => {
      await create('keyed');
      const ask = { body: { spec: { input: 1 } }, headers };
      const [first, second] = [
        await call('POST', `${SESSIONS}/keyed/turns`, ask),
        await call('POST', `${SESSIONS}/keyed/turns`, ask),
      ];
      assert.deepEqual([first.status, second.status], [201, 200]);
      assert.equal(first.body.metadata.uid, second.body.metadata.uid);
      const runs = [await call('POST', `${RUNS}?wait=0s`, ask), await call('POST', `${RUNS}?wait=0s`, ask)];
      assert.deepEqual(
        runs.map(({ status }) => status),
        [202, 202],
      );
      assert.equal(runs[0]?.body.session.metadata.uid, runs[1]?.body.session.metadata.uid);
    });

    test('an invalid key is refused', async () => {
      const answer = await call('POST', SESSIONS, { body: {}, headers: { 'idempotency-key': 'with space' } });
      assert.equal(answer.status, 400);
      assert.equal(answer.problem.errors?.[0]?.field, 'Idempotency-Key');
    });
  });

  describe('wait', () => {
    const turnOf = async (name: string) => {
      await create(name);
      await call('POST', `${SESSIONS}/${name}/turns`, { body: { metadata: { name: `${name}-1` } } });
      return `${SESSIONS}/${name}/turns/${name}-1`;
    };

    /** Counts the watches that are requested from now on. */
    const countWatches = () => {
      let watches = 0;
      const count = ({ verb }: { verb: string }) => {
        if (verb === 'watch') watches += 1;
        return false;
      };
      api.cluster.server.faults.failNext(count, { code: 500, reason: 'InternalError', message: 'never used' });
      return () => watches;
    };

    test('the answer comes when the turn ends, also when the watch breaks in between', async () => {
      const path = await turnOf('awaited');
      const watches = countWatches();
      const waiting = call('GET', `${path}?wait=30s`);
      await eventually(() => watches() >= 1, { what: 'it is watched' });
      api.cluster.server.faults.dropWatches();
      await eventually(() => watches() >= 2, { what: 'it is watched again' });
      await end('awaited-1', { output: { done: true } });
      assert.deepEqual((await waiting).body.status.output, { done: true });
      assert.equal((await call('GET', `${path}?wait=30s`)).body.status.phase, 'Succeeded');
    });

    test('when the time is over the turn is answered as it is', async () => {
      const path = await turnOf('slow');
      const answer = await call('GET', `${path}?wait=50ms`);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.status?.phase, undefined);
    });

    test('a turn that is deleted meanwhile is answered 404', async () => {
      const path = await turnOf('deleted');
      const waiting = call('GET', `${path}?wait=30s`);
      await api.cluster.client.delete(turns, { namespace: 'default', name: 'deleted-1' });
      assert.equal((await waiting).status, 404);
    });

    test('a turn that was deleted before it is watched is not waited for', async () => {
      await turnOf('early');
      const { client } = api.cluster;
      const known = await client.get(turns, { namespace: 'default', name: 'early-1' });
      await client.delete(turns, { namespace: 'default', name: 'early-1' });
      const waits = new Waits(client, systemClock);
      const limit = AbortSignal.timeout(20_000);
      const place = { namespace: 'default', name: 'early-1', known };
      assert.equal(await waits.forTurn(place, () => false, 60_000, limit), undefined);
      assert.equal(limit.aborted, false);
    });

    test('a wait beyond 60s or that is no duration is refused', async () => {
      for (const wait of ['61s', '2h', 'soon', '-1s']) {
        const answer = await call('GET', `${SESSIONS}/x/turns/y?wait=${wait}`);
        assert.equal(answer.status, 400, wait);
        assert.equal(answer.problem.errors?.[0]?.field, 'wait');
      }
    });

    test('a run for which there is no slot to wait is refused before its session is created', async () => {
      const path = await turnOf('busy');
      const client = new AbortController();
      const watches = countWatches();
      const waiting = Array.from({ length: 3 }, () =>
        call('GET', `${path}?wait=60s`, { signal: client.signal }).catch(() => undefined),
      );
      await eventually(() => watches() >= 3, { what: 'all slots are taken' });
      const refused = await call('POST', RUNS, { body: { metadata: { name: 'unborn' }, spec: { input: 1 } } });
      assert.deepEqual([refused.status, refused.problem.code], [503, 'Overloaded']);
      assert.equal((await call('GET', `${SESSIONS}/unborn`)).status, 404);
      client.abort();
      await Promise.all(waiting);
      await eventually(async () => (await call('GET', `${path}?wait=0s`)).status === 200, { what: 'slots are free' });
    });

    test('more waits than allowed are answered 503, and a client that goes away makes room for another', async () => {
      const path = await turnOf('crowd');
      const crowd = { namespace: 'default', name: 'crowd' };
      const clients = Array.from({ length: 3 }, () => new AbortController());
      const watches = countWatches();
      const waiting = clients.map(({ signal }) => call('GET', `${path}?wait=60s`, { signal }).catch(() => undefined));
      // A request made before all three wait would take a slot itself and leave one of them without.
      await eventually(() => watches() >= 3, { what: 'all places are taken' });
      const full = await call('GET', `${path}?wait=0s`);
      assert.deepEqual([full.status, full.problem.code], [503, 'Overloaded']);
      assert.equal(full.headers.get('retry-after'), '1');
      assert.match(full.problem.detail ?? '', /^3 requests wait for a turn already; try again later/);
      // Logs have slots of their own.
      const status = { podName: 'crowd-pod' };
      await api.cluster.client.patch(sessions, crowd, { status }, { subresource: 'status' });
      assert.equal((await call('GET', `${SESSIONS}/crowd/logs`)).status, 200);
      for (const client of clients) client.abort();
      await Promise.all(waiting);
      await eventually(async () => (await call('GET', `${path}?wait=0s`)).status === 200, { what: 'places are free' });
    });
  });

  describe('output and log', () => {
    const ended = async (name: string, status: object) => {
      await create(name);
      await call('POST', `${SESSIONS}/${name}/turns`, { body: { metadata: { name: `${name}-1` } } });
      await end(`${name}-1`, status);
      return `${SESSIONS}/${name}/turns/${name}-1`;
    };

    test('come from the turn itself where they are small', async () => {
      const path = await ended('small', { output: 'text', log: { inline: 'a line\n', bytes: 7, truncated: false } });
      assert.equal((await call('GET', `${path}/output`)).text, '"text"');
      const log = await call('GET', `${path}/log`);
      assert.equal(log.text, 'a line\n');
      assert.match(log.headers.get('content-type') ?? '', /^text\/plain/);
    });

    test('come whole from the store where they are large, for those who may get the turn', async () => {
      const session = await create('large');
      const owner = { name: 'large', uid: session.metadata.uid };
      const output = { text: 'x'.repeat(1_500_000) };
      const store = new BlobStore({ api: api.cluster.client, clock: systemClock, ceilingBytes: 1e9 });
      const at = { namespace: 'default', sessionUID: owner.uid, incarnation: 1 };
      const signal = new AbortController().signal;
      await store.put({ ...at, seq: 5, kind: 'Output' }, Buffer.from(JSON.stringify(output)), owner, signal);
      await store.put({ ...at, seq: 4, kind: 'Log' }, Buffer.from('long log'), owner, signal);
      await call('POST', `${SESSIONS}/large/turns`, { body: { metadata: { name: 'large-1' } } });
      const log = { ref: `${owner.uid}/1/4`, bytes: 8, truncated: false };
      await end('large-1', { outputRef: `${owner.uid}/1/5`, log });
      const path = `${SESSIONS}/large/turns/large-1`;
      assert.deepEqual((await call('GET', `${path}/output`)).body, output);
      assert.equal((await call('GET', `${path}/log`)).text, 'long log');
      const reader = await api.user([{ verbs: ['get'], resources: ['turns'] }]);
      for (const what of ['output', 'log']) {
        const answer = await call('GET', `${path}/${what}`, { token: reader.token });
        assert.deepEqual([answer.status, answer.text.length], [200, what === 'log' ? 8 : 1_500_011], answer.text);
      }

      // A turn of another session whose references somebody has pointed here.
      const artifact = { name: 'a', bytes: 8, offset: 0, digest: 'a'.repeat(64), ref: `${owner.uid}/1/4` };
      const foreign = await ended('thief', { outputRef: `${owner.uid}/1/5`, log, artifacts: [artifact] });
      for (const what of ['output', 'log', 'artifacts/a']) {
        const { status, problem } = await call('GET', `${foreign}/${what}`);
        assert.deepEqual([status, problem.code], [502, 'StoredDataMissing'], what);
        assert.match(problem.detail, /which is not of its session: it is not shown/);
      }
    });

    test('a large answer comes whole, and says its length', async () => {
      const text = `${'x'.repeat(299_999)}ü`;
      const path = await ended('long', {});
      const session = await api.cluster.session('long');
      const store = new BlobStore({ api: api.cluster.client, clock: systemClock, ceilingBytes: 1e9 });
      const owner = { name: 'long', uid: session.metadata.uid };
      const key = { namespace: 'default', sessionUID: owner.uid, incarnation: 1, seq: 9, kind: 'Log' as const };
      await store.put(key, Buffer.from(text), owner, new AbortController().signal);
      await end('long-1', { log: { ref: `${owner.uid}/1/9`, bytes: 300_001, truncated: false } });
      const answer = await call('GET', `${path}/log`);
      assert.equal(answer.text, text);
      assert.equal(answer.headers.get('content-length'), '300001');
      assert.equal((await call('HEAD', `${path}/log`)).status, 200);
    });

    test('of a turn that has not ended, or had none, say so, and the log of one that printed nothing is empty', async () => {
      const path = await ended('silent', {});
      assert.equal((await call('GET', `${path}/output`)).problem.code, 'NoOutput');
      for (const log of [undefined, { inline: '', bytes: 0, truncated: false }, { bytes: 0, truncated: false }]) {
        if (log) await end('silent-1', { log });
        const empty = await call('GET', `${path}/log`);
        assert.deepEqual([empty.status, empty.text, empty.headers.get('content-length')], [200, '', '0']);
        assert.match(empty.headers.get('content-type') ?? '', /^text\/plain/);
      }
      await end('silent-1', { log: { inline: null, bytes: 0, truncated: true } });
      const lost = await call('GET', `${path}/log`);
      assert.deepEqual([lost.status, lost.problem.code], [404, 'NoLog']);
      assert.match(lost.problem.detail, /^The log of turn "silent-1" was lost/);
      await call('POST', `${SESSIONS}/silent/turns`, { body: { metadata: { name: 'silent-2' } } });
      const queued = await call('GET', `${SESSIONS}/silent/turns/silent-2/output`);
      assert.equal(queued.status, 409);
      assert.equal(queued.problem.code, 'TurnNotFinished');
    });

    test('that the store has lost are told as such', async () => {
      const path = await ended('lost', { outputRef: 'aaaa-bbbb/1/5' });
      const answer = await call('GET', `${path}/output`);
      assert.equal(answer.status, 502);
      assert.equal(answer.problem.code, 'StoredDataMissing');
    });
  });

  describe('bad input', () => {
    const cases: [string, string, string, Ask['body'], number, string, string?][] = [
      ['an unknown field', 'POST', SESSIONS, { spec: { colour: 'red' } }, 422, 'Invalid', 'spec.colour'],
      ['a wrong enum', 'POST', SESSIONS, { spec: { turns: 'Some' } }, 422, 'Invalid', 'spec.turns'],
      ['a wrong type', 'POST', SESSIONS, { spec: { suspend: 'yes' } }, 422, 'Invalid', 'spec.suspend'],
      [
        'a name that is no DNS label',
        'POST',
        SESSIONS,
        { metadata: { name: 'My_Session' } },
        422,
        'Invalid',
        'metadata.name',
      ],
      ['a path that is no DNS label', 'GET', `${SESSIONS}/My_Session`, undefined, 400, 'InvalidParameter', 'session'],
      [
        'a name that is too long',
        'GET',
        `${SESSIONS}/${'a'.repeat(400)}`,
        undefined,
        400,
        'InvalidParameter',
        'session',
      ],
      [
        'a namespace that is no DNS label',
        'GET',
        '/v1/namespaces/a.b/sessions',
        undefined,
        400,
        'InvalidParameter',
        'namespace',
      ],
      ['a query that does not exist', 'GET', `${SESSIONS}?colour=red`, undefined, 400, 'InvalidParameter', 'colour'],
      ['a limit that is none', 'GET', `${SESSIONS}?limit=many`, undefined, 400, 'InvalidParameter', 'limit'],
      ['a body that is no JSON', 'POST', SESSIONS, '{"spec":', 400, 'InvalidJson'],
      ['a body that is no object', 'POST', SESSIONS, '[]', 422, 'Invalid'],
      [
        'a body that is too deep',
        'POST',
        SESSIONS,
        `{"spec":{"input":${'['.repeat(500)}${']'.repeat(500)}}}`,
        422,
        'InputTooDeep',
      ],
      ['one turn without an input', 'POST', SESSIONS, { spec: { turns: 'One' } }, 422, 'Invalid', 'spec.input'],
      [
        'a parent without a name',
        'POST',
        SESSIONS,
        { spec: { parent: { uid: 'x' } } },
        422,
        'Invalid',
        'spec.parent.name',
      ],
      ['a run without an input', 'POST', RUNS, { spec: {} }, 422, 'Invalid', 'spec.input'],
      [
        'a run whose program needs an input, with null',
        'POST',
        RUNS,
        { spec: { input: null, agent: { command: ['cat'], input: 'Text' } } },
        422,
        'InputMissing',
        'spec.input',
      ],
      [
        'an input above its limit',
        'POST',
        SESSIONS,
        { spec: { input: 'x'.repeat(140_000) } },
        422,
        'InputTooLarge',
        'spec.input',
      ],
      [
        'a class that does not exist',
        'POST',
        SESSIONS,
        { spec: { class: 'gold' } },
        422,
        'ClassNotFound',
        'spec.class',
      ],
      [
        'a rule of the kind itself',
        'POST',
        SESSIONS,
        { spec: { agent: { env: [{ name: 'A' }] } } },
        422,
        'Invalid',
        'spec.agent.env[0]',
      ],
      [
        'a label of Berth’s own',
        'POST',
        SESSIONS,
        { metadata: { labels: { 'berth.dev/x': 'y' } } },
        422,
        'Invalid',
        'metadata.labels.berth.dev/x',
      ],
      ['a page that does not exist', 'GET', '/v2/sessions', undefined, 404, 'NotFound'],
      ['a method that a page does not take', 'PUT', SESSIONS, {}, 405, 'MethodNotAllowed'],
    ];
    for (const [what, method, path, body, status, code, field] of cases) {
      test(`${what} is answered ${status} ${code}${field ? ` and ${field} named` : ''}`, async () => {
        const answer = await call(method, path, body === undefined ? {} : { body });
        assert.equal(answer.status, status, answer.text);
        assert.equal(answer.problem.code, code);
        assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
        if (field) assert.equal(answer.problem.errors?.[0]?.field, field);
      });
    }

    test('a session or run without a program, where its class has none, names the field', async () => {
      const spec = { overrides: ['agent.command' as const, 'agent.driver' as const], secrets: [] };
      await api.cluster.client.create(sessionclasses, { metadata: { name: 'bare' }, spec } as never);
      const make = (path: string, more: object) => call('POST', path, { body: { spec: { class: 'bare', ...more } } });
      for (const [path, more] of [
        [SESSIONS, {}],
        [SESSIONS, { agent: { driver: 'Server' } }],
        [RUNS, { input: 1 }],
      ] as const) {
        const { status, problem } = await make(path, more);
        assert.deepEqual([status, problem.code, problem.errors?.[0]?.field], [422, 'Invalid', 'spec.agent.command']);
        assert.match(problem.detail, /is not set, and the class has no default; set the program to run/);
      }
      // These need none: the driver Shell, and an image that has its own.
      assert.equal((await make(SESSIONS, { agent: { driver: 'Shell' } })).status, 201);
      const image = { ...spec, runner: 'None' as const, image: 'example.com/program:1' };
      await api.cluster.client.create(sessionclasses, { metadata: { name: 'image' }, spec: image } as never);
      assert.equal((await make(SESSIONS, { class: 'image' })).status, 201);
    });

    test('a setting that the class does not allow, with its field and what to do', async () => {
      const spec = { overrides: [], secrets: [], runner: 'Embedded' as const };
      await api.cluster.client.create(sessionclasses, { metadata: { name: 'narrow' }, spec });
      for (const [path, input] of [
        [SESSIONS, {}],
        [RUNS, { input: 1 }],
      ] as const) {
        const body = { spec: { class: 'narrow', agent: { env: [{ name: 'A', value: 'b' }] }, ...input } };
        const { status, problem } = await call('POST', path, { body });
        assert.deepEqual([status, problem.code, problem.errors?.[0]?.field], [422, 'NotAllowed', 'spec.agent.env']);
        assert.match(problem.detail, /leave it out, or have "agent\.env" added to the class's spec\.overrides/);
      }
    });

    test('more than the class allows, by a session as by a turn, with its field; nothing is made', async () => {
      const spec = {
        overrides: ['timeouts' as const, 'resources' as const],
        secrets: [],
        runner: 'Embedded' as const,
        agent: { command: ['cat'] },
        maxTimeouts: { turn: '1h' },
        maxResources: { limits: { memory: '1Gi' } },
      };
      await api.cluster.client.create(sessionclasses, { metadata: { name: 'bounded' }, spec });
      const made = await call('POST', SESSIONS, {
        body: { metadata: { name: 'bounded' }, spec: { class: 'bounded' } },
      });
      assert.equal(made.status, 201, made.text);
      const asked: [string, object, string][] = [
        [SESSIONS, { class: 'bounded', timeouts: { turn: '999h' } }, 'spec.timeouts.turn'],
        [SESSIONS, { class: 'bounded', resources: { limits: { memory: '2Gi' } } }, 'spec.resources.limits.memory'],
        [RUNS, { class: 'bounded', input: 1, timeouts: { turn: '999h' } }, 'spec.timeouts.turn'],
        [`${SESSIONS}/bounded/turns`, { timeout: '999h' }, 'spec.timeout'],
      ];
      for (const [path, body, field] of asked) {
        const { status, problem } = await call('POST', path, { body: { spec: body } });
        assert.deepEqual([status, problem.code, problem.errors?.[0]?.field], [422, 'NotAllowed', field]);
        assert.match(problem.detail, /is more than the .* that the class allows; ask for less \(class "bounded"\)/);
      }
      const turns = await call('GET', `${SESSIONS}/bounded/turns`);
      assert.deepEqual(turns.body.items, []);
    });

    test('a body above 1 MiB is answered 413, one that is no JSON by its type 415', async () => {
      const large = await call('POST', SESSIONS, { body: JSON.stringify({ x: 'x'.repeat(1_100_000) }) });
      assert.deepEqual([large.status, large.problem.code], [413, 'BodyTooLarge']);
      const yaml = await call('POST', SESSIONS, { body: 'spec: {}', headers: { 'content-type': 'application/yaml' } });
      assert.deepEqual([yaml.status, yaml.problem.code], [415, 'UnsupportedMediaType']);
    });

    test('a body that says to be in another encoding than UTF-8 is answered 415, and none is read as what it is not', async () => {
      const typed = (type: string) => call('POST', SESSIONS, { body: '{}', headers: { 'content-type': type } });
      for (const charset of ['utf-16', '"utf-16le"', 'ISO-8859-1', 'utf-81']) {
        const answer = await typed(`application/json; charset=${charset}`);
        assert.deepEqual([answer.status, answer.problem.code], [415, 'UnsupportedMediaType'], charset);
        assert.match(answer.problem.detail, /^Content-Type has charset .*; send JSON in UTF-8/);
      }
      for (const charset of ['utf-8', 'UTF-8', '"utf8"']) {
        assert.equal((await typed(`application/json;charset=${charset}`)).status, 201, charset);
      }
    });

    test('a body that is not UTF-8 is refused by its first wrong byte, and none of it is kept', async () => {
      await create('bytes');
      const path = `${SESSIONS}/bytes/turns`;
      for (const wrong of [[0xff], [0xc3, 0x28], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
        const text = (...bytes: number[]) =>
          Buffer.concat([Buffer.from('{"spec":{"input":"ä'), Buffer.from(bytes), Buffer.from('"}}')]);
        const { status, problem } = await call('POST', path, { body: text(...wrong) });
        assert.deepEqual([status, problem.code], [400, 'InvalidJson'], String(wrong));
        assert.match(
          problem.detail,
          /^The body is not UTF-8 at byte 2[0-2]: send JSON in UTF-8, and bytes that are no/,
        );
      }
      const marked = await call('POST', path, { body: Buffer.from('\uFEFF{}') });
      assert.match(marked.problem.detail, /begins with a byte order mark/);
      assert.deepEqual((await call('GET', path)).body.items, []);
      const whole = await call('POST', path, { body: '{"spec":{"input":"ä\uFFFD😀"}}' });
      assert.deepEqual([whole.status, whole.body.spec.input], [201, 'ä\uFFFD😀']);
    });

    test('a list by parameters that the cluster cannot read names the parameter', async () => {
      await create('listed');
      for (const path of [SESSIONS, `${SESSIONS}/listed/turns`]) {
        for (const [field, value] of [
          ['labelSelector', '(('],
          ['labelSelector', 'a=b,'],
          ['labelSelector', 'a in ('],
          ['continue', 'garbage'],
        ]) {
          const answer = await call('GET', `${path}?${new URLSearchParams({ [field as string]: value as string })}`);
          const { code, title, errors = [] } = answer.problem;
          assert.deepEqual([answer.status, code, errors[0]?.field], [400, 'InvalidParameter', field], answer.text);
          assert.equal(title, 'A part of the URL or a header is not valid.');
        }
      }
      assert.equal((await call('GET', `${SESSIONS}?labelSelector=a%3Db,!c&limit=1`)).status, 200);
    });

    test('a list that has changed too much to be continued says so by the parameter', async () => {
      await create('aged-1');
      await create('aged-2');
      const { body } = await call('GET', `${SESSIONS}?limit=1`);
      await create('aged-3');
      api.cluster.server.faults.compact();
      for (const labels of ['', '&labelSelector=a%3Db']) {
        const answer = await call('GET', `${SESSIONS}?limit=1${labels}&continue=${encodeURIComponent(body.continue)}`);
        const { code, errors = [] } = answer.problem;
        assert.deepEqual([answer.status, code, errors[0]?.field], [410, 'ContinueExpired', 'continue'], answer.text);
      }
    });

    test('a caller refused before the end of the body loses the connection', async () => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      const closed = new Promise((resolve) => socket.once('close', resolve));
      const lines = [
        `POST ${SESSIONS} HTTP/1.1`,
        'Host: berth',
        'Content-Type: application/json',
        'Content-Length: 1000',
      ];
      socket.write(`${lines.join('\r\n')}\r\n\r\n{"spec":`);
      const [first] = await once(socket, 'data');
      assert.match(String(first), /^HTTP\/1.1 401 /);
      assert.match(String(first), /connection: close/i);
      await closed;
    });

    test('refused requests leave nothing behind', async () => {
      const { items } = await api.cluster.client.list(sessions, { namespace: 'default' });
      const colours = items.filter(({ spec }) => 'colour' in spec || ['gold', 'narrow'].includes(spec.class));
      assert.deepEqual(colours, []);
    });

    test('a path that cannot be decoded is answered 400', async () => {
      const status = await new Promise((resolve, reject) => {
        const { port } = new URL(api.url);
        httpRequest({ port, host: '127.0.0.1', path: '/v1/%zz' }, (answer) => resolve(answer.resume().statusCode))
          .on('error', reject)
          .end();
      });
      assert.equal(status, 400);
    });
  });
});
