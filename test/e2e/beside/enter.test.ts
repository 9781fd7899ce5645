import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { HELPER_PATH } from '../../../core/enter/hello.ts';
import { eventually } from '../../support/eventually.ts';
import { staticImage } from '../support/any-images.ts';
import { apply, berth, get, makeNamespace, remove } from '../support/cluster.ts';
import { sessionPort } from '../support/port-forward.ts';

const SHELLS = { Image: ['sh', '-c'], Injected: ['/busybox', 'sh', '-c'] };

/** Makes what the tests read, with the commands that a static busybox has. */
const TREE = `B="\${BUSYBOX:-}"
  $B mkdir -p "$BERTH_STATE_DIR/site/sub"; cd "$BERTH_STATE_DIR"
  $B printf one > a; $B printf two > site/sub/b; $B ln -s /etc/passwd out; $B mkfifo site/pipe
  $B dd if=/dev/zero bs=1024 count=20000 2>/dev/null | $B tr '\\000' x > large`;

/** A session of a class with this runner, whose turns run their input as a script. */
async function makeSession(
  t: TestContext,
  runner: keyof typeof SHELLS,
): Promise<(...args: string[]) => Promise<string>> {
  const namespace = await makeNamespace(t);
  const name = `${namespace}-class`;
  const image = runner === 'Injected' ? { runner, image: staticImage } : {};
  const sandbox = { require: ['RunnerHardened', 'AgentContained'] };
  const overrides = ['agent.command', 'agent.args', 'agent.input', 'agent.result', 'agent.env'];
  const spec = { ...image, sandbox, overrides, resources: { limits: { memory: '512Mi' } } };
  await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name }, spec });
  t.onTestFinished(() => remove('sessionclass', name));
  const call = async (...args: string[]) => {
    const { code, stdout, stderr } = await berth(['-n', namespace, ...args]);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const env = runner === 'Injected' ? ['--env', 'BUSYBOX=/busybox'] : [];
  const flags = ['--class', name, '--input-as', 'args', '--result', 'text', ...env];
  await call('create', 'notes', ...flags, '--', ...SHELLS[runner], 'eval "$1"', 'sh', '$(INPUT)');
  await call('turn', 'notes', TREE);
  return call;
}

describe('files of a running session', { concurrent: true }, () => {
  for (const runner of ['Image', 'Injected'] as const) {
    test(`arrive from a pod whose runner is ${runner}, by a helper and a runner that know each other`, async (t) => {
      const call = await makeSession(t, runner);
      const folder = mkdtempSync(join(tmpdir(), 'berth-enter-e2e-'));
      t.onTestFinished(() => rmSync(folder, { recursive: true }));
      assert.equal(await call('files', 'cat', 'notes', 'state/a'), 'one');
      assert.deepEqual((await call('files', 'ls', 'notes', 'state', '-o', 'name')).split('\n').sort(), [
        '',
        'a',
        'large',
        'out',
        'site',
      ]);
      await call('cp', 'notes:state/large', join(folder, 'large'));
      const digest = createHash('sha256')
        .update(readFileSync(join(folder, 'large')))
        .digest('hex');
      assert.equal(
        digest,
        createHash('sha256')
          .update('x'.repeat(20_000 * 1024))
          .digest('hex'),
      );
      await call('cp', 'notes:state/site', folder);
      assert.deepEqual(readdirSync(join(folder, 'site'), { recursive: true }).sort(), ['sub', 'sub/b']);
      for (const path of ['../../etc/passwd', 'out', 'site/pipe']) {
        await assert.rejects(call('files', 'cat', 'notes', `state/${path}`), /leads out of state|neither a file/);
      }
      await call('files', 'rm', 'notes', 'state/large');
      await call('cp', join(folder, 'large'), 'notes:state/again');
      await call('cp', join(folder, 'site'), 'notes:state/copy');
      await call('cp', 'notes:state/again', join(folder, 'back'));
      assert.ok(readFileSync(join(folder, 'back')).equals(readFileSync(join(folder, 'large'))));
      assert.equal(await call('files', 'cat', 'notes', 'state/copy/sub/b'), 'two');
      await assert.rejects(call('cp', join(folder, 'large'), 'notes:state/out/x'), /leads out of state/);
      await call('suspend', 'notes');
      await assert.rejects(call('files', 'ls', 'notes', 'state'), /session notes is suspended/);
    });
  }

  test('a server that a command started is reached by port-forward', async (t) => {
    const call = await makeSession(t, 'Injected');
    const serve = 'exec "$BUSYBOX" httpd -f -p 127.0.0.1:8000 -h "$BERTH_STATE_DIR"';
    await call('exec', '--detach', 'notes', '--', ...SHELLS.Injected, serve);
    const { metadata } = JSON.parse(await call('get', 'notes', '-o', 'json'));
    const { port, end } = await sessionPort(metadata.namespace, 'notes', 8000);
    t.onTestFinished(end);
    const page = () => fetch(`http://127.0.0.1:${port}/a`).then((answer) => answer.text());
    // The server takes a moment to listen.
    assert.equal(await eventually(() => page().catch(() => undefined), { what: 'a page of the session' }), 'one');
  });

  test('the agent can neither read the helper nor get in by it', async (t) => {
    const call = await makeSession(t, 'Image');
    const { metadata, status } = JSON.parse(await call('get', 'notes', '-o', 'json'));
    const hello = { protocol: 1, session: metadata.uid, incarnation: status.incarnation };
    const json = JSON.stringify({ ...hello, want: 'read', root: 'state', path: 'a' });
    const pod = await get(['pod', status.podName, '-n', metadata.namespace]);
    const header = `H\\000\\000\\000\\${Buffer.byteLength(json).toString(8).padStart(3, '0')}`;
    const script = `cat ${HELPER_PATH} >/dev/null 2>&1 && echo read
      printf '${header}%s' '${json}' | BERTH_POD_UID=${pod.metadata.uid} ${HELPER_PATH} | tr -d '\\000'`;
    const said = await call('turn', 'notes', script);
    assert.doesNotMatch(said, /read\n|"sha256"/);
    assert.match(said, /gave no answer|does not take the hello/);
  });
});

describe('commands inside a running session', { concurrent: true }, () => {
  for (const runner of ['Image', 'Injected'] as const) {
    test(`run in a pod whose runner is ${runner}, with the agent’s variables, and end as they end`, async (t) => {
      const call = await makeSession(t, runner);
      const sh = (script: string) => [...SHELLS[runner], `B="\${BUSYBOX:-}"; cd "$BERTH_STATE_DIR"; ${script}`];
      const large = await call('exec', 'notes', '--', ...sh('$B cat large'));
      assert.equal(large.length, 20_000 * 1024);
      await assert.rejects(call('exec', 'notes', '--', ...sh('echo why >&2; exit 7')), { actual: 7, message: /why/ });
      const id = (await call('exec', '--detach', 'notes', '--', ...sh('$B sleep 1000'))).trim();
      assert.match(await call('exec', '--list', 'notes'), new RegExp(`^${id} +Running, detached `, 'm'));
      await call('exec', '--kill', id, 'notes');
      await assert.rejects(call('exec', '--attach', id, 'notes'), { actual: 143 });
      const suspended = call('exec', 'notes', '--', ...sh('$B sleep 1000'));
      const ended = assert.rejects(suspended, { actual: 255 });
      await call('suspend', 'notes');
      await ended;
      await assert.rejects(call('exec', 'notes', '--', ...sh('true')), { actual: 255, message: /is suspended/ });
    });
  }
});
