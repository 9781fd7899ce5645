import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Channels } from '../support/channels.ts';
import { eventually } from '../support/eventually.ts';
import { type ContractTarget, useBench } from './target.ts';

/** A cluster that runs pods: an image it has, and how a shell script is run in it. */
export interface PodTarget extends ContractTarget {
  image: string;
  command(script: string): string[];
}

// A real kubelet checks its containers once a second and tries a failed configuration again after ten or more.
const patient = { timeoutMs: 180_000 };

/** Behaviour of pods, and of their log, attach and exec, that Berth relies on. */
export function podContract(connect: () => Promise<PodTarget>): void {
  describe('pods', () => {
    let target: PodTarget;
    const bench = useBench(async () => {
      target = await connect();
      return target;
    });
    const path = (name: string, rest = '') => `${bench.core}/pods/${name}${rest}`;
    const get = async (name: string) => (await bench.api.get(path(name))).body;
    const log = async (name: string, query = '') => bench.api.get(path(name, `/log${query}`));

    /** Creates a pod that runs the script and returns its name. */
    async function make(script: string, container: object = {}, spec: object = {}): Promise<string> {
      const main = { name: 'main', image: target.image, command: target.command(script), stdin: true, ...container };
      const made = await bench.api.post(`${bench.core}/pods`, {
        metadata: { name: bench.name('pod') },
        spec: {
          restartPolicy: 'Never',
          terminationGracePeriodSeconds: 5,
          automountServiceAccountToken: false,
          containers: [main],
          ...spec,
        },
      });
      assert.equal(made.status, 201, made.text);
      return made.body.metadata.name;
    }

    const phase = (name: string, ...phases: string[]) =>
      eventually(
        async () => {
          const pod = await get(name);
          return phases.includes(pod.status?.phase) ? pod : undefined;
        },
        { ...patient, what: `pod ${name} ${phases}` },
      );

    const waiting = (name: string, ...reasons: string[]) =>
      eventually(
        async () => {
          const state = (await get(name)).status?.containerStatuses?.[0]?.state?.waiting;
          return reasons.includes(state?.reason) ? state : undefined;
        },
        { ...patient, what: `pod ${name} waits with ${reasons}` },
      );

    const attach = (name: string) =>
      Channels.open(target.connection, path(name, '/attach?container=main&stdin=true&stdout=true&stderr=true'));

    /**
     * An attach that has brought a line from a container that echoes each line it reads. A kubelet passes stdin on before
     * it adds the stream to the readers of stdout, so that the answer to the first lines may be missed.
     */
    async function opened(name: string): Promise<Channels> {
      const stream = await attach(name);
      await eventually(() => {
        stream.send('hello\n');
        return stream.out.includes('hello\n');
      }, patient);
      return stream;
    }

    const exec = (name: string, script: string) => {
      const words = target.command(script).map((word) => `command=${encodeURIComponent(word)}`);
      return Channels.open(
        target.connection,
        path(name, `/exec?container=main&stdout=true&stderr=true&${words.join('&')}`),
      );
    };

    /** Tells whether a connection attempt failed: refused, or accepted and ended with a failure. */
    async function failed(attempt: Promise<Channels>): Promise<boolean> {
      const stream = await attempt.catch(() => undefined);
      if (!stream) return true;
      await eventually(() => stream.closed, patient);
      return stream.status?.status !== 'Success' && stream.out === '';
    }

    test('a pod runs to its end: node, times, exit code 0, Succeeded, its log', async () => {
      const name = await make('echo out; echo err >&2');
      const pod = await phase(name, 'Succeeded', 'Failed');
      assert.equal(pod.status.phase, 'Succeeded');
      assert.ok(pod.spec.nodeName);
      assert.ok(pod.status.startTime);
      const { terminated } = pod.status.containerStatuses[0].state;
      assert.equal(terminated.exitCode, 0);
      assert.equal(terminated.reason, 'Completed');
      assert.match(terminated.startedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.deepEqual((await log(name)).text.trim().split('\n').sort(), ['err', 'out']);
    });

    test('the exit code of a failed container is in its status, and the pod is Failed', async () => {
      const pod = await phase(await make('exit 7'), 'Succeeded', 'Failed');
      assert.equal(pod.status.phase, 'Failed');
      assert.equal(pod.status.containerStatuses[0].state.terminated.exitCode, 7);
      assert.equal(pod.status.containerStatuses[0].state.terminated.reason, 'Error');
    });

    test('a program that does not exist ends the pod with StartError and exit code 128', async () => {
      const pod = await phase(await make('', { command: ['/no/such/program'] }), 'Failed');
      const { terminated } = pod.status.containerStatuses[0].state;
      assert.equal(terminated.reason, 'StartError');
      assert.equal(terminated.exitCode, 128);
      assert.match(terminated.message, /\/no\/such\/program/);
    });

    test('while a pod waits for a node, its log is 204 without a body and an attach fails', async () => {
      const name = await make('echo late', {}, { schedulingGates: [{ name: 'example.com/hold' }] });
      const early = await log(name, '?follow=true');
      assert.deepEqual([early.status, early.text], [204, '']);
      assert.ok(await failed(attach(name)));
      const ungated = await bench.api.patch(path(name), { spec: { schedulingGates: [] } });
      assert.equal(ungated.status, 200, ungated.text);
      await phase(name, 'Succeeded');
      assert.equal((await log(name)).text, 'late\n');
    });

    test('before a container runs, its log is 400 and an attach fails; once its Secret is there it starts', async () => {
      const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'late', key: 'word' } } }];
      const name = await make('echo "$WORD"; read line', { env });
      // A kubelet that is slow to watch the Secret says so first.
      await eventually(async () => {
        const { message } = await waiting(name, 'CreateContainerConfigError');
        return /secret "late" not found/.test(message);
      }, patient);
      const early = await log(name);
      assert.equal(early.status, 400);
      assert.match(early.body.message, /is waiting to start: CreateContainerConfigError/);
      assert.ok(await failed(attach(name)));
      const stringData = { word: 'hidden' };
      assert.equal(
        (await bench.api.post(`${bench.core}/secrets`, { metadata: { name: 'late' }, stringData })).status,
        201,
      );
      await phase(name, 'Running');
      await eventually(async () => (await log(name)).text === 'hidden\n', patient);
    });

    test('of several containers the one whose log is read has to be named; their statuses are sorted by name', async () => {
      const other = { name: 'another', image: target.image, command: target.command('echo other') };
      const main = { name: 'main', image: target.image, command: target.command('echo main') };
      const pod = await phase(await make('', {}, { containers: [main, other] }), 'Succeeded');
      const { name } = pod.metadata;
      assert.deepEqual(
        pod.status.containerStatuses.map((one: { name: string }) => one.name),
        ['another', 'main'],
      );
      const unnamed = await log(name);
      assert.equal(unnamed.status, 400);
      assert.match(unnamed.body.message, /a container name must be specified for pod .*: \[main another\]/);
      assert.equal((await log(name, '?container=main')).text, 'main\n');
    });

    test('an image that cannot be had is told as ErrImagePull or ImagePullBackOff', async () => {
      const name = await make('true', { image: 'registry.invalid/none:1' });
      const { message } = await waiting(name, 'ErrImagePull', 'ImagePullBackOff');
      assert.match(message, /registry\.invalid\/none:1/);
      assert.equal((await get(name)).status.phase, 'Pending');
    });

    test('a pod that is deleted before its container was created ends with a container without an ID and a start', async () => {
      const name = await make('true', { image: 'registry.invalid/none:1' });
      await waiting(name, 'ErrImagePull', 'ImagePullBackOff');
      // The object stays until its end has been seen.
      const hold = async (finalizers: string[]) => {
        const held = await bench.api.patch(path(name), { metadata: { finalizers } }, 'merge');
        assert.equal(held.status, 200, held.text);
      };
      await hold(['berth.dev/test']);
      await bench.api.delete(path(name));
      const { status } = await phase(name, 'Failed', 'Succeeded');
      const [{ containerID, state }] = status.containerStatuses;
      assert.deepEqual([status.phase, containerID ?? ''], ['Failed', '']);
      const { reason, exitCode, startedAt } = state.terminated;
      assert.deepEqual([reason, exitCode, startedAt ?? undefined], ['ContainerStatusUnknown', 137, undefined]);
      await hold([]);
    });

    test('an attach does not repeat earlier output, and two attaches share one stdin', async () => {
      // The container ends without a word: what it writes last may be lost to an attach of a real kubelet, and is in the log.
      const name = await make('echo before; while read -r line; do [ "$line" = end ] && exit; echo "$line"; done');
      await phase(name, 'Running');
      await eventually(async () => (await log(name)).text === 'before\n', patient);
      const one = await opened(name);
      const two = await opened(name);
      const lines = () => [one, two].map(({ out }) => out.split('\n').filter((line) => line && line !== 'hello'));
      one.send('x\n');
      await eventually(() => lines().every((all) => all.includes('x')), patient);
      two.send('y\n');
      await eventually(() => lines().every((all) => all.includes('y')), patient);
      one.send('end\n');
      await eventually(() => one.closed && two.closed, patient);
      assert.deepEqual(lines(), [
        ['x', 'y'],
        ['x', 'y'],
      ]);
      // A real kubelet notices the end within a second. An attach may still open until then, but it brings nothing and
      // ends.
      await phase(name, 'Succeeded');
      assert.ok(await failed(attach(name)), 'attach to an ended container');
    });

    test('stdin stays open when an attach goes away', async () => {
      const name = await make('read a; echo "one $a"; read b; echo "two $b"');
      await phase(name, 'Running');
      const one = await attach(name);
      one.send('x\n');
      await eventually(async () => (await log(name)).text === 'one x\n', patient);
      one.close();
      const two = await attach(name);
      two.send('y\n');
      await phase(name, 'Succeeded');
      await eventually(async () => (await log(name)).text === 'one x\ntwo y\n', patient);
    });

    test('exec tells the exit code of its command', async () => {
      const name = await make('read line');
      await phase(name, 'Running');
      const good = await exec(name, 'echo fine');
      await eventually(() => good.closed, patient);
      assert.deepEqual([good.out, good.status?.status], ['fine\n', 'Success']);
      const bad = await exec(name, 'exit 3');
      await eventually(() => bad.closed, patient);
      assert.equal(bad.status?.reason, 'NonZeroExitCode');
      assert.deepEqual(bad.status?.details?.causes, [{ reason: 'ExitCode', message: '3' }]);
    });

    test('a deletion is graceful: TERM, the last words in the log, and only then the object is gone', async () => {
      // The container ends only after it has read a line, so that requests meanwhile find it.
      const script = 'trap "read line; echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done';
      const name = await make(script, {}, { terminationGracePeriodSeconds: 60 });
      await phase(name, 'Running');
      await eventually(async () => (await log(name)).text === 'up\n', patient);
      const stream = await attach(name);
      const following = log(name, '?follow=true');
      const deleted = await bench.api.delete(path(name));
      assert.equal(deleted.status, 200);
      assert.ok(deleted.body.metadata.deletionTimestamp);
      assert.equal(deleted.body.metadata.deletionGracePeriodSeconds, 60);
      assert.equal((await bench.api.get(path(name))).status, 200);
      stream.send('go\n');
      assert.equal((await following).text, 'up\nbye\n');
      await eventually(async () => (await bench.api.get(path(name))).status === 404, patient);
    });

    test('a deletion with the uid of another pod is refused with 409', async () => {
      const name = await make('read line');
      const uid = '00000000-0000-0000-0000-000000000000';
      const refused = await bench.api.delete(path(name), { preconditions: { uid } });
      assert.equal(refused.status, 409);
      assert.equal(refused.body.reason, 'Conflict');
      const { metadata } = await get(name);
      assert.equal(metadata.deletionTimestamp, undefined);
      const accepted = await bench.api.delete(path(name), {
        preconditions: { uid: metadata.uid },
        gracePeriodSeconds: 0,
      });
      assert.equal(accepted.status, 200);
      await eventually(async () => (await bench.api.get(path(name))).status === 404, patient);
    });

    test('a pod that has ended is deleted at once', async () => {
      const name = await make('true');
      await phase(name, 'Succeeded');
      await bench.api.delete(path(name));
      assert.equal((await bench.api.get(path(name))).status, 404);
    });

    test('a container the pod does not have is 400 for log and attach', async () => {
      const name = await make('read line');
      await phase(name, 'Running');
      assert.equal((await log(name, '?container=other')).status, 400);
      assert.ok(await failed(Channels.open(target.connection, path(name, '/attach?container=other&stdout=true'))));
    });
  });
}
