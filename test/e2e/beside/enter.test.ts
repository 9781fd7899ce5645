import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { HELPER_PATH } from '../../../core/enter/hello.ts';
import { eventually } from '../../support/eventually.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { checkout, finish, get } from '../support/cluster.ts';
import { makeSession, SHELLS } from '../support/entered.ts';
import { podPort, sessionPort } from '../support/port-forward.ts';

describe('files of a running session', { concurrent: true }, () => {
  for (const runner of ['Image', 'Injected'] as const) {
    test(`arrive from a pod whose runner is ${runner}, by a helper and a runner that know each other`, async (t) => {
      const { call } = await makeSession(t, runner);
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

  test('a server that a command started is reached by berth port-forward and by kubectl port-forward', async (t) => {
    const { namespace, call } = await makeSession(t, 'Injected');
    const serve = 'exec "$BUSYBOX" httpd -f -p 127.0.0.1:8000 -h "$BERTH_STATE_DIR"';
    await call('exec', '--detach', 'notes', '--', ...SHELLS.Injected, serve);
    const { status } = await get(['session', 'notes', '-n', namespace]);
    for (const forwarding of [sessionPort(namespace, 'notes', 8000), podPort(namespace, status.podName, 8000)]) {
      const { port, end } = await forwarding;
      t.onTestFinished(end);
      const page = () => fetch(`http://127.0.0.1:${port}/a`).then((answer) => answer.text());
      // The server takes a moment to listen.
      assert.equal(await eventually(() => page().catch(() => undefined), { what: 'a page of the session' }), 'one');
    }
  });

  test('the agent can neither read the helper nor get in by it', async (t) => {
    const { call } = await makeSession(t, 'Image');
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
      const { call } = await makeSession(t, runner);
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

describe('a terminal inside a running session', { concurrent: true }, () => {
  /** What the session's shell is asked on the terminal, and what it says. */
  async function isTerminal(t: TestContext, runner: keyof typeof SHELLS, ...words: string[]): Promise<void> {
    const { namespace } = await makeSession(t, runner);
    const command = `bin/berth -n ${namespace} ${words.join(' ')}`;
    const line = `tty; stty rows 33 cols 77; ${command}; echo code=$?; stty -a | tr ' ' '\\n' | grep icanon`;
    const terminal = new OnTerminal(line, {}, checkout);
    terminal.types(`export B="\${BUSYBOX:-}"; echo "<$TERM $($B stty size)>"\n`);
    await terminal.says('<xterm 33 77>');
    // Ctrl-C ends the program in front, not the shell.
    terminal.types('(echo $((600 + 66)); exec $B sleep 1000)\n');
    await terminal.says('666');
    terminal.types('\x03');
    // A terminal tells its size to the program in front, and `sh -c` has what it starts in its own process group.
    terminal.types(`$B sh -c 'trap "$B stty size" WINCH; echo $((700 + 77)); while :; do $B sleep 0.05; done'\n`);
    await terminal.says('777');
    const own = /\/dev\/\S+/.exec(terminal.shown)?.[0] as string;
    await finish('stty', ['-F', own, 'rows', '51', 'cols', '101']);
    await terminal.says('51 101');
    terminal.types('\x03');
    terminal.types('exit 9\n');
    await terminal.says(/code=9\r\nicanon/);
    assert.equal(await terminal.ended, 0);
  }

  test('is a shell of its size that takes Ctrl-C and gives its exit code', (t) =>
    isTerminal(t, 'Image', 'shell notes'));

  test('is given to a program of an image without a shell by exec -it', (t) =>
    isTerminal(t, 'Injected', 'exec -it notes -- /busybox sh'));

  test('is refused where the image has no shell', async (t) => {
    const { namespace } = await makeSession(t, 'Injected');
    const terminal = new OnTerminal(`bin/berth -n ${namespace} shell notes; echo code=$?`, {}, checkout);
    await terminal.says(/session notes has no shell \/bin\/sh that runs .*--shell/);
    await terminal.says('code=255');
    await terminal.ended;
  });
});
