import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { persistentVolumeClaims } from '../../../core/kube/resources.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const COUNTER = pythonAgent(`
def count(path):
    n = int(open(path).read()) + 1 if os.path.exists(path) else 1
    open(path, 'w').write(str(n))
    return n
answer({'state': count(state + '/count'), 'work': count('count'), 'pwd': os.getcwd(), 'uid': os.getuid(), 'restored': request['session'].get('restored'), 'incarnation': request['session']['incarnation']})
`);
interface Answer {
  state: number;
  work: number;
  pwd: string;
  uid: number;
  incarnation: number;
  restored?: { workspaceReset: boolean; note: string };
}

describe('data that a session keeps', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  const answer = async (turn: string) => {
    const { status } = await cluster.ended(turn);
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status?.error));
    return status?.output as Answer;
  };
  const suspended = (name: string) =>
    cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended' && !status.podName);
  const condition = (session: Awaited<ReturnType<typeof suspended>>, type: string) =>
    session.status?.conditions?.find((one) => one.type === type);

  test.concurrent('a volume survives suspension, at the same path and for the same user, and goes with the session', async () => {
    const workspace = { type: 'Volume', size: '1Gi' } as const;
    const { metadata } = await cluster.create('volume', {
      agent: COUNTER,
      persistence: { workspace },
      timeouts: { idle: '1s' },
      input: null,
    });
    const first = await answer('volume');
    const ref = { namespace: 'default', name: `w-${metadata.uid}` };
    const claim = await cluster.client.get(persistentVolumeClaims, ref);
    assert.equal(claim.spec.resources.requests.storage, '1Gi');
    assert.equal(claim.metadata.ownerReferences?.[0]?.uid, metadata.uid);
    await suspended('volume');
    await cluster.turn('volume', 'volume-2', null);
    const second = await answer('volume-2');
    assert.deepEqual([second.state, second.work, second.incarnation], [2, 2, 2]);
    assert.deepEqual([second.pwd, second.uid], [first.pwd, first.uid]);
    assert.equal(second.restored?.workspaceReset, false);
    await cluster.delete('volume');
    await eventually(async () => {
      const { items } = await cluster.client.list(persistentVolumeClaims, { namespace: 'default' });
      return items.every((one) => one.metadata.name !== ref.name);
    });
  });

  test.concurrent('a workspace that cannot work is refused with its field, and neither it nor the state can be changed later', async () => {
    const volume = { type: 'Volume', size: '1Gi', mountPath: '/src' } as const;
    const refused = (workspace: object, message: RegExp) =>
      assert.rejects(
        cluster.create('wrong', { persistence: { workspace: { type: 'Volume', ...workspace } } }),
        message,
      );
    await refused({}, /workspace\.size: Invalid value: a Volume needs a size/);
    const own = ['/tmp/x', '/berth', '/berth-runner', '/berth-secrets/x', '/opt/berth'];
    const system = ['/run/berth', '/var/run/secrets', '/proc', '/sys/fs', '/dev/shm', '/etc', '/bin', '/usr/lib/x'];
    for (const mountPath of [...own, ...system, '/usr', '/usr/local', '/opt', '/var']) {
      await refused({ size: '1Gi', mountPath }, /workspace\.mountPath: .*a directory that is not free/);
    }
    for (const mountPath of ['/usr/src/app', '/var/lib/data', '/opt/work', '/runs', '/varied']) {
      const name = `fits${mountPath.replaceAll('/', '-')}`;
      await cluster.create(name, { persistence: { workspace: { ...volume, mountPath } }, suspend: true });
    }
    for (const mountPath of ['/', '/a/../b', '//run', '/./run']) {
      await refused({ size: '1Gi', mountPath }, /workspace\.mountPath/);
    }
    await cluster.create('fixed', { persistence: { workspace: volume }, suspend: true });
    const change = (persistence: object) => cluster.patch('fixed', { persistence });
    await assert.rejects(change({ workspace: { ...volume, size: '2Gi' } }), /the workspace cannot change/);
    await assert.rejects(change({ state: false }), /whether there is a state cannot change/);
    await change({ maxState: '1Mi' });
  });

  test.concurrent('a volume that was deleted meanwhile is made anew, and the agent is told', async () => {
    const persistence = { workspace: { type: 'Volume', size: '1Gi' } } as const;
    const { metadata } = await cluster.create('lost-volume', {
      agent: COUNTER,
      persistence,
      timeouts: { idle: '1s' },
      input: null,
    });
    await answer('lost-volume');
    await suspended('lost-volume');
    await cluster.client.delete(persistentVolumeClaims, { namespace: 'default', name: `w-${metadata.uid}` });
    await cluster.turn('lost-volume', 'lost-volume-2', null);
    const { state, work, restored } = await answer('lost-volume-2');
    assert.deepEqual([state, work, restored?.workspaceReset], [2, 1, true]);
  });

  test('a claim that is refused is said with the API server’s own words, and fails the turn', async () => {
    const match = (request: { method: string; resource?: string }) =>
      request.method === 'POST' && request.resource === 'persistentvolumeclaims';
    const message = 'persistentvolumeclaims is forbidden: no volumes on Sundays';
    cluster.server.faults.failNext(match, { status: 'Failure', code: 403, reason: 'Forbidden', message } as never, 1);
    const persistence = { workspace: { type: 'Volume', size: '1Gi' } } as const;
    await cluster.create('refused', { agent: COUNTER, persistence, input: null });
    const { status } = await cluster.ended('refused');
    assert.equal(status?.error?.code, 'PodForbidden');
    assert.match(status?.error?.message ?? '', /PersistentVolumeClaim w-.*no volumes on Sundays/);
  });

  test('a quota for volumes is waited for', async () => {
    const match = (request: { method: string; resource?: string }) =>
      request.method === 'POST' && request.resource === 'persistentvolumeclaims';
    const message = 'exceeded quota: storage, requested: 1Gi, used: 9Gi, limited: 9Gi';
    cluster.server.faults.failNext(match, { status: 'Failure', code: 403, reason: 'Forbidden', message } as never, 2);
    const persistence = { workspace: { type: 'Volume', size: '1Gi' } } as const;
    await cluster.create('quota', { agent: COUNTER, persistence, input: null });
    await cluster.event('quota', 'QuotaExceeded');
    assert.equal((await answer('quota')).work, 1);
  });

  test.concurrent('no state: an idle session keeps its pod, and one that loses it starts from nothing', async () => {
    const timeouts = { idle: '500ms', lifetime: '10m' };
    await cluster.create('stateless', { agent: COUNTER, persistence: { state: false }, timeouts, input: null });
    assert.equal((await answer('stateless')).state, 1);
    const counted = await cluster.until('stateless', 'counted', ({ status }) => status?.turns?.total === 1);
    assert.equal(counted.status?.state, undefined);
    assert.equal(condition(counted, 'StatePersisted')?.reason, 'PersistenceOff');
    await cluster.turn('stateless', 'stateless-2', null);
    assert.equal((await answer('stateless-2')).state, 2);
    await cluster.create('stateful', { agent: COUNTER, timeouts: { idle: '1s' }, input: null });
    await answer('stateful');
    await suspended('stateful');
    const [pod] = await cluster.podsOf('stateless');
    assert.ok(pod, 'it is not reclaimed');
    await cluster.kill(pod);
    const gone = await suspended('stateless');
    assert.equal(gone.status?.state, undefined);
    await cluster.turn('stateless', 'stateless-3', null);
    const third = await answer('stateless-3');
    assert.deepEqual([third.state, third.incarnation, third.restored?.workspaceReset], [1, 2, true]);
    assert.match(third.restored?.note ?? '', /nothing of the former one was kept/);
  });

  test.concurrent('no state without a lifetime is refused, with the field', async () => {
    await cluster.create('endless', { agent: COUNTER, persistence: { state: false }, input: null });
    assert.match(
      (await cluster.ended('endless')).status?.error?.message ?? '',
      /^spec\.timeouts\.lifetime: is not set/,
    );
    const persistence = { state: false };
    await assert.rejects(cluster.createClass('endless', { persistence }), /set timeouts\.lifetime too/);
  });

  test.concurrent('a state above maxState fails the turn, and the earlier one stays', async () => {
    const agent = pythonAgent(`
path = state + '/f'
before = os.path.getsize(path) if os.path.exists(path) else 0
open(path, 'w').write('x' * request['input'])
answer(before)
`);
    await cluster.create('bounded', { agent, persistence: { maxState: '20k' }, input: 5000 });
    await cluster.ended('bounded');
    const { status } = await cluster.until('bounded', 'counted', (session) => session.status?.turns?.total === 1);
    await cluster.turn('bounded', 'bounded-2', 50_000);
    const turn = await cluster.ended('bounded-2');
    assert.deepEqual(
      [turn.status?.phase, turn.status?.error?.code, turn.status?.output],
      ['Failed', 'StateTooLarge', 5000],
    );
    assert.match(turn.status?.error?.message ?? '', /has 51712 bytes .* at most 20000 /);
    const later = await cluster.until('bounded', 'counted', (session) => session.status?.turns?.total === 2);
    assert.deepEqual(later.status?.state, status?.state);
    const [pod] = await cluster.podsOf('bounded');
    await cluster.kill(pod as NonNullable<typeof pod>);
    await suspended('bounded');
    await cluster.turn('bounded', 'bounded-3', 1);
    assert.equal((await cluster.ended('bounded-3')).status?.output, 5000);
  });

  test.concurrent('a session whose state is above maxState keeps its pod and says so, and leaves with all it has once that is raised', async () => {
    const agent = pythonAgent(`
path = state + '/f'
before = os.path.getsize(path) if os.path.exists(path) else 0
if request['input']:
    open(path, 'w').write('x' * request['input'])
answer(before)
`);
    await cluster.create('grown', { agent, persistence: { maxState: '20k' }, input: 50_000 });
    assert.equal((await cluster.ended('grown')).status?.error?.code, 'StateTooLarge');
    const tooLarge = /has 51712 bytes .* at most 20000 /;
    const said = await cluster.until('grown', 'counted', (session) => session.status?.turns?.total === 1);
    const { status, reason, message } = condition(said, 'StatePersisted') ?? {};
    assert.deepEqual([status, reason], ['False', 'StateTooLarge']);
    assert.match(message ?? '', tooLarge);
    await cluster.patch('grown', { suspendRequest: 'now' });
    const refused = await cluster.until('grown', 'refused', (session) => {
      return condition(session, 'StatePersisted')?.reason === 'StateNotStored';
    });
    assert.match(condition(refused, 'StatePersisted')?.message ?? '', tooLarge);
    assert.equal((await cluster.podsOf('grown')).length, 1, 'nothing of it is lost');
    await cluster.patch('grown', { persistence: { maxState: '100k' } });
    const gone = await suspended('grown');
    assert.equal(condition(gone, 'StatePersisted')?.reason, 'StateStored');
    await cluster.turn('grown', 'grown-2', 0);
    assert.equal((await cluster.ended('grown-2')).status?.output, 50_000);
  });

  test.concurrent('at the end of its lifetime a session is finished, its turn stopped and its pod given up', async () => {
    const agent = pythonAgent('time.sleep(600)');
    await cluster.create('mortal', { agent, timeouts: { lifetime: '1h' }, input: null });
    await cluster.turnUntil('mortal', 'runs', ({ status }) => status?.phase === 'Running');
    await cluster.patch('mortal', { timeouts: { lifetime: '1s' } });
    const turn = await cluster.ended('mortal');
    assert.deepEqual([turn.status?.phase, turn.status?.error?.code], ['TimedOut', 'LifetimeExceeded']);
    const finished = await cluster.until(
      'mortal',
      'finished',
      ({ status }) => status?.phase === 'Finished' && !status.podName,
    );
    assert.deepEqual(
      [condition(finished, 'Finished')?.status, condition(finished, 'Finished')?.reason],
      ['True', 'LifetimeExceeded'],
    );
    await cluster.turn('mortal', 'mortal-2', null);
    assert.equal((await cluster.ended('mortal-2')).status?.error?.code, 'LifetimeExceeded');
    assert.deepEqual(await cluster.podsOf('mortal'), []);
  });

  test.concurrent('a turn that hangs is stopped as Stalled, one that is long but talks is not', async () => {
    const agent = pythonAgent(`
for i in range(request['input']):
    print(i, flush=True)
    time.sleep(0.2)
time.sleep(0 if request['input'] else 600)
answer('done')
`);
    // Longer than anything keeps a program on a busy machine from talking, and the talk is longer than that.
    await cluster.create('talks', { agent, timeouts: { stall: '12s' }, input: 65 });
    await cluster.create('hangs', { agent, timeouts: { stall: '1s' }, input: 0 });
    const { status } = await cluster.ended('hangs');
    assert.equal((await cluster.ended('talks')).status?.phase, 'Succeeded');
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'Stalled']);
  });
});
