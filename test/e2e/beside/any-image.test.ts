import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { busyboxImage, debianImage, debianPythonImage, muslImage, staticImage } from '../support/any-images.ts';
import {
  type Any,
  apply,
  ended,
  get,
  inContainer,
  kubectl,
  makeNamespace,
  remove,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { runnerImage } from '../support/images.ts';
import { onNode } from '../support/node.ts';

/** A SessionClass of the test's own. */
async function makeClass(t: TestContext, namespace: string, spec: object): Promise<string> {
  const name = `${namespace}-class`;
  await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name }, spec });
  t.onTestFinished(() => remove('sessionclass', name));
  return name;
}

const limits = { limits: { memory: '512Mi' } };
/** Pods get no turn whose runner is less protected than one can be. */
const protectedPods = { sandbox: { require: ['RunnerHardened', 'AgentContained'] } };

/** Runs one turn on a session of its own; resolves to the turn's status. */
async function once(t: TestContext, spec: object, input: unknown, namespace?: string): Promise<Any> {
  const own = namespace ?? (await makeNamespace(t));
  const name = await makeClass(t, own, { resources: limits, ...spec });
  await apply(session(own, 'any', { class: name, agent: undefined }), turn(own, 'any-1', 'any', input));
  return (await ended(own, 'any-1')).status;
}

// Each test has a namespace and a class of its own, and waits for its pod most of the time.
describe('runner Injected', { concurrent: true }, () => {
  for (const { what, image, command } of [
    { what: 'a busybox', image: busyboxImage, command: ['cat'] },
    { what: 'a Debian', image: debianImage, command: ['/bin/bash', '-c', 'exec cat'] },
    { what: 'a Debian with Python', image: debianPythonImage, command: ['python3', '-c', 'print(input(), end="")'] },
    { what: 'an image with a musl and a program for it', image: muslImage, command: ['/agent'] },
    { what: 'an image with one static program and nothing else', image: staticImage, command: ['/busybox', 'cat'] },
  ]) {
    test(`${what} runs a session`, async (t) => {
      const agent = { command, input: 'Text', result: 'Text' };
      const status = await once(t, { runner: 'Injected', image, agent, ...protectedPods }, 'hello');
      assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
      assert.equal(status.output, 'hello');
    });
  }

  test('the state of a session in any image survives its suspension', async (t) => {
    const namespace = await makeNamespace(t);
    const script = 'cat >>"$BERTH_STATE_DIR/notes"; cat "$BERTH_STATE_DIR/notes"';
    const agent = { command: ['/bin/sh', '-c', script], input: 'Text', result: 'Text' };
    const name = await makeClass(t, namespace, { runner: 'Injected', image: busyboxImage, agent, resources: limits });
    await apply(session(namespace, 'any', { class: name, agent: undefined, suspendRequest: 'one' }));
    await apply(turn(namespace, 'any-1', 'any', 'a'));
    await ended(namespace, 'any-1');
    await kubectl([
      'patch',
      'session',
      'any',
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"spec":{"suspendRequest":"two"}}',
    ]);
    await until(namespace, 'session', 'any', ({ status }) => status.phase === 'Suspended');
    await apply(turn(namespace, 'any-2', 'any', 'b'));
    const { status } = await ended(namespace, 'any-2');
    assert.equal(status.output, 'ab', JSON.stringify(status));
    assert.equal(status.incarnation, 2);
  });

  test('an agent gets nothing of how its runner was started, and of the image its PATH', async (t) => {
    const agent = { command: ['/bin/bash', '-c', 'env'], input: 'Text', result: 'Text' };
    const status = await once(t, { runner: 'Injected', image: debianImage, agent }, '');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.doesNotMatch(status.output, /^(LD_|NODE_)/m);
    assert.match(status.output, /^PATH=\/usr\/local\/bin:\/usr\/bin:\/bin:\/berth-runner\/bin$/m);
  });

  test('an agent cannot read, trace or inspect the runner that was brought along, nor change it', async (t) => {
    const script = `
      for path in environ mem maps fd/0 fd/1 auxv exe; do
        if head -c1 /proc/1/$path >/dev/null 2>&1; then echo "read $path"; fi
      done
      if (echo >>/proc/1/mem) 2>/dev/null; then echo "wrote mem"; fi
      if (echo >>/proc/1/fd/1) 2>/dev/null; then echo "wrote stdout"; fi
      if readlink /proc/1/fd/0 /proc/1/exe 2>/dev/null; then echo "read a link"; fi
      if head -c1 /berth-runner/lib/ld.so 2>/dev/null; then echo "read the loader"; fi
      for file in lib/ld.so node runner.cjs keeper; do
        if (echo >>/berth-runner/$file) 2>/dev/null; then echo "wrote $file"; fi
        if chmod 0777 /berth-runner/$file 2>/dev/null; then echo "changed $file"; fi
        if rm -f /berth-runner/$file 2>/dev/null; then echo "removed $file"; fi
      done
      kill -USR1 1; sleep 1
      if nc -w1 127.0.0.1 9229 </dev/null 2>/dev/null; then echo "inspected"; fi
      tr '\\0' ' ' </proc/1/cmdline; echo; ls -ln /proc/1/mem; ls -ln /berth-runner/lib/ld.so; id -u`;
    const agent = { command: ['/bin/sh', '-c', script], input: 'Text', result: 'Text' };
    const status = await once(t, { runner: 'Injected', image: busyboxImage, agent }, '');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    const [first, ...rest] = status.output.trim().split('\n');
    assert.match(first, /^\/berth-runner\/lib\/ld\.so .*runner\.cjs/, status.output);
    assert.match(rest[0], /^-rw------- +1 0 +0 /, 'the runner’s memory is root’s');
    assert.match(rest[1], /^-rwx--x--x +1 65531 /, 'the loader can be run, not read');
    assert.equal(rest[2], '65532');
  });

  test('the runner is protected only with a loader of another user and without capabilities', async (t) => {
    const namespace = await makeNamespace(t, 'baseline');
    const folder = '/berth-runner';
    const node = [
      '--inhibit-cache',
      '--library-path',
      `${folder}/lib`,
      `${folder}/node`,
      '-e',
      'setInterval(() => {}, 1e6)',
    ];
    const pod = (name: string, bringer: number, security: object) => ({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name } },
      spec: {
        restartPolicy: 'Never',
        securityContext: { runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532 },
        initContainers: [
          {
            ...{ name: 'runner', image: runnerImage, command: ['/opt/berth/inject', folder] },
            securityContext: { runAsUser: bringer, runAsGroup: 65531 },
            volumeMounts: [{ name: 'runner', mountPath: folder }],
          },
        ],
        containers: [
          {
            ...{ name: 'session', image: busyboxImage, command: [`${folder}/lib/ld.so`, ...node] },
            securityContext: security,
            volumeMounts: [{ name: 'runner', mountPath: folder, readOnly: true }],
          },
        ],
        volumes: [{ name: 'runner', emptyDir: {} }],
      },
    });
    const without = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
    await apply(pod('as-it-is', 65531, without), pod('same-user', 65532, without), pod('capable', 65531, {}));
    // A container runs a moment before its program is what the process is.
    const hasBegun = "until tr '\\0' ' ' </proc/1/cmdline | grep -q setInterval; do sleep 0.1; done";
    const read = 'head -c1 /proc/1/environ >/dev/null 2>&1 && echo open || echo closed';
    const probe = ['sh', '-c', `${hasBegun}; ${read}`];
    for (const [name, expected] of [
      ['as-it-is', 'closed'],
      ['same-user', 'open'],
      ['capable', 'open'],
    ] as const) {
      await until(namespace, 'pod', name, ({ status }) => status.containerStatuses?.[0]?.state?.running);
      const said = await inContainer(namespace, name, 'session', probe);
      assert.equal(said.trim(), expected, name);
    }
  });

  test('an image that cannot be had is named, whichever of the two it is', async (t) => {
    const namespace = await makeNamespace(t);
    const agent = { command: ['cat'] };
    const name = await makeClass(t, namespace, {
      ...{ runner: 'Injected', image: 'example/missing:e2e', imagePullPolicy: 'Never', agent },
    });
    await apply(session(namespace, 'any', { class: name, agent: undefined }), turn(namespace, 'any-1', 'any', ''));
    const { status } = await ended(namespace, 'any-1');
    assert.equal(status.error.code, 'ImageUnavailable', JSON.stringify(status));
    assert.match(status.error.message, /example\/missing:e2e/);
  });

  test('a class without an image is refused by the API server, with the field', async (t) => {
    await assert.rejects(
      makeClass(t, `none-${process.pid}`, { runner: 'Injected' }),
      /spec\.image: Invalid value.*set the image of the agent/s,
    );
    assert.ok(await get(['sessionclass', 'default']));
  });
});

describe('runner None', { concurrent: true }, () => {
  const start = '<<<BERTH_RESULT_START>>>';
  const end = '<<<BERTH_RESULT_END>>>';
  const plain = (script: string) => ({
    runner: 'None',
    image: busyboxImage,
    agent: { command: ['/bin/sh', '-c', script] },
  });

  test('an image without a runner that only prints the markers works with no runner at all', async (t) => {
    const script = `echo before; printf '%s' '${start}{"status":"success","output":['"$BERTH_INPUT,$(cat)"']}${end}'; id -u >&2`;
    const status = await once(t, plain(script), { text: '$(HOME) $$ "x"' });
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, [{ text: '$(HOME) $$ "x"' }, { text: '$(HOME) $$ "x"' }]);
    assert.match(status.log.inline, /before/);
    assert.match(status.log.inline, /65532/);
  });

  test('an input that no variable can hold comes by stdin', async (t) => {
    const script = `echo '${start}{"status":"success","output":"'$(wc -c)' '\${#BERTH_INPUT}'"}${end}'`;
    assert.equal((await once(t, plain(script), 'x'.repeat(131_058))).output, '131061 0');
  });

  test('an image with one static program fails with its exit code and what it printed', async (t) => {
    const agent = { command: ['/busybox', 'ls', '/no-such-file'] };
    const status = await once(t, { runner: 'None', image: staticImage, agent }, null);
    assert.equal(status.error.code, 'AgentFailed', JSON.stringify(status));
    assert.match(status.error.message, /^exit code 1\n.*no-such-file/);
  });

  describe('with more output than the 10 MiB of a log file, which the kubelet has rotated before the program ends,', () => {
    const LINES = 12;
    const written = LINES * 1_000_001;
    const result = (fields: object) => `${start}${JSON.stringify({ status: 'success', ...fields })}${end}`;
    // The kubelet checks the size of logs every 10 s, and only of running containers. So the program waits for
    // the rotation, which the test sees; what it prints afterwards is too little for another one.
    const noise = `sleep 5; i=0; while [ $i -lt ${LINES} ]; do head -c 1000000 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done
      while [ ! -e "$HOME/rotated" ]; do sleep 0.2; done`;

    /** Runs one turn and lets its program go on once its log has been rotated; resolves to the turn's status. */
    async function rotated(t: TestContext, script: string): Promise<Any> {
      const namespace = await makeNamespace(t);
      const done = once(t, plain(script), null, namespace);
      // The caller awaits `done` and gets its error. This handler stops the wait below once the turn has ended.
      let hasEnded = false;
      const end = () => {
        hasEnded = true;
      };
      done.then(end, end);
      const running = await eventually(
        async () => {
          if (hasEnded) return 'Ended';
          const [{ metadata, spec, status }] = (await get(['pods', '-n', namespace])).items;
          return status.phase === 'Running' ? { pod: metadata.name, node: spec.nodeName } : undefined;
        },
        { timeoutMs: 180_000, what: 'the program runs' },
      );
      if (running === 'Ended') return done;
      const find = ['find', '/var/log/pods', '-path', `/var/log/pods/${namespace}_*`, '-name', '0.log*'];
      await eventually(
        async () => {
          // The older one, and the one that the runtime writes to from then on.
          const files = (await onNode(running.node, find)).split('\n').filter(Boolean);
          return hasEnded || (files.length > 1 && files.some((file) => file.endsWith('/0.log')));
        },
        { timeoutMs: 120_000, what: 'the kubelet has rotated the log' },
      );
      if (hasEnded) return done;
      const go = inContainer(namespace, running.pod, 'session', ['sh', '-c', ': >"$HOME/rotated"']);
      // Told twice, it may be gone by the second time.
      await Promise.race([go, done]);
      return done;
    }

    test('a result at the end is found across the rotation', async (t) => {
      const status = await rotated(t, `${noise}; echo after; echo '${result({ output: 1 })}'`);
      assert.equal(status.output, 1, JSON.stringify(status));
      assert.ok(status.log.bytes > 0 && status.log.bytes < written, `${status.log.bytes} bytes are left of ${written}`);
    });

    test('a result around it is missing with words for it', async (t) => {
      const status = await rotated(t, `printf '${start}'; ${noise}; echo '${end}'`);
      assert.equal(status.error?.code, 'MissingEnvelope', JSON.stringify(status));
      assert.match(status.error.message, /without its start, which has been rotated away/);
    });

    for (const { what, last } of [
      { what: 'something', last: 'echo late' },
      { what: 'nothing', last: 'true' },
    ]) {
      test(`a result before it is missing with words for it, where ${what} was printed afterwards`, async (t) => {
        const status = await rotated(t, `echo '${result({})}'; ${noise}; ${last}`);
        assert.equal(status.error?.code, 'MissingEnvelope', JSON.stringify(status));
        assert.match(status.error.message, /nothing of the program’s first \d+ s is there: .* rotated away/);
      });
    }
  });

  test('the markers are the class’s, and its program finds them in its environment', async (t) => {
    const resultMarkers = { start: '---begin---', end: '---finish---' };
    const script = `echo "$BERTH_RESULT_START_MARKER"'{"status":"success","output":"'$BERTH_SESSION $BERTH_TURN'"}'"$BERTH_RESULT_END_MARKER"`;
    const status = await once(t, { ...plain(`echo '${start}{}${end}'; ${script}`), resultMarkers }, null);
    assert.equal(status.output, 'any any-1', JSON.stringify(status));
  });

  test('a turn past its timeout is stopped, and a killed pod gives PodLost', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { ...plain('sleep 600'), resources: limits, overrides: ['timeouts'] });
    await apply(session(namespace, 'any', { class: name, agent: undefined }));
    await apply(turn(namespace, 'any-1', 'any', null, { timeout: '2s' }));
    const late = (await ended(namespace, 'any-1')).status;
    assert.equal(late.error?.code, 'TurnTimedOut', JSON.stringify(late));
    await apply(turn(namespace, 'any-2', 'any', null));
    const { status } = await until(namespace, 'turn', 'any-2', ({ status }) => status?.podUID, 180_000);
    // A turn is Running before its program is, and would be given to another pod if its pod went before that.
    const [{ metadata }] = await eventually(
      async () => {
        const { items } = await get(['pods', '-n', namespace]);
        const own = items.filter(({ metadata, status: { containerStatuses: [container] = [] } }: Any) => {
          return metadata.uid === status.podUID && container?.state.running;
        });
        return own.length > 0 ? own : undefined;
      },
      { timeoutMs: 180_000, what: 'the second program runs' },
    );
    await kubectl(['delete', 'pod', metadata.name, '-n', namespace, '--force', '--grace-period=0']);
    const lost = (await ended(namespace, 'any-2')).status;
    assert.equal(lost.error?.code, 'PodLost', JSON.stringify(lost));
  });

  test('a program over its memory limit is OOMKilled', async (t) => {
    const agent = { command: ['tail', '-c', '150000000', '/dev/zero'] };
    const resources = { requests: { memory: '16Mi' }, limits: { memory: '32Mi' } };
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { runner: 'None', image: busyboxImage, agent, resources });
    await apply(session(namespace, 'any', { class: name, agent: undefined }));
    // containerd hears of the kill and of the container's end on two ways. Where the end is first, all that the kubelet ever
    // says is "Error" and 137 (containerd issues 8180 and 12260): nobody can tell such a kill from another.
    for (let index = 1; ; index++) {
      await apply(turn(namespace, `any-${index}`, 'any', null));
      const { status } = await ended(namespace, `any-${index}`);
      if (status.error?.code === 'OOMKilled') return;
      assert.match(
        status.error?.message ?? '',
        /exit code 137\), .*perhaps for want of memory/,
        JSON.stringify(status),
      );
      assert.ok(index < 5, `not once in ${index} times: ${JSON.stringify(status)}`);
    }
  });
});
