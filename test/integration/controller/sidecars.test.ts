import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import type { Pod } from '../../../core/kube/builtin.ts';
import { pods } from '../../../core/kube/resources.ts';
import { ownedBy } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION, LABEL_SESSION_UID, LABEL_TURN_UID, podName, TURN_GATE } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import type { ControllerProcess } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { processesWith } from '../../support/processes.ts';

/**
 * Sidecar that sorts before the session's container by name, as the kubelet sorts, and precedes it in the pod's spec,
 * where an admission webhook may put it.
 */
const SIDECAR = { name: 'a-proxy', image: 'berth.local/machine', command: ['sleep', '1000'] };
const agent = { command: ['cat'], input: 'Text' as const, result: 'Text' as const };

describe('pods with a sidecar', () => {
  const cluster = installed();
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  /** The session's first pod as `like`'s was made, with a sidecar: the next controller finds it as one before it has left it. */
  async function withSidecar(name: string, like: Pod, turnUID?: string): Promise<void> {
    const session = await cluster.session(name);
    const { uid } = session.metadata;
    const { labels } = like.metadata;
    const turn = turnUID === undefined ? {} : { [LABEL_TURN_UID]: turnUID };
    const gates = turnUID === undefined ? {} : { schedulingGates: [{ name: TURN_GATE }] };
    const { nodeName: _n, schedulingGates: _g, ...spec } = like.spec;
    await cluster.client.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: podName(uid, 1),
        namespace: 'default',
        labels: { ...labels, [LABEL_SESSION]: name, [LABEL_SESSION_UID]: uid, ...turn },
        ownerReferences: [ownedBy(session)],
      },
      spec: { ...spec, ...gates, containers: [SIDECAR, ...spec.containers] },
    });
  }

  const podOf = (name: string) =>
    eventually(async () => (await cluster.podsOf(name))[0], { what: `the pod of ${name} is there` });
  const gone = (name: string) =>
    eventually(async () => (await cluster.podsOf(name)).length === 0, { what: `the pod of ${name} is gone` });

  test('a turn has its result, and one whose runner dies is lost for what that died of; then the pod goes', async () => {
    await cluster.create('like', { agent });
    const like = await podOf('like');
    await controller.kill('SIGKILL');
    const atWork = join(cluster.home, 'meshed-at-work');
    const script = `read word; if [ "$word" = wait ]; then : >'${atWork}'; sleep 600; fi; echo done`;
    await cluster.create('meshed', { agent: { ...agent, command: ['sh', '-c', script] } });
    await withSidecar('meshed', like);
    controller = cluster.startController();
    await cluster.turn('meshed', 'meshed-1', 'go');
    assert.equal((await cluster.ended('meshed-1')).status?.output, 'done\n');
    const pod = await podOf('meshed');
    assert.equal(pod.metadata.name, podName((await cluster.session('meshed')).metadata.uid, 1));
    assert.equal(pod.spec.containers.length, 2);

    await cluster.turn('meshed', 'meshed-2', 'wait');
    // A runner that dies before it is given the turn loses nothing: the next pod would run the turn.
    await eventually(() => existsSync(atWork), { what: 'its agent is at work' });
    assert.equal((await cluster.session('meshed')).status?.podUID, pod.metadata.uid, cluster.logs());
    const isRunner = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('runner/main');
    const runners = processesWith(`BERTH_POD_UID=${pod.metadata.uid}`).filter(isRunner);
    for (const pid of runners) process.kill(pid, 'SIGKILL');
    const { status } = await cluster.ended('meshed-2');
    assert.equal(status?.error?.code, 'PodLost', JSON.stringify(status));
    assert.match(status?.error?.message ?? '', /exit code 137/);
    await eventually(
      async () => (await cluster.podsOf('meshed')).every(({ metadata }) => metadata.uid !== pod.metadata.uid),
      {
        what: 'its pod is gone',
      },
    );
  });

  test('a program without a runner has its result while the sidecar runs on; then the pod goes', async () => {
    const print = `echo '<<<BERTH_RESULT_START>>>{"status":"success","output":"hello"}<<<BERTH_RESULT_END>>>'`;
    const spec = { runner: 'None' as const, image: 'berth.local/machine', agent: { command: ['sh', '-c', print] } };
    await cluster.createClass('plain', spec);
    await cluster.create('plain-like', { class: 'plain' });
    await cluster.turn('plain-like', 'plain-like-1', null);
    const like = await podOf('plain-like');
    await controller.kill('SIGKILL');
    await cluster.create('plain', { class: 'plain' });
    const turn = await cluster.turn('plain', 'plain-1', null);
    await withSidecar('plain', like, turn.metadata.uid);
    controller = cluster.startController();
    const { status } = await cluster.ended('plain-1');
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual([status?.output, status?.exitCode], ['hello', 0]);
    await gone('plain');
    assert.equal((await cluster.session('plain')).status?.incarnation, 1);
  });
});
