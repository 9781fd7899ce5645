import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { events } from '../../../core/kube/resources.ts';
import type { Resource } from '../../../core/kube/types.ts';
import { sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { apiAudience } from '../../../local/apiserver/auth/service-tokens.ts';
import { ApiCluster, type Ask, EVERYTHING, type Reply } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const RUNS = '/v1/namespaces/default/runs';
const namespace = 'default';

/** No controller runs here. */
describe('an Idempotency-Key', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start({ BERTH_AUDIENCES: `berth,${apiAudience}` });
    ({ token } = await api.user(EVERYTHING));
  });
  afterAll(() => api.close());
  const call = (method: string, path: string, ask: Ask = {}): Promise<Reply> =>
    api.call(method, path, { token, ...ask });
  const post = (path: string, key: string, body: unknown = {}) =>
    call('POST', path, { body, headers: { 'idempotency-key': key } });
  const count = async () => (await api.cluster.client.list(sessions, { namespace })).items.length;
  /** Statuses and how often each came. */
  const tally = (answers: Reply[]) => {
    const statuses = answers.map(({ status }) => status).sort();
    return Object.fromEntries([...new Set(statuses)].map((one) => [one, statuses.filter((s) => s === one).length]));
  };

  test('makes one session of many requests at once with different names, and refuses all others', async () => {
    for (let round = 1; round <= 8; round++) {
      const before = await count();
      const bodies = Array.from({ length: 12 }, (_, number) => ({ metadata: { name: `race-${round}-${number}` } }));
      const answers = await Promise.all(bodies.map((body) => post(SESSIONS, `race-${round}`, body)));
      assert.deepEqual(tally(answers), { 201: 1, 422: 11 }, answers.map(({ text }) => text).join('\n'));
      for (const { problem, status } of answers) if (status === 422) assert.equal(problem.code, 'IdempotencyKeyReused');
      assert.equal(await count(), before + 1);
      const made = answers.find(({ status }) => status === 201)?.body.metadata.name;
      const again = await Promise.all(bodies.map((body) => post(SESSIONS, `race-${round}`, body)));
      assert.deepEqual(tally(again), { 200: 1, 422: 11 });
      assert.equal(again.find(({ status }) => status === 200)?.body.metadata.name, made);
    }
  });

  test('makes one object of requests at once of which some leave the name to the server', async () => {
    for (let round = 1; round <= 5; round++) {
      const before = await count();
      const bodies = Array.from({ length: 8 }, (_, at) => (at % 2 ? {} : { metadata: { name: `mixed-${round}` } }));
      const answers = await Promise.all(bodies.map((body) => post(SESSIONS, `mixed-${round}`, body)));
      const uids = new Set(answers.flatMap(({ body }) => (body.metadata ? [body.metadata.uid] : [])));
      assert.deepEqual([tally(answers), uids.size], [{ 200: 3, 201: 1, 422: 4 }, 1]);
      assert.equal(await count(), before + 1);
    }
  });

  test('makes one turn and one run of many requests at once', async () => {
    await post(SESSIONS, 'for-turns', { metadata: { name: 'turned' } });
    const given = Array.from({ length: 8 }, (_, number) => ({ metadata: { name: `turned-${number}` } }));
    const answers = await Promise.all(given.map((body) => post(`${SESSIONS}/turned/turns`, 'one-turn', body)));
    assert.deepEqual(tally(answers), { 201: 1, 422: 7 });
    const { items } = await api.cluster.client.list(turns, { namespace, fieldSelector: 'spec.session=turned' });
    assert.equal(items.length, 1);
    const wanted = Array.from({ length: 8 }, (_, number) => ({
      metadata: { name: `ran-${number}` },
      spec: { input: 1 },
    }));
    const ran = await Promise.all(wanted.map((body) => post(`${RUNS}?wait=0s`, 'one-run', body)));
    assert.deepEqual(tally(ran), { 202: 1, 422: 7 });
  });

  test('whose request the cluster refuses is not used for another body at the same time', async () => {
    await post(SESSIONS, 'first', { metadata: { name: 'taken-by-first' } });
    const refused = await post(SESSIONS, 'second', { metadata: { name: 'taken-by-first' } });
    assert.equal(refused.problem.code, 'AlreadyExists', refused.text);
    const other = await post(SESSIONS, 'second', { metadata: { name: 'free' } });
    assert.equal(other.problem.code, 'IdempotencyKeyReused');
    assert.match(other.problem.detail, /Session "taken-by-first"/);
    assert.equal((await call('GET', `${SESSIONS}/free`)).status, 404);
  });

  test('is known by its object when its Event is gone', async () => {
    const body = { metadata: { name: 'long-ago' } };
    assert.equal((await post(SESSIONS, 'old', body)).status, 201);
    const { items } = await api.cluster.client.list(events, { namespace });
    const own = items.filter(({ involvedObject }) => involvedObject.name === 'long-ago');
    assert.deepEqual(
      own.map(({ reason }) => reason),
      ['IdempotencyKeyUsed', 'CreatedWithIdempotencyKey'],
    );
    for (const { metadata } of own) await api.cluster.client.delete(events, { namespace, name: metadata.name });
    for (const other of [{}, { metadata: { name: 'not-so-long-ago' } }]) {
      assert.equal((await post(SESSIONS, 'old', other)).problem.code, 'IdempotencyKeyReused');
    }
    assert.equal((await post(SESSIONS, 'old', body)).status, 200);
  });

  test('creates nothing again when its object was deleted, and the refusal says what became of it', async () => {
    const { client } = api.cluster;
    await post(SESSIONS, 'of-gone-turns', { metadata: { name: 'gone-turns' } });
    const cases: [string, string, object, Resource][] = [
      [SESSIONS, 'gone', { metadata: { name: 'gone' } }, sessions],
      [SESSIONS, 'gone-unnamed', {}, sessions],
      [`${RUNS}?wait=0s`, 'gone-run', { spec: { input: 1 } }, sessions],
      [`${SESSIONS}/gone-turns/turns`, 'gone-turn', { spec: { input: 1 } }, turns],
    ];
    for (const [path, key, body, resource] of cases) {
      const made = await post(path, key, body);
      const { name, uid } = (made.body.session ?? made.body).metadata;
      await client.delete(resource, { namespace, name });
      for (let repeat = 0; repeat < 2; repeat++) {
        const again = await post(path, key, body);
        assert.deepEqual([again.status, again.problem.code], [409, 'Gone'], again.text);
        assert.match(
          again.problem.detail,
          new RegExp(
            `^${resource.kind} "${name}" with the UID ${uid} was created with this Idempotency-Key, and was deleted since\\.`,
          ),
        );
      }
      assert.equal(
        (await post(path, key, { ...body, metadata: { labels: { a: 'b' } } })).problem.code,
        'IdempotencyKeyReused',
      );
      assert.equal(
        (await client.list(resource, { namespace, fieldSelector: `metadata.name=${name}` })).items.length,
        0,
      );
    }
    const other = await call('POST', SESSIONS, { body: { metadata: { name: 'gone' } } });
    assert.equal(other.status, 201);
    const again = await post(SESSIONS, 'gone', { metadata: { name: 'gone' } });
    assert.equal(again.problem.code, 'Gone');
    assert.match(
      again.problem.detail,
      new RegExp(`another Session, with the UID ${other.body.metadata.uid}, has its name now`),
    );
    assert.equal((await post(SESSIONS, 'gone-2', { metadata: { name: 'gone-2' } })).status, 201);
  });

  test('whose request created nothing may be repeated, also where the answer to the create was lost', async () => {
    const { faults } = api.cluster.server;
    const creates = ({ resource, verb }: { resource?: string; verb?: string }) =>
      resource === 'sessions' && verb === 'create';
    faults.failNext(creates, { code: 403, reason: 'Forbidden', message: 'induced' });
    const body = { metadata: { name: 'tried-twice' } };
    assert.equal((await post(SESSIONS, 'tried-twice', body)).status, 403);
    const made = await post(SESSIONS, 'tried-twice', body);
    assert.equal(made.status, 201, made.text);
  });

  test('protects also what a request created that ended before it could note it, once it was repeated', async () => {
    const { client, server } = api.cluster;
    const body = { metadata: { name: 'noted-late' } };
    const notes = ({ resource, name, verb }: { resource?: string; name?: string; verb?: string }) =>
      resource === 'events' && verb === 'create' && !name?.startsWith('idempotency-key');
    let seen = 0;
    // The first Event is the claim, the second the note.
    server.faults.failNext((facts) => notes(facts) && ++seen === 2, {
      code: 403,
      reason: 'Forbidden',
      message: 'induced',
    });
    assert.equal((await post(SESSIONS, 'noted-late', body)).status, 403);
    const repeated = await post(SESSIONS, 'noted-late', body);
    assert.equal(repeated.status, 200, repeated.text);
    await client.delete(sessions, { namespace, name: 'noted-late' });
    assert.equal((await post(SESSIONS, 'noted-late', body)).problem.code, 'Gone');
  });

  test('finds what it has made, whatever the class and the session allow by now', async () => {
    await api.cluster.createClass('narrowed', { agent: { command: ['cat'] } });
    const session = { metadata: { name: 'early' }, spec: { class: 'narrowed' } };
    const run = { spec: { class: 'narrowed', input: 1 } };
    const turn = { spec: { input: 1 } };
    const repeats = [
      () => post(SESSIONS, 'early', session),
      () => post(`${RUNS}?wait=0s`, 'early-run', run),
      () => post(`${SESSIONS}/early/turns`, 'early-turn', turn),
    ];
    const answersOf = async () => {
      const answers: Reply[] = [];
      for (const repeat of repeats) answers.push(await repeat());
      return answers.map(({ status, body }) => [status, (body.session ?? body).metadata?.uid]);
    };
    const uids = (await answersOf()).map(([, uid]) => uid);
    await api.cluster.client.delete(sessionclasses, { name: 'narrowed' });
    await api.cluster.client.patch(
      sessions,
      { namespace, name: 'early' },
      { metadata: { finalizers: ['berth.dev/x'] } },
    );
    await api.cluster.client.delete(sessions, { namespace, name: 'early' });
    assert.deepEqual(await answersOf(), [
      [200, uids[0]],
      [202, uids[1]],
      [200, uids[2]],
    ]);
    const others = [
      await post(`${RUNS}?wait=0s`, 'late-run', run),
      await post(`${SESSIONS}/early/turns`, 'late-turn', turn),
      await call('POST', `${RUNS}?wait=0s`, { body: run }),
    ];
    const codes = others.map(({ problem }) => problem.code);
    assert.deepEqual(codes, ['ClassNotFound', 'SessionTerminating', 'ClassNotFound']);
  });

  test('finds the decision that it has made, whatever the turn asks by now', async () => {
    const approver = await api.user([{ verbs: ['create'], resources: ['approvals'] }]);
    await post(SESSIONS, 'for-asking', { metadata: { name: 'asks' } });
    await post(`${SESSIONS}/asks/turns`, 'for-asking', { metadata: { name: 'asks-1' }, spec: { input: 1 } });
    const ask = (id: string) => {
      const place = { process: 'Ended', incarnation: 1, seq: 1, ranMs: 1, since: '2030-01-01T00:00:00Z' };
      const status = { phase: 'AwaitingApproval', approval: { id, prompt: 'May I?', ...place } } as const;
      return api.cluster.client.patch(turns, { namespace, name: 'asks-1' }, { status }, { subresource: 'status' });
    };
    const [first, second] = ['a'.repeat(16), 'b'.repeat(16)];
    const decide = (key: string, decision = 'Approve') =>
      call('POST', `${SESSIONS}/asks/turns/asks-1/approvals`, {
        token: approver.token,
        body: { spec: { requestId: first, decision } },
        headers: { 'idempotency-key': key },
      });
    await ask(first);
    const made = await decide('decided');
    assert.equal(made.status, 201, made.text);
    await ask(second);
    const again = await decide('decided');
    assert.deepEqual([again.status, again.body.metadata?.uid], [200, made.body.metadata.uid]);
    assert.equal((await decide('decided', 'Deny')).problem.code, 'IdempotencyKeyReused');
    // The same decision by the same user is no second one; a second one is refused, whatever the turn asks by now.
    assert.deepEqual((await decide('decided-late')).body.metadata?.uid, made.body.metadata.uid);
    assert.equal((await decide('decided-late', 'Deny')).problem.code, 'AlreadyDecided');
  });

  test('of a session is no key of another user’s run, whatever their names', async () => {
    const [bob, other] = ['bob', 'bob runs'].map((username) =>
      api.cluster.server.mintToken({ username, groups: ['system:masters'] }),
    ) as [string, string];
    const headers = { 'idempotency-key': 'of-both' };
    const run = { metadata: { name: 'of-bob' }, spec: { input: 1 } };
    assert.equal((await call('POST', `${RUNS}?wait=0s`, { token: bob, headers, body: run })).status, 202);
    const body = { metadata: { name: 'of-the-other' } };
    for (const status of [201, 200]) {
      const answer = await call('POST', SESSIONS, { token: other, headers, body });
      assert.equal(answer.status, status, answer.text);
    }
  });

  test('of a suspension counts as a whole, and for its user', async () => {
    await post(SESSIONS, 'for-suspend', { metadata: { name: 'sleepy' } });
    const suspend = async (key: string, by = token) => {
      const answer = await call('POST', `${SESSIONS}/sleepy/suspend`, {
        headers: { 'idempotency-key': key },
        token: by,
      });
      assert.equal(answer.status, 202, answer.text);
      return answer.body.spec.suspendRequest as string;
    };
    const prefix = 'p'.repeat(200);
    const first = await suspend(`${prefix}1`);
    assert.notEqual(await suspend(`${prefix}2`), first);
    assert.equal(await suspend(`${prefix}1`), first);
    const other = await api.user([{ verbs: ['*'], resources: ['sessions'] }]);
    assert.notEqual(await suspend(`${prefix}1`, other.token), first);
  });
});
