import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  type Any,
  apply,
  ended,
  get,
  kubectl,
  makeNamespace,
  session,
  tryKubectl,
  turn,
  until,
} from '../support/cluster.ts';
import { full, makeClass, pool, readyOf, unclaimed } from '../support/pools.ts';

/**
 * Has `run` end a turn until it ran in the pod that the pool had: a busy machine can be too slow for the answer to a claim. Resolves
 * to the number of starts, those `before` included.
 */
async function inPoolPod(namespace: string, run: (attempt: number) => Promise<Any>, before: number): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    await full(namespace, before + attempt - 1);
    const [pod] = await unclaimed(namespace);
    const { status } = await run(attempt);
    if (pod && status.podUID === pod.metadata.uid) return before + attempt;
    assert.ok(attempt < 5, JSON.stringify(status));
  }
}

describe('a SessionPool', () => {
  test('gives a session and a woken one pods that run already, and tells so in its columns', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace);
    await apply(pool(namespace, 'warm', { class: name, replicas: 1 }));
    const script = 'cat >> "$BERTH_STATE_DIR/notes"; cat "$BERTH_STATE_DIR/notes"';
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' };
    let notes = '';
    const takeNote = async (note: string) => {
      await apply(turn(namespace, `${notes}-${note}`, notes, note));
      return await ended(namespace, `${notes}-${note}`);
    };
    const begin = async (attempt: number) => {
      notes = `notes-${attempt}`;
      await apply(session(namespace, notes, { class: name, agent }));
      return await takeNote('a');
    };
    const suspend = (suspend: boolean) =>
      kubectl([
        'patch',
        'session',
        notes,
        '-n',
        namespace,
        '--type=merge',
        '-p',
        JSON.stringify({ spec: { suspend } }),
      ]);
    let expected = 'a';
    const wake = async (attempt: number) => {
      await suspend(true);
      await until(namespace, 'session', notes, ({ status }) => status?.phase === 'Suspended');
      await suspend(false);
      const note = 'bcdef'.charAt(attempt - 1);
      const woken = await takeNote(note);
      expected += note;
      assert.equal(woken.status.output, expected, JSON.stringify(woken.status));
      return woken;
    };
    const starts = await inPoolPod(namespace, wake, await inPoolPod(namespace, begin, 0));
    await full(namespace, starts);
    const row = /^NAME +CLASS +DESIRED +READY +REASON +CLAIMED +MISSED +AGE\nwarm +\S+ +1 +1 +PoolFull +[2-9] +\d /;
    // More sessions may have started than are counted here, so that the pool was full before the last claim.
    await eventually(async () => row.test(await kubectl(['get', 'sessionpools', '-n', namespace])), {
      timeoutMs: 120_000,
      what: 'the columns of the pool',
    });
  });

  test('is scaled with kubectl, and a burst beyond it starts cold', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace);
    await apply(pool(namespace, 'warm', { class: name, replicas: 1 }));
    await full(namespace);
    const names = ['a', 'b', 'c'];
    await apply(...names.map((one) => session(namespace, one, { class: name, turns: 'One', input: one })));
    for (const one of names) {
      const { status } = await ended(namespace, one);
      assert.deepEqual([status.phase, status.output], ['Succeeded', one], JSON.stringify(status));
    }
    await kubectl(['scale', 'sessionpool', 'warm', '-n', namespace, '--replicas=0']);
    await eventually(async () => (await unclaimed(namespace)).length === 0, {
      timeoutMs: 120_000,
      what: 'the pods of the pool are gone',
    });
    // A session whose pod did not answer in time has started twice.
    const { items } = await get(['sessions', '-n', namespace]);
    const starts = items.reduce((sum: number, { status }: Any) => sum + status.incarnation, 0);
    const counts = ({ status }: Any) => status.replicas === 0 && status.claimed + status.missed === starts;
    await until(namespace, 'sessionpool', 'warm', counts);
  });

  test('gives its slots to sessions that wait', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { limits: { maxRunning: 2 } });
    await apply(pool(namespace, 'warm', { class: name, replicas: 2 }));
    await full(namespace);
    // Resources of its own: no pod of the pool fits.
    const resources = { requests: { memory: '80Mi' } };
    await apply(session(namespace, 'own', { class: name, resources, turns: 'One', input: 'hello' }));
    const { status } = await ended(namespace, 'own');
    assert.deepEqual([status.phase, status.output], ['Succeeded', 'hello'], JSON.stringify(status));
    await full(namespace);
  });

  test('that can have no pods is refused or says what to do', async (t) => {
    const namespace = await makeNamespace(t);
    const input = JSON.stringify(pool(namespace, 'negative', { class: 'default', replicas: -1 }));
    const { code, stderr } = await tryKubectl(['create', '-f', '-'], { input });
    assert.equal(code, 1);
    assert.match(stderr, /spec\.replicas: Invalid value: -1/);
    await apply(pool(namespace, 'unknown', { class: `none-${namespace}` }));
    const found = await until(namespace, 'sessionpool', 'unknown', readyOf);
    assert.deepEqual([readyOf(found).status, readyOf(found).reason], ['False', 'ClassNotFound']);
    assert.match(readyOf(found).message, /create it/);
  });
});
