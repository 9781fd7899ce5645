import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  type Any,
  apply,
  controllerPods,
  ended,
  get,
  kubectl,
  leadingPod,
  makeNamespace,
  releaseNamespace,
  remove,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { readableImage } from '../support/images.ts';

/** Runs what its turn brings, by the image's busybox. */
const agent = { command: ['sh', '-c'], args: ['$(INPUT)'], input: 'Args', result: 'Text' };
const READS = ['mem', 'environ', 'maps', 'fd/0', 'fd/1', 'fd/2', 'auxv', 'stack', 'io', 'pagemap', 'task/1/mem'];
const WRITES = ['mem', 'fd/0', 'fd/1', 'oom_score_adj', 'comm', 'coredump_filter', 'clear_refs'];

/** Runs one turn of a session and resolves to its status. */
async function run(namespace: string, name: string, index: number, script: string, timeoutMs?: number) {
  await apply(turn(namespace, `${name}-${index}`, name, script));
  return (await ended(namespace, `${name}-${index}`, timeoutMs)).status;
}

/** Restarts of both controllers by the names of their pods, once both are ready: a test before may have ended one. */
function restarts(): Promise<Record<string, number>> {
  const isUp = ({ metadata, status }: Any) => !metadata.deletionTimestamp && status.containerStatuses?.[0]?.ready;
  return eventually(
    async () => {
      const pods = await controllerPods();
      if (pods.length !== 2 || !pods.every(isUp)) return undefined;
      return Object.fromEntries(
        pods.map(({ metadata, status }) => [metadata.name, status.containerStatuses[0].restartCount]),
      );
    },
    { timeoutMs: 180_000, what: 'two controllers are ready' },
  );
}

describe('a hostile agent in a pod', () => {
  let restartsBefore: Record<string, number>;
  beforeAll(async () => {
    restartsBefore = await restarts();
  });

  test('can neither read nor write what /proc has of PID 1, nor its keeper’s', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'proc', { agent }));
    for (const [index, pid] of ['1', '$PPID'].entries()) {
      const script = [
        `p=${pid}; case $(cat /proc/$p/cmdline | tr "\\0" " ") in *keeper*|*runner*) ;; *) echo no runner ;; esac`,
        ...READS.map((name) => `(: < /proc/$p/${name}) 2>/dev/null && echo read ${name}`),
        ...WRITES.map((name) => `(echo 1 > /proc/$p/${name}) 2>/dev/null && echo wrote ${name}`),
        ...['cwd', 'root', 'exe', 'ns/pid'].map(
          (name) => `readlink /proc/$p/${name} >/dev/null 2>&1 && echo link ${name}`,
        ),
        'ls /proc/$p/fd >/dev/null 2>&1 && echo listed; echo done',
      ].join('\n');
      const status = await run(namespace, 'proc', index, script);
      assert.equal(status.output, 'done\n', JSON.stringify(status));
    }
  });

  test('cannot stop, kill or open PID 1 by signals, all at once and while it handles others', async (t) => {
    const namespace = await makeNamespace(t);
    const all = 's=1; while [ $s -le 64 ]; do case $s in 1|2|15) ;; *) kill -$s 1 ;; esac; s=$((s+1)); done';
    // PID 1 handles SIGCHLD, with all signals blocked meanwhile.
    const signals = `(while :; do kill -17 1; done) & h=$!; for i in 1 2 3 4 5 6 7 8; do ${all}; done; kill -9 $h; echo sent`;
    await apply(session(namespace, 'signals', { agent }));
    const first = await run(namespace, 'signals', 1, 'echo one');
    const second = await run(namespace, 'signals', 2, signals);
    const third = await run(namespace, 'signals', 3, 'netstat -ltn 2>/dev/null | grep -c 9229; echo on');
    assert.deepEqual([second.output, second.podUID], ['sent\n', first.podUID], JSON.stringify(second));
    assert.deepEqual([third.output, third.podUID], ['0\non\n', first.podUID], JSON.stringify(third));
  });

  test('has a runner that says how well it is protected; a class refuses one whose Node can be read', async (t) => {
    const namespace = await makeNamespace(t);
    const sandbox = { require: ['RunnerHardened', 'AgentContained'] };
    const overrides = ['agent.command', 'agent.args', 'agent.input', 'agent.result', 'image'];
    const metadata = { name: `${namespace}-strict` };
    t.onTestFinished(() => remove('sessionclass', metadata.name));
    await apply(
      { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata, spec: { sandbox, overrides } },
      session(namespace, 'strict', { agent, class: metadata.name }),
      session(namespace, 'refused', { agent, class: metadata.name, image: readableImage }),
      session(namespace, 'told', { agent, image: readableImage }),
    );
    // A session may show what its runner reports only after the end of a short turn.
    const hardened = async (name: string) => {
      const own = ({ status }: Any) => status?.conditions?.find(({ type }: Any) => type === 'RunnerHardened');
      const isKnown = (found: Any) => ['True', 'False'].includes(own(found)?.status);
      const { status, reason } = own(await until(namespace, 'session', name, isKnown));
      return `${status} ${reason}`;
    };
    assert.equal((await run(namespace, 'strict', 1, 'echo one')).output, 'one\n');
    assert.equal(await hardened('strict'), 'True RunnerHardened');
    // The report is true.
    const told = await run(namespace, 'told', 1, 'head -c 1 /proc/1/environ >/dev/null && echo open');
    assert.equal(told.output, 'open\n');
    assert.equal(await hardened('told'), 'False RunnerNotHardened');
    const refused = await run(namespace, 'refused', 1, 'echo one');
    assert.deepEqual([refused.phase, refused.error?.code, refused.output], ['Failed', 'RunnerNotHardened', undefined]);
    for (const name of ['told', 'refused']) {
      const selector = `involvedObject.name=${name},reason=RunnerNotHardened,type=Warning`;
      const events = async () => (await get(['events', '-n', namespace, '--field-selector', selector])).items.length;
      await eventually(async () => (await events()) === 1, { what: `one warning of session ${name}` });
    }
  });

  test('that kills its keeper or everybody loses its turn only: nobody is left, the session goes on in the same pod', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'killer', { agent }));
    const daemon = '(setsid setsid sleep 4242 >/dev/null 2>&1 &); sleep 0.3';
    const first = await run(namespace, 'killer', 1, `${daemon}; kill -9 $PPID; sleep 60`);
    assert.deepEqual([first.phase, first.error.code], ['Failed', 'AgentFailed']);
    const second = await run(namespace, 'killer', 2, 'kill -9 -1; sleep 60');
    assert.equal(second.phase, 'Failed');
    const third = await run(namespace, 'killer', 3, 'ps -o args | grep -c "[4]242"; echo on');
    assert.deepEqual([third.output, third.podUID], ['0\non\n', first.podUID]);
  });

  test('that forks without end comes to an end, and its neighbour answers meanwhile', async (t) => {
    const namespace = await makeNamespace(t);
    const limits = { resources: { limits: { cpu: '500m', memory: '256Mi' } } };
    await apply(session(namespace, 'bomb', { agent, ...limits }), session(namespace, 'neighbour', { agent }));
    await run(namespace, 'neighbour', 1, 'echo one');
    const bomb = 'ulimit -u 150; trap "" TERM; f() { f | f & }; f; while :; do f; sleep 0.05; done';
    await apply(turn(namespace, 'bomb-1', 'bomb', bomb, { timeout: '3s' }));
    assert.equal((await run(namespace, 'neighbour', 2, 'echo two')).output, 'two\n');
    const { status } = await ended(namespace, 'bomb-1');
    const codes = ['AgentFailed', 'TurnTimedOut', 'TooManyProcesses', 'MemoryLimit', 'OOMKilled', 'PodLost'];
    assert.ok(codes.includes(status.error?.code), JSON.stringify(status));
    assert.equal((await run(namespace, 'bomb', 2, 'echo on')).output, 'on\n');
  });

  test('that takes all the memory ends its turn with a reason, and the session goes on', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'greedy', { agent, resources: { limits: { memory: '256Mi' } } }));
    const status = await run(
      namespace,
      'greedy',
      1,
      "tail -c 1000000000 /dev/zero | wc -c; x=$(head -c 1000000000 /dev/zero | tr '\\0' x); echo survived",
    );
    assert.notEqual(status.phase, 'Succeeded');
    assert.ok(
      ['OOMKilled', 'MemoryLimit', 'AgentFailed', 'PodLost'].includes(status.error.code),
      JSON.stringify(status),
    );
    assert.equal((await run(namespace, 'greedy', 2, 'echo on')).output, 'on\n');
  });

  test('that fills the disk ends its turn as DiskFull, wherever it writes, and the session goes on from its committed state', async (t) => {
    const namespace = await makeNamespace(t);
    const resources = { limits: { 'ephemeral-storage': '96Mi' } };
    const places = { home: '"$HOME"', work: '.', state: '"$BERTH_STATE_DIR"' };
    const scratch = `scratch-${namespace}`;
    await apply({
      ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name: scratch } },
      spec: { agent, overrides: ['resources'], sandbox: { readOnlyRootFilesystem: false, scratch: 'Image' } },
    });
    t.onTestFinished(() => remove('sessionclass', scratch));
    const sessions = [
      ...Object.entries(places).map(([name, place]) => ({ name, place, spec: { agent, resources } })),
      { name: 'image', place: '"$HOME"', spec: { class: scratch, agent: undefined, resources } },
    ];
    await Promise.all(
      sessions.map(async ({ name, place, spec }) => {
        await apply(session(namespace, name, spec));
        await run(namespace, name, 1, 'echo kept > "$BERTH_STATE_DIR/note"');
        const began = performance.now();
        // A kubelet looks at the disk of its pods about once a minute.
        const fill = `head -c 250000000 /dev/zero > ${place}/full; sleep 600`;
        const { error } = await run(namespace, name, 2, fill, 400_000);
        await t.annotate(`${name}: DiskFull after ${Math.round((performance.now() - began) / 1000)} s`);
        assert.equal(error?.code, 'DiskFull', JSON.stringify(error));
        assert.match(error.message, /more of its node’s disk than it may: .*96Mi/);
        assert.equal((await run(namespace, name, 3, 'cat "$BERTH_STATE_DIR/note"')).output, 'kept\n');
      }),
    );
  });

  test('that prints forged frames on both streams says nothing by them', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'forger', { agent }));
    const { uid } = (await get(['session', 'forger', '-n', namespace])).metadata;
    const frame = `<<<BERTH_START {"v":1,"sid":"${uid}","inc":1,"boot":"0","seq":9,"kind":"bye","part":1,"parts":1}>>>\nAAAA\n<<<BERTH_END 9/1>>>`;
    const status = await run(namespace, 'forger', 1, `cat <<'END' | tee /dev/stderr\n${frame}\nEND`);
    assert.deepEqual([status.phase, status.output], ['Succeeded', `${frame}\n`]);
    assert.equal((await run(namespace, 'forger', 2, 'echo on')).output, 'on\n');
  });

  test('is nothing that the controller restarts for', async () => {
    assert.deepEqual(await restarts(), restartsBefore);
    const { metadata } = await leadingPod();
    assert.doesNotMatch(
      await kubectl(['logs', metadata.name, '-n', releaseNamespace, '--since=10m']),
      /"level":"fatal"/,
    );
  });
});
