import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Stored } from '../../../core/kube/types.ts';
import { type Session, sessions, type Turn, turns } from '../../../core/resources/kinds.ts';
import { installManifests } from '../../../local/manifests.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACE = 'default';
const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

/** Here the test is the controller, so that every answer comes when it wants. */
describe('waiting for a turn', () => {
  const caller = new Caller(ROOT);
  let server: TestServer;
  const env = { KUBECONFIG: join(caller.root, 'kubeconfig') };
  before(async () => {
    server = await testServer();
    await installManifests(server.store, [join(ROOT, 'manifests'), join(ROOT, 'manifests', 'embedded')]);
    writeFileSync(env.KUBECONFIG, JSON.stringify(server.kubeconfig('test-admin')));
  });
  after(async () => {
    await server.close();
    caller.remove();
  });

  const run = (name: string, ...flags: string[]) =>
    caller.start(['run', '--name', name, ...flags, '--result', 'json', '--', 'true'], { env });
  const given = (name: string): Promise<Stored<Turn>> =>
    eventually(() => server.store.get(turns, { namespace: NAMESPACE, name }), { what: 'the turn is created' });
  const end = (name: string, status: Turn['status'] = { phase: 'Succeeded', output: name }) =>
    server.store.patch(turns, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });
  const say = (name: string, status: Session['status']) =>
    server.store.patch(sessions, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });

  test('the turn belongs to its session and has the time-out and input of the flags', async () => {
    const { ended } = run('owned', '--timeout', '5s', '--input', '{"a": 1}');
    const turn = await given('owned');
    const session = await server.store.get(sessions, { namespace: NAMESPACE, name: 'owned' });
    assert.deepEqual(turn.spec, { session: 'owned', cancel: false, input: { a: 1 }, timeout: '5s' });
    assert.equal(turn.metadata.ownerReferences?.[0]?.uid, session.metadata.uid);
    await end('owned');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'owned\n']);
  });

  test('says on stderr why it takes long: no controller, a full cluster', async () => {
    const { child, ended } = run('slow');
    let told = '';
    child.stderr?.on('data', (chunk) => {
      told += chunk;
    });
    await given('slow');
    await eventually(() => /no controller has seen session slow/.test(told), {
      what: 'the missing controller is told',
    });
    await say('slow', { conditions: [condition('Admitted', 'False', 'AtCapacity', 'All 4 places are taken.')] });
    await eventually(() => /waiting: AtCapacity: All 4 places/.test(told), { what: 'the full cluster is told' });
    await end('slow');
    assert.equal((await ended).code, 0);
  });

  test('goes on when the API server’s watches break', async () => {
    const { child, ended } = run('cut');
    await given('cut');
    let told = '';
    child.stderr?.on('data', (chunk) => {
      told += chunk;
    });
    await eventually(() => /waiting:/.test(told), { what: 'the command waits' });
    server.faults.dropWatches();
    await end('cut');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'cut\n']);
  });

  test('ends with 1 when the turn is deleted', async () => {
    const { ended } = run('deleted');
    await given('deleted');
    await server.store.delete(sessions, { namespace: NAMESPACE, name: 'deleted' });
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stderr, /turn deleted was deleted before it ended/);
  });

  test('ends at once on a second Ctrl-C, while the turn is still asked to end', async () => {
    const { child, ended } = run('stuck');
    await given('stuck');
    const cancelled = async () => (await given('stuck')).spec.cancel;
    child.kill('SIGINT');
    await eventually(cancelled, { what: 'the cancellation is asked for' });
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.equal(code, 130);
    assert.doesNotMatch(stderr, /has not ended yet/);
  });

  test('prints what came all the same when the turn succeeded before Ctrl-C reached it', async () => {
    const { child, ended } = run('late');
    await given('late');
    child.kill('SIGINT');
    await eventually(async () => (await given('late')).spec.cancel, { what: 'the cancellation is asked for' });
    await end('late');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'late\n']);
  });
});

describe('without a cluster', () => {
  const caller = new Caller(ROOT);
  after(() => caller.remove());

  test('run ends with 3 and says how to start one', async () => {
    const { code, stdout, stderr } = await caller.berth(['run', '--', 'true']);
    assert.deepEqual({ code, stdout }, { code: 3, stdout: '' });
    assert.match(stderr, /no cluster is configured.*berth local up --detach/s);
  });
  test('local kubeconfig ends with 3 and says how to start one', async () => {
    const { code, stdout, stderr } = await caller.berth(['local', 'kubeconfig']);
    assert.deepEqual({ code, stdout }, { code: 3, stdout: '' });
    assert.match(stderr, /no embedded cluster runs.*berth local up --detach/s);
  });
  test('that answers, a command ends with 3', async () => {
    const kubeconfig = join(caller.root, 'dead');
    const cluster = { name: 'x', cluster: { server: 'http://127.0.0.1:9' } };
    const context = { name: 'x', context: { cluster: 'x', user: 'x' } };
    const text = { 'current-context': 'x', clusters: [cluster], users: [{ name: 'x', user: {} }], contexts: [context] };
    writeFileSync(kubeconfig, JSON.stringify(text));
    const { code, stderr } = await caller.berth(['--kubeconfig', kubeconfig, 'run', '--', 'true']);
    assert.equal(code, 3);
    assert.match(stderr, /does not answer.*ECONNREFUSED/s);
  });
  test('what is wrong with the input is told all the same', async () => {
    assert.equal((await caller.berth(['run', '--input', '{', '--', 'true'])).code, 2);
  });
});

describe('help', () => {
  const caller = new Caller(ROOT);
  after(() => caller.remove());
  const commands = [
    'run',
    'create',
    'turn',
    'list',
    'get',
    'logs',
    'suspend',
    'resume',
    'cancel',
    'delete',
    'local',
    'local up',
    'local down',
    'local kubeconfig',
  ];

  for (const command of commands) {
    test(`of ${command} has an example`, async () => {
      const { code, stdout } = await caller.berth([...command.split(' '), '--help']);
      assert.equal(code, 0);
      assert.match(stdout, new RegExp(`Example:\\n.*berth ${command}`));
    });
  }
  test('of the kubectl plugin shows how it is called there', async () => {
    const { stdout } = await caller.berth(['run', '--help'], { env: { BERTH_INVOKED_AS: 'kubectl session' } });
    assert.match(stdout, /Usage: kubectl session run/);
  });
});
