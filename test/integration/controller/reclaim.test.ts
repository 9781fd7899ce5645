import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { isNotFound } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import { sessions, type Turn, turns } from '../../../core/resources/kinds.ts';
import { CONTAINER } from '../../../core/resources/names.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { type Answer, agent, NO_SWEEPS, STEPS, type Step, scratch } from './reclaim.ts';

describe('an idle session', () => {
  const cluster = installed({ ...ONE_LEADER, ...NO_SWEEPS }, { controller: true });
  const suspended = (name: string) =>
    cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended' && !status.podName);

  test.concurrent('gives up its pod, says why, and goes on with its state at its next turn', async () => {
    await cluster.create('idle', { agent: agent(), timeouts: { idle: '1s' }, input: 1 });
    await cluster.ended('idle');
    const { status } = await suspended('idle');
    assert.match(status?.conditions?.find(({ type }) => type === 'Suspended')?.message ?? '', /timeouts\.idle \(1s\)/);
    assert.deepEqual(await cluster.podsOf('idle'), []);
    assert.ok(!status?.conditions?.some(({ type }) => type === 'Finished'), 'it is not marked ended');
    await cluster.turn('idle', 'idle-2', null);
    const output = (await cluster.ended('idle-2')).status?.output as Answer;
    assert.deepEqual([output.count, output.incarnation, output.restored?.workspaceReset], [2, 2, true]);
  });

  test.concurrent('is neither resumed nor kept from suspension by reads', async () => {
    await cluster.create('looked-at', { agent: agent(), timeouts: { idle: '2s' }, input: 1 });
    await cluster.ended('looked-at');
    const { status } = await cluster.until('looked-at', 'counted', (session) => session.status?.turns?.total === 1);
    const stop = new AbortController();
    let looks = 0;
    // The pod may go between two requests; every other error ends the reader, and with it the test.
    const unlessGone = (error: unknown) => {
      if (!isNotFound(error)) throw error;
    };
    const look = async () => {
      for (; !stop.signal.aborted; looks++) {
        await cluster.client.list(sessions, { namespace: 'default' });
        await cluster.client.list(turns, { namespace: 'default' });
        const name = (await cluster.session('looked-at')).status?.podName;
        if (!name) continue;
        await cluster.client.get(pods, { namespace: 'default', name }).catch(unlessGone);
        await readLog(name).catch(unlessGone);
      }
    };
    const readLog = async (name: string) => {
      for await (const _ of cluster.client.podLog({ namespace: 'default', name }, { container: CONTAINER })) break;
    };
    const looking = look();
    const asleep = await Promise.race([
      suspended('looked-at'),
      looking.then(() => assert.fail('nobody looks any more')),
    ]);
    assert.equal(asleep.status?.lastActiveAt, status?.lastActiveAt);
    assert.ok(looks > 0, 'it was looked at until it was suspended');
    stop.abort();
    await looking;
    for (let i = 0; i < 20; i++) await cluster.session('looked-at');
    assert.equal((await cluster.session('looked-at')).metadata.resourceVersion, asleep.metadata.resourceVersion);
  });

  test.concurrent('is not suspended while it is touched', async () => {
    // The idle timeout is longer than any delay of this test on a busy machine.
    const timeouts = { idle: '12s' };
    await cluster.create('untouched', { agent: agent(), timeouts, input: 1 });
    await cluster.create('touched', { agent: agent(), timeouts, input: 1 });
    for (const name of ['untouched', 'touched']) {
      await cluster.ended(name);
      await cluster.until(name, 'at rest', ({ status }) => status?.turns?.total === 1 && status.phase === 'Ready');
    }
    const phases = new Set<string | undefined>();
    const touch = async () => {
      const annotations = { 'berth.dev/touched-at': new Date().toISOString() };
      const ref = { namespace: 'default', name: 'touched' };
      phases.add((await cluster.client.patch(sessions, ref, { metadata: { annotations } })).status?.phase);
      return (await cluster.session('untouched')).status?.phase === 'Suspended';
    };
    await eventually(touch, { what: 'a session that nobody touches is suspended' });
    assert.deepEqual([...phases], ['Ready']);
    await cluster.patch('touched', { timeouts: { idle: '1s' } });
    await suspended('touched');
  });

  test.concurrent('is not suspended while its runner reports activity of its agent', async () => {
    const busy = join(scratch, 'busy');
    const script = `import os, socket, time
for i in range(14):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ['BERTH_SOCKET'])
    s.sendall(b'{"do":"touch"}\\\\n')
    s.recv(100)
    open('${busy}', 'a').write('x')
    time.sleep(1)`;
    // The turn ends when it has begun: a machine that is slow to start it is not to be taken for an idle session.
    const code = `import subprocess
subprocess.Popen(['python3', '-c', '''${script}'''], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not os.path.exists('${busy}'): time.sleep(0.02)
answer(1)`;
    // The work takes longer than the idle timeout. The idle timeout is longer than any delay on a busy machine.
    await cluster.create('busy', { agent: pythonAgent(code), timeouts: { idle: '12s' }, input: 1 });
    await cluster.ended('busy');
    const isOver = async () =>
      readFileSync(busy, 'utf8').length === 14 || (await cluster.session('busy')).status?.phase === 'Suspended';
    await eventually(isOver, { what: 'the end of its work' });
    assert.equal(readFileSync(busy, 'utf8'), 'x'.repeat(14), 'it was left alone as long as it worked');
    await cluster.patch('busy', { timeouts: { idle: '1s' } });
    assert.equal((await suspended('busy')).status?.incarnation, 1);
  });

  describe('about which the controller hears nothing more, reads live and', () => {
    /**
     * Lets `come` happen when the session is read again, and keeps the controller's caches from hearing of it. It is
     * to keep the session from being idle again at once, as this test may be slow to go on. `news` is what is found.
     */
    async function meanwhile(name: string, come: () => Promise<unknown>, news: string): Promise<Answer> {
      const { metadata } = await cluster.create(name, { agent: agent(), input: 1 });
      await cluster.ended(name);
      await cluster.until(name, 'counted', ({ status }) => status?.turns?.total === 1);
      const { faults } = cluster.server;
      let came: Promise<unknown> | undefined;
      const look = STEPS.find((step) => step.name === 'the session is read again') as Step;
      const blind = (request: RequestFacts) => {
        if (came || !request.user.endsWith('berth-controller') || !look.is(request, { name, uid: metadata.uid }))
          return false;
        faults.stallWatches(true);
        came = come();
        return true;
      };
      faults.delayNext(blind, 300);
      await cluster.patch(name, { timeouts: { idle: '4s' } });
      try {
        await eventually(() => came !== undefined, { what: 'the second look' });
        await came;
        const undone = `"session":"default/${name}","news"`;
        const isOver = async () => cluster.logs().includes(undone) || (await cluster.podsOf(name)).length === 0;
        await eventually(isOver, { what: 'what came of it' });
        assert.ok(cluster.logs().includes(`${undone}:"${news}"`), news);
      } finally {
        faults.stallWatches(false);
      }
      await cluster.patch(name, { timeouts: { idle: '1h' } });
      await cluster.turn(name, `${name}-last`, null);
      return (await cluster.ended(`${name}-last`)).status?.output as Answer;
    }
    const stayAwake = (name: string) => {
      const patch = { spec: { timeouts: { idle: '1h' } } };
      return cluster.server.store.patch(sessions, { namespace: 'default', name }, patch, { type: 'merge' });
    };
    test('finds a turn: the pod stays', async () => {
      const turn = {
        apiVersion: 'berth.dev/v1alpha1',
        kind: 'Turn',
        metadata: { name: 'blind-2', namespace: 'default' },
      };
      const spec = { session: 'blind', cancel: false };
      const come = async () => {
        await cluster.server.store.create(turns, { ...turn, spec } as Turn);
        await stayAwake('blind');
      };
      const output = await meanwhile('blind', come, 'turn blind-2');
      assert.deepEqual([output.count, output.incarnation], [3, 1]);
    });
    test('finds that somebody touched it: the pod stays', async () => {
      const ref = { namespace: 'default', name: 'blind-touch' };
      const come = () => {
        // The timestamp is of a clock that is ahead.
        const annotations = { 'berth.dev/touched-at': new Date(Date.now() + 120_000).toISOString() };
        return cluster.server.store.patch(sessions, ref, { metadata: { annotations } }, { type: 'merge' });
      };
      const output = await meanwhile('blind-touch', come, 'activity');
      assert.deepEqual([output.count, output.incarnation], [2, 1]);
    });
    test('finds that its owner wants it otherwise: the pod stays', async () => {
      const output = await meanwhile('blind-change', () => stayAwake('blind-change'), 'the session was changed');
      assert.deepEqual([output.count, output.incarnation], [2, 1]);
    });
  });
});
