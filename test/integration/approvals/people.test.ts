import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { isForbidden, isInvalid } from '../../../core/kube/errors.ts';
import { events } from '../../../core/kube/resources.ts';
import { type Approval, approvals, turns } from '../../../core/resources/kinds.ts';
import { OVERRIDABLE } from '../../../core/resources/overridable.ts';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster } from '../api/support.ts';
import { Caller } from '../cli/support.ts';
import { ASKS, asked, decide, outputOf } from './support.ts';

const RUN = [{ verbs: ['create', 'get', 'list'], resources: ['sessions', 'turns'] }];
const APPROVE = [
  { verbs: ['create', 'get', 'list'], resources: ['approvals'] },
  { verbs: ['get', 'list'], resources: ['sessions', 'turns'] },
];

describe('people who decide', () => {
  let api: ApiCluster;
  let caller: Caller;
  let runner: { name: string; token: string };
  let approver: { name: string; token: string };
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    runner = await api.user(RUN);
    approver = await api.user(APPROVE);
    caller = new Caller(join(import.meta.dirname, '..', '..', '..'), { KUBECONFIG: api.cluster.kubeconfig });
  });
  afterAll(async () => {
    caller.remove();
    await api.close();
  });
  const path = (turn: string, session: string) => `/v1/namespaces/default/sessions/${session}/turns/${turn}/approvals`;
  /** A client of the Kubernetes API with the rights of a user. */
  const kube = (user: { name: string }) => api.cluster.as(user.name);

  test('over HTTP: the caller is on record, and the first decision stands', async () => {
    await api.cluster.create('http', { agent: ASKS });
    await api.cluster.turn('http', 'http-1', { questions: ['May I?'] });
    await asked(api.cluster, 'http-1');
    const say = (spec: object, headers: Record<string, string> = {}) =>
      api.call('POST', path('http-1', 'http'), { token: approver.token, body: { spec }, headers });
    const shown = await api.call('GET', '/v1/namespaces/default/sessions/http/turns/http-1', { token: approver.token });
    const { prompt, payload, requestId } = shown.body.status.approval;
    assert.deepEqual([prompt, payload], ['May I?', { number: 1 }]);

    const wrong = await say({ requestId: 'f'.repeat(16), decision: 'Approve' });
    assert.deepEqual([wrong.status, wrong.problem.code], [409, 'RequestNotPending']);
    const large = await say({ requestId, decision: 'Approve', response: 'x'.repeat(17_000) });
    assert.deepEqual([large.status, large.problem.code], [422, 'ResponseTooLarge']);
    const odd = await say({ requestId, decision: 'Perhaps' });
    assert.equal(odd.problem.errors?.[0]?.field, 'spec.decision');

    const key = { 'idempotency-key': 'k1' };
    const made = await say({ requestId, decision: 'Approve', response: [1] }, key);
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.spec.requester, approver.name);
    assert.equal((await say({ requestId, decision: 'Approve', response: [1] }, key)).status, 200);
    const text = new RegExp(
      `^${approver.name} has approved request "${requestId}" of turn "http-1" already, at ${made.body.metadata.creationTimestamp}\\. The first decision counts\\.$`,
    );
    const isDecided = async () => {
      const second = await say({ requestId, decision: 'Deny' });
      assert.deepEqual([second.status, second.problem.code], [409, 'AlreadyDecided']);
      assert.match(second.problem.detail, text);
      const other = await say({ requestId, decision: 'Approve', response: [2] }, { 'idempotency-key': 'k2' });
      assert.equal(other.problem.code, 'AlreadyDecided');
      const another = await api.user(APPROVE);
      const body = { spec: { requestId, decision: 'Approve', response: [1] } };
      const third = await api.call('POST', path('http-1', 'http'), { token: another.token, body });
      assert.equal(third.problem.code, 'AlreadyDecided');
      const again = await say({ requestId, decision: 'Approve', response: [1] });
      assert.deepEqual([again.status, again.body.metadata.uid], [200, made.body.metadata.uid]);
    };
    await isDecided();
    const turn = await api.cluster.ended('http-1');
    assert.deepEqual(outputOf<{ told: unknown }>(turn).told, [{ decision: 'Approve', response: [1] }]);
    assert.equal(turn.status?.approval?.decided?.by, approver.name);
    await isDecided();
    const list = await api.call('GET', path('http-1', 'http'), { token: approver.token });
    assert.deepEqual(
      list.body.items.map((item: Approval) => item.spec.decision),
      ['Approve'],
    );
    const late = await say({ requestId: 'f'.repeat(16), decision: 'Approve' });
    assert.equal(late.problem.code, 'RequestNotPending');
  });

  test('a wait over HTTP ends when the turn asks, goes on once somebody has decided, and past a question that the caller knows', async () => {
    await api.cluster.create('waited', { agent: ASKS });
    await api.cluster.turn('waited', 'waited-1', { questions: ['May I?', 'And now?'] });
    const place = '/v1/namespaces/default/sessions/waited/turns/waited-1';
    const wait = async (query = '') => {
      const { body, text } = await api.call('GET', `${place}?wait=50s${query}`, { token: approver.token });
      assert.ok(body.status, text);
      return [body.status.phase, body.status.approval?.prompt, body.status.approval?.requestId] as const;
    };
    const [phase, prompt, first] = await wait();
    assert.deepEqual([phase, prompt], ['AwaitingApproval', 'May I?']);
    assert.deepEqual(await wait(), [phase, prompt, first], 'nobody has decided yet');
    const past = wait(`&requestId=${first}`);
    const spec = { requestId: first, decision: 'Approve' };
    const made = await api.call('POST', `${place}/approvals`, { token: approver.token, body: { spec } });
    assert.equal(made.status, 201, made.text);
    const [, , second] = await wait();
    assert.notEqual(second, first, 'the decided question ends no wait');
    assert.deepEqual(await past, ['AwaitingApproval', 'And now?', second]);
    const ended = wait(`&requestId=${second}`);
    await caller.ok('approve', 'waited');
    assert.equal((await ended)[0], 'Succeeded');
  });

  test('a run over HTTP that asks is answered, and its repeat after the decision has the result', async () => {
    const body = { metadata: { name: 'run-asks' }, spec: { agent: ASKS, input: { questions: ['May I?'] } } };
    const run = () =>
      api.call('POST', '/v1/namespaces/default/runs?wait=50s', {
        token: runner.token,
        body,
        headers: { 'idempotency-key': 'run-asks' },
      });
    const waiting = await run();
    assert.deepEqual([waiting.status, waiting.body.phase], [202, 'AwaitingApproval'], waiting.text);
    assert.equal(waiting.body.turn.status.approval.prompt, 'May I?');
    await caller.ok('approve', 'run-asks');
    const over = await run();
    assert.deepEqual([over.status, over.body.phase], [200, 'Succeeded']);
  });

  test('users who may run cannot approve, and users who may approve cannot run, over HTTP and with kubectl alike', async () => {
    await api.cluster.create('rights', { agent: ASKS });
    await api.cluster.turn('rights', 'rights-1', { questions: ['May I?'] });
    const waiting = await asked(api.cluster, 'rights-1');
    const spec = { requestId: waiting.status?.approval?.id ?? '', decision: 'Approve' as const };
    const post = (user: { token: string }, where: string, body: object) =>
      api.call('POST', where, { token: user.token, body });
    const mayNot = await post(runner, path('rights-1', 'rights'), { spec });
    assert.deepEqual([mayNot.status, mayNot.problem.code], [403, 'Forbidden']);
    assert.match(mayNot.problem.detail, /may not create approvals\.berth\.dev/);
    const more = { spec: { input: { questions: [] } } };
    assert.equal((await post(approver, '/v1/namespaces/default/sessions/rights/turns', more)).status, 403);

    const [running, approving] = await Promise.all([kube(runner), kube(approver)]);
    const object = { metadata: { name: 'direct', namespace: 'default' }, spec: { turn: 'rights-1', ...spec } };
    await assert.rejects(running.create(approvals, object), isForbidden);
    const turn = { metadata: { name: 'x', namespace: 'default' }, spec: { session: 'rights', cancel: false } };
    await assert.rejects(approving.create(turns, turn), isForbidden);
    await approving.create(approvals, object);
    assert.equal((await api.cluster.ended('rights-1')).status?.phase, 'Succeeded');
  });

  test('where the class refuses it, nobody decides on the requests of their own turns: over HTTP, with the CLI or with kubectl', async () => {
    const { cluster } = api;
    await cluster.createClass('two-people', { overrides: [...OVERRIDABLE], selfApproval: 'Refused' });
    const both = await api.user([...RUN, ...APPROVE]);
    const post = (user: { token: string }, where: string, body: object) =>
      api.call('POST', where, { token: user.token, body });
    const spec = { class: 'two-people', agent: ASKS };
    const made = await post(both, '/v1/namespaces/default/sessions', { metadata: { name: 'own' }, spec });
    assert.equal(made.status, 201, made.text);
    const asks = { metadata: { name: 'own-1' }, spec: { input: { questions: ['May I?'] } } };
    assert.equal((await post(both, '/v1/namespaces/default/sessions/own/turns', asks)).status, 201);
    const turn = await asked(cluster, 'own-1');
    assert.deepEqual(turn.status?.granted?.notBy, [both.name]);
    const decision = { requestId: turn.status?.approval?.id ?? '', decision: 'Approve' as const };
    const refused = await post(both, path('own-1', 'own'), { spec: decision });
    assert.deepEqual([refused.status, refused.problem.code], [403, 'SelfApproval']);
    assert.match(
      refused.problem.detail,
      /^system:serviceaccount:default:user-\d+ has asked for turn "own-1" .* somebody else has to decide\.$/,
    );
    const metadata = { name: 'by-myself', namespace: 'default' };
    const direct = { ...decision, turn: 'own-1', requester: both.name };
    await (await kube(both)).create(approvals, { metadata, spec: direct });
    const anonymous = { metadata: { ...metadata, name: 'by-nobody' }, spec: { ...direct, requester: undefined } };
    await cluster.client.create(approvals, anonymous);
    for (const name of ['by-myself', 'by-nobody']) {
      const told = `Approval ${name} for request "${decision.requestId}" of turn own-1 counts for nothing: `;
      await eventually(
        async () => {
          const { items } = await cluster.client.list(events, { namespace: 'default' });
          return items.some(({ message }) => message?.startsWith(told));
        },
        { what: told },
      );
    }
    assert.equal((await post(approver, path('own-1', 'own'), { spec: decision })).status, 201);
    const { status } = await cluster.ended('own-1');
    assert.deepEqual([status?.phase, status?.approval?.decided?.by], ['Succeeded', approver.name]);

    await caller.ok('create', 'mine', '--class', 'two-people', '--', ...ASKS.command);
    await caller.ok('turn', 'mine', '--name', 'mine-1', '--detach', '--input', '{"questions": ["May I?"]}');
    await asked(cluster, 'mine-1');
    const self = await caller.berth(['approve', 'mine']);
    assert.deepEqual([self.code, /admin has asked for turn "mine-1"/.test(self.stderr)], [2, true], self.stderr);

    await cluster.create('unknown', { class: 'two-people', agent: ASKS });
    await cluster.turn('unknown', 'unknown-1', { questions: ['May I?'] });
    const failed = await cluster.ended('unknown-1');
    assert.deepEqual([failed.status?.phase, failed.status?.error?.code], ['Failed', 'RequesterUnknown']);
  });

  test('an Approval cannot be changed', async () => {
    const { client } = api.cluster;
    await decide(api.cluster, { metadata: { name: 'nobody' } } as never, { requestId: 'r', decision: 'Deny' });
    const [made] = (await client.list(approvals, { namespace: 'default', fieldSelector: 'spec.turn=nobody' })).items;
    assert.ok(made);
    const ref = { namespace: 'default', name: made.metadata.name };
    await assert.rejects(client.patch(approvals, ref, { spec: { decision: 'Approve' } }), (error) => {
      return isInvalid(error) && /cannot be changed/.test((error as Error).message);
    });
  });

  test('berth approve decides on what a session’s turn asks; get shows it', async () => {
    await api.cluster.create('cli', { agent: ASKS });
    await api.cluster.turn('cli', 'cli-1', { questions: ['May I?', 'And now?'] });
    const { id } = (await asked(api.cluster, 'cli-1')).status?.approval ?? {};
    const shown = await caller.ok('get', 'turn', 'cli-1');
    assert.match(shown, new RegExp(`asks +May I\\? \\(request ${id}, `));
    assert.match(shown, /decide +berth approve cli-1/);
    const wrong = await caller.berth(['approve', 'cli', '--request', 'other']);
    assert.deepEqual([wrong.code, wrong.stderr.includes(`asks ${id}, not other`)], [2, true]);
    const { code, stdout, stderr } = await caller.berth(['approve', 'cli', '--response', '{"budget": 5}']);
    assert.deepEqual([code, stdout], [0, 'turn.berth.dev/cli-1 approved\n']);
    assert.match(stderr, /turn cli-1 asks: May I\?/);
    await asked(api.cluster, 'cli-1', 'And now?');
    const noSession = await caller.berth(['approve', 'session.berth.dev/cli-1']);
    assert.deepEqual([noSession.code, /there is no session or turn "cli-1"/.test(noSession.stderr)], [2, true]);
    const noTurn = await caller.berth(['approve', 'turn.berth.dev/cli']);
    assert.deepEqual([noTurn.code, /there is no turn "cli"/.test(noTurn.stderr)], [2, true]);
    const noName = await caller.berth(['approve', 'pod/cli-1']);
    assert.deepEqual([noName.code, /a name is a DNS label/.test(noName.stderr)], [2, true]);
    const denied = await caller.ok('approve', 'turn.berth.dev/cli-1', '--deny', '--note', 'no');
    assert.equal(denied, 'turn.berth.dev/cli-1 denied\n');
    const turn = await api.cluster.ended('cli-1');
    assert.deepEqual(outputOf<{ told: unknown }>(turn).told, [
      { decision: 'Approve', response: { budget: 5 } },
      { decision: 'Deny', note: 'no' },
    ]);
    const late = await caller.berth(['approve', 'session.berth.dev/cli']);
    assert.deepEqual([late.code, /no turn of session cli asks anything/.test(late.stderr)], [2, true]);
    assert.match(await caller.ok('get', 'turn', 'cli-1'), /decided +Deny: no \(by admin, Approval approval-/);
  });

  test('a wait for a turn says that it asks, and how to decide', async () => {
    await api.cluster.create('waits', { agent: ASKS });
    const waiting = caller.start(['turn', 'waits', '--name', 'waits-1', '--input', '{"questions": ["May I?"]}']);
    let told = '';
    waiting.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await eventually(() => told.includes('to decide: berth approve waits'), { what: 'told how' });
    await caller.ok('approve', 'waits');
    assert.equal((await waiting.ended).code, 0);
  });
});
