import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { PersistentVolumeClaim } from '../../../core/kube/builtin.ts';
import { events, persistentVolumeClaims } from '../../../core/kube/resources.ts';
import { pods } from '../../../local/kubelet/types.ts';
import { eventually } from '../../support/eventually.ts';
import { TestCluster } from './cluster.ts';

describe('a pod of the embedded cluster', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  test('is bound to the node, runs, and ends Succeeded with exit code 0 and its log', async () => {
    await cluster.create('ok', 'read line; echo "got $line"', { stdin: true });
    const running = await cluster.phase('ok', 'Running');
    assert.equal(running.spec.nodeName, 'embedded');
    assert.equal(running.status?.podIP, '127.0.0.1');
    assert.ok(running.status?.startTime);
    const condition = (type: string) => running.status?.conditions?.find((one) => one.type === type)?.status;
    assert.deepEqual(['PodScheduled', 'Ready', 'ContainersReady'].map(condition), ['True', 'True', 'True']);
    assert.ok(running.status?.containerStatuses?.[0]?.state.running?.startedAt);

    const attached = await cluster.attach('ok');
    attached.send('hello\n');
    const ended = await cluster.phase('ok', 'Succeeded', 'Failed');
    assert.equal(ended.status?.phase, 'Succeeded');
    const { terminated } = ended.status!.containerStatuses![0]!.state;
    assert.equal(terminated?.exitCode, 0);
    assert.equal(terminated?.reason, 'Completed');
    assert.ok(terminated?.startedAt && terminated.finishedAt);
    assert.equal((await cluster.log('ok')).text, 'got hello\n');
  });

  test('is Failed with the exit code of its process', async () => {
    await cluster.create('seven', 'exit 7');
    const pod = await cluster.phase('seven', 'Succeeded', 'Failed');
    assert.equal(pod.status?.phase, 'Failed');
    assert.equal(pod.status?.containerStatuses?.[0]?.state.terminated?.exitCode, 7);
    assert.equal(pod.status?.containerStatuses?.[0]?.state.terminated?.reason, 'Error');
  });

  test('killed by a signal has exit code 128 + its number', async () => {
    await cluster.create('killed', 'kill -9 $$$$');
    const pod = await cluster.phase('killed', 'Failed');
    assert.equal(pod.status?.containerStatuses?.[0]?.state.terminated?.exitCode, 137);
  });

  test('with an unknown image waits with ErrImagePull, then ImagePullBackOff', async () => {
    const { metadata } = await cluster.create('noimage', '', { image: 'nowhere.example/none:1' });
    const reasons: string[] = [];
    let message: string | undefined;
    const from = { resourceVersion: metadata.resourceVersion, signal: AbortSignal.timeout(60_000) };
    for await (const event of cluster.store.watch(pods, from)) {
      if (event.type === 'BOOKMARK' || event.object.metadata.uid !== metadata.uid) continue;
      const { waiting } = event.object.status?.containerStatuses?.[0]?.state ?? {};
      if (waiting && waiting.reason !== reasons.at(-1)) reasons.push(waiting.reason);
      message = waiting?.message;
      if (waiting?.reason === 'ImagePullBackOff') break;
    }
    assert.deepEqual(reasons.slice(-2), ['ErrImagePull', 'ImagePullBackOff']);
    assert.match(message ?? '', /nowhere.example\/none:1/);
    assert.equal((await cluster.get('noimage')).status?.phase, 'Pending');
    assert.equal((await cluster.log('noimage')).status, 400);
    await cluster.delete('noimage');
    await cluster.gone('noimage');
  });

  test('whose program does not exist is Failed with StartError', async () => {
    await cluster.create('noprogram', '', { command: ['/no/such/program'] });
    const pod = await cluster.phase('noprogram', 'Failed');
    const { terminated } = pod.status!.containerStatuses![0]!.state;
    assert.equal(terminated?.reason, 'StartError');
    assert.equal(terminated?.exitCode, 128);
    assert.match(terminated!.message!, /\/no\/such\/program.*not found/);
  });

  test('whose working directory does not exist is Failed with a message that names it', async () => {
    await cluster.create('nodir', 'true', { workingDir: '/no/such/dir' });
    const pod = await cluster.phase('nodir', 'Failed');
    assert.match(pod.status!.containerStatuses![0]!.state.terminated!.message!, /\/no\/such\/dir/);
  });

  test('waits with CreateContainerConfigError for a missing Secret and starts once that is there', async () => {
    const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'late', key: 'word' } } }];
    await cluster.create('late', 'echo "$WORD"', { env });
    const waiting = await eventually(async () => {
      const state = (await cluster.get('late')).status?.containerStatuses?.[0]?.state.waiting;
      return state?.reason === 'CreateContainerConfigError' ? state : undefined;
    });
    assert.equal(waiting.message, 'secret "late" not found');
    await cluster.secret('late', 'hidden');
    await cluster.phase('late', 'Succeeded');
    assert.equal((await cluster.log('late')).text, 'hidden\n');
  });

  test('waits for the Secrets of its files, beside a volume of its own, and starts once all are there', async () => {
    const claim = {
      metadata: { name: 'beside', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    await cluster.store.create(persistentVolumeClaims, claim as PersistentVolumeClaim);
    const source = (name: string) => ({ secret: { name, items: [{ key: 'word', path: name }] } });
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: 'beside' } },
      { name: 'files', projected: { sources: [source('file-1'), source('file-2')] } },
    ];
    const volumeMounts = [
      { name: 'data', mountPath: '/data' },
      { name: 'files', mountPath: '/files' },
    ];
    const script = 'cd "$BERTH_LOCAL_ROOT/files"; cat file-1 file-2; touch ../data/written';
    await cluster.create('files', script, { volumeMounts }, { volumes });
    for (const name of ['file-1', 'file-2']) {
      await eventually(async () => (await cluster.waiting('files')) === `secret "${name}" not found`);
      await cluster.secret(name, `${name} `);
    }
    await cluster.phase('files', 'Succeeded', 'Failed');
    assert.equal((await cluster.log('files')).text, 'file-1 file-2 ');
  });

  test('gets the environment its spec asks for and nothing of the cluster program', async () => {
    process.env.BERTH_TEST_LEAK = 'leaked';
    const env = [
      { name: 'A', value: 'one' },
      { name: 'B', value: '$(A)-two-$$(A)-$(UNKNOWN)' },
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    ];
    await cluster.create('env', '', { command: ['/bin/sh', '-c', 'echo "$0"; env'], args: ['arg $(B)'], env });
    const pod = await cluster.phase('env', 'Succeeded', 'Failed');
    const lines = (await cluster.log('env')).text.split('\n');
    delete process.env.BERTH_TEST_LEAK;
    assert.equal(lines[0], 'arg one-two-$(A)-$(UNKNOWN)');
    for (const line of ['A=one', 'POD=env', 'NODE=embedded', `BERTH_POD_UID=${pod.metadata.uid}`, 'HOSTNAME=env']) {
      assert.ok(lines.includes(line), `${line} in ${lines}`);
    }
    assert.ok(!lines.some((line) => line.startsWith('BERTH_TEST_LEAK')));
  });

  test('finds its emptyDir volumes under BERTH_LOCAL_ROOT, one directory per volume', async () => {
    const volumeMounts = [
      { name: 'data', mountPath: '/data' },
      { name: 'data', mountPath: '/again' },
    ];
    const script = 'echo kept > "$BERTH_LOCAL_ROOT/data/file"; cat "$BERTH_LOCAL_ROOT/again/file"; pwd';
    await cluster.create(
      'volumes',
      script,
      { volumeMounts, workingDir: '/data' },
      { volumes: [{ name: 'data', emptyDir: {} }] },
    );
    const pod = await cluster.phase('volumes', 'Succeeded', 'Failed');
    assert.equal((await cluster.log('volumes')).text, `kept\n${cluster.home}/pods/${pod.metadata.uid}/data\n`);
  });

  test('finds what another pod left in a PersistentVolumeClaim, until that is deleted', async () => {
    const claim = {
      metadata: { name: 'kept', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    const spec = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'kept' } }] };
    const container = { volumeMounts: [{ name: 'data', mountPath: '/data' }], workingDir: '/data' };
    await cluster.create('early', 'cat f', container, spec);
    await eventually(async () =>
      (await cluster.get('early')).status?.containerStatuses?.[0]?.state.waiting?.message?.includes('"kept" not found'),
    );
    const { metadata } = await cluster.store.create(persistentVolumeClaims, claim as PersistentVolumeClaim);
    await cluster.create('first', 'echo left > f', container, spec);
    await cluster.phase('first', 'Succeeded');
    await cluster.create('second', 'cat f', container, spec);
    await cluster.phase('second', 'Succeeded');
    assert.equal((await cluster.log('second')).text, 'left\n');
    const ref = { namespace: 'default', name: 'kept' };
    assert.equal((await cluster.store.get(persistentVolumeClaims, ref)).status?.phase, 'Bound');
    const directory = join(cluster.home, 'volumes', metadata.uid);
    assert.ok(existsSync(directory));
    await cluster.store.delete(persistentVolumeClaims, ref);
    await eventually(() => !existsSync(directory), { what: 'the directory is removed' });
  });

  test('can write to /dev/stdout and /dev/stderr by name', async () => {
    await cluster.create('devices', 'echo out > /dev/stdout; echo err > /dev/stderr');
    await cluster.phase('devices', 'Succeeded');
    const { text } = await cluster.log('devices');
    assert.deepEqual(text.trim().split('\n').sort(), ['err', 'out']);
  });

  test('with restartPolicy OnFailure runs again until it succeeds, the log of the run before at previous', async () => {
    const script = 'echo run; if [ -e "$HOME/seen" ]; then exit 0; fi; touch "$HOME/seen"; exit 3';
    await cluster.create('again', script, {}, { restartPolicy: 'OnFailure' });
    const pod = await cluster.phase('again', 'Succeeded');
    const status = pod.status!.containerStatuses![0]!;
    assert.equal(status.restartCount, 1);
    assert.equal(status.lastState.terminated?.exitCode, 3);
    assert.equal((await cluster.log('again', { previous: 'true' })).text, 'run\n');
  });

  test('has events that tell of its scheduling, start and failure', async () => {
    const { items } = await cluster.store.list(events, { namespace: 'default' });
    const reasons = new Set(items.map((event) => event.reason));
    for (const reason of ['Scheduled', 'Started', 'Failed', 'BackOff']) assert.ok(reasons.has(reason), reason);
  });
});
