import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { isNotFound } from '../../../core/kube/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { exists, processesWith } from '../../support/processes.ts';
import { TestCluster } from './cluster.ts';

/** Prints the pids of what it leaves behind: a child, a daemon of its own session, one without any environment. */
const LEFTOVERS = [
  'sleep 1001 & echo $! >>"$HOME/pids"',
  'setsid sh -c \'echo $$$$ >>"$HOME/pids"; exec sleep 1002 >/dev/null 2>&1\' &',
  '(setsid sh -c \'(sleep 1003 >/dev/null 2>&1 & echo $! >>"$HOME/pids") ; exit\' &)',
  'env -i sleep 1004 & echo $! >>"$HOME/pids"',
  'until [ "$(wc -l <"$HOME/pids")" = 4 ]; do sleep 0.05; done; cat "$HOME/pids"',
].join('\n');

async function leftoverPids(cluster: TestCluster, pod: string): Promise<number[]> {
  return eventually(async () => {
    const pids = (await cluster.log(pod)).text.split('\n').filter(Boolean).map(Number);
    return pids.length === 4 ? pids : undefined;
  });
}

describe('the end of a pod', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  test('by itself leaves no process, nor daemons that forked twice', async () => {
    await cluster.create('itself', LEFTOVERS);
    const pod = await cluster.phase('itself', 'Succeeded');
    const pids = await leftoverPids(cluster, 'itself');
    assert.deepEqual(pids.filter(exists), []);
    assert.deepEqual(processesWith(`BERTH_POD_UID=${pod.metadata.uid}`), []);
  });

  test('by deletion sends TERM and waits for the process to end in good order', async () => {
    const pieces: string[] = [];
    await cluster.create('orderly', 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done');
    await eventually(async () => (await cluster.log('orderly')).text === 'up\n');
    const following = cluster.follow('orderly', pieces);
    await eventually(() => pieces.join('') === 'up\n', { what: 'it is followed' });
    await cluster.delete('orderly');
    assert.ok((await cluster.get('orderly')).metadata.deletionTimestamp);
    await following;
    assert.equal(pieces.join(''), 'up\nbye\n');
    await cluster.gone('orderly');
  });

  test('by deletion kills what ignores TERM once the grace period is over, leftovers included', async () => {
    await cluster.create('stubborn', `trap "" TERM\n${LEFTOVERS}\nwhile :; do sleep 1; done`);
    const pids = await leftoverPids(cluster, 'stubborn');
    const pod = await cluster.get('stubborn');
    await cluster.delete('stubborn', 1);
    await cluster.gone('stubborn');
    assert.deepEqual(pids.filter(exists), []);
    assert.deepEqual(processesWith(`BERTH_POD_UID=${pod.metadata.uid}`), []);
    await eventually(() => !existsSync(`${cluster.home}/pods/${pod.metadata.uid}`));
    await eventually(() => !existsSync(`${cluster.home}/kubelet/${pod.metadata.uid}`));
  });

  test('by deletion is hastened by a second deletion with a shorter grace period', async () => {
    await cluster.create('hastened', 'trap "" TERM; echo up; while :; do sleep 1; done');
    await eventually(async () => (await cluster.log('hastened')).text === 'up\n');
    await cluster.delete('hastened', 600);
    await cluster.delete('hastened', 1);
    await cluster.gone('hastened');
  });

  test('by deletion without grace removes the object at once and the processes soon after', async () => {
    await cluster.create('forced', `trap "" TERM\n${LEFTOVERS}\nsleep 1000`);
    const pids = await leftoverPids(cluster, 'forced');
    const pod = await cluster.get('forced');
    await cluster.delete('forced', 0);
    await assert.rejects(cluster.get('forced'), isNotFound);
    await eventually(() => pids.every((pid) => !exists(pid)));
    await eventually(() => processesWith(`BERTH_POD_UID=${pod.metadata.uid}`).length === 0);
  });

  test('of a name that is used again does not touch the new pod', async () => {
    await cluster.create('name', 'trap "" TERM; sleep 1000');
    const first = await cluster.phase('name', 'Running');
    await cluster.delete('name', 0);
    await cluster.create('name', 'sleep 1000');
    const second = await cluster.phase('name', 'Running');
    await eventually(() => processesWith(`BERTH_POD_UID=${first.metadata.uid}`).length === 0);
    assert.equal((await cluster.get('name')).status?.phase, 'Running');
    assert.ok(processesWith(`BERTH_POD_UID=${second.metadata.uid}`).length > 0);
  });

  test('is not held up by a reader of an attach that stalls', async () => {
    await cluster.create('held', 'read a; yes', { stdin: true });
    await cluster.phase('held', 'Running');
    const slow = await cluster.attach('held');
    slow.stopReading();
    slow.send('go\n');
    await eventually(async () => (await cluster.log('held', { limitBytes: '10' })).text.length === 10);
    await cluster.delete('held', 1);
    await cluster.gone('held');
    slow.close();
  });
});
