import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { HELPER_PATH } from '../../../core/enter/hello.ts';
import { eventually } from '../../support/eventually.ts';
import { caller } from '../support/caller.ts';
import { type Any, get, kubectl, release, releaseNamespace, tryKubectl } from '../support/cluster.ts';
import { makeSession, SHELLS } from '../support/entered.ts';
import { type PortForward, portForward, sessionPort } from '../support/port-forward.ts';
import { install } from '../support/release.ts';
import { account, becomes } from '../support/rights.ts';

describe('the HTTP API with api.enter.enabled', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-enter-api-'));
  let forward: PortForward | undefined;
  let url = '';

  beforeAll(async () => {
    await install({ 'api.enter.enabled': true });
    // The API server hears of the rights by a watch of its own.
    await becomes(true, account('api'), 'create', 'pods', '--subresource', 'exec', '--all-namespaces');
    forward = await portForward(80);
    url = `http://127.0.0.1:${forward.port}`;
  });
  afterAll(async () => {
    forward?.end();
    rmSync(folder, { recursive: true });
    await install();
  });

  /** Writes what is secret into a file; resolves with its path. */
  function kept(name: string, content: string): string {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }

  test('serves commands, files and ports to whoever has the roles, and to nobody else', async (t) => {
    const { namespace } = await makeSession(t, 'Injected');
    const session = `${url}/v1/namespaces/${namespace}/sessions/notes`;
    const editor = await caller(namespace, 'editor', 'edit');
    const viewer = await caller(namespace, 'viewer', 'view');
    const ask = (method: string, path: string, body?: string | Uint8Array<ArrayBuffer>, token = editor) => {
      const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream';
      const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': type }) };
      return fetch(`${session}/${path}`, { method, headers, ...(body && { body }) });
    };
    const command = (script: string, token = editor) =>
      ask('POST', 'commands?wait=60s', JSON.stringify({ command: [...SHELLS.Injected, script] }), token);

    const answer = await command('echo "$BERTH_SESSION"; echo why >&2; exit 7');
    const ran = (await answer.json()) as Any;
    assert.equal(answer.status, 201, JSON.stringify(ran));
    assert.deepEqual([ran.exit.code, ran.stdout.text, ran.stderr.text], [7, 'notes\n', 'why\n']);

    const content = randomBytes(3_000_000);
    const put = await ask('PUT', 'files/state/new/data', new Uint8Array(content));
    assert.equal(((await put.json()) as Any).kept, 'State');
    const back = await ask('GET', 'files/state/new/data');
    assert.ok(Buffer.from(await back.arrayBuffer()).equals(content));
    assert.equal((await ask('GET', 'files/state/out')).status, 403);
    assert.equal((await ask('DELETE', 'files/state/new?recursive=true')).status, 204);
    assert.equal((await ask('GET', 'files/state/new/data')).status, 404);

    const started = ask(
      'POST',
      'commands',
      JSON.stringify({
        command: [...SHELLS.Injected, 'exec "$BUSYBOX" httpd -f -p 127.0.0.1:8000 -h "$BERTH_STATE_DIR"'],
      }),
    );
    assert.equal((await started).status, 201);
    const server = ['--server', url, '--token-file', kept('editor', editor)];
    const { port, end } = await sessionPort(namespace, 'notes', 8000, ...server);
    t.onTestFinished(end);
    const page = () => fetch(`http://127.0.0.1:${port}/a`).then((found) => found.text());
    // The server takes a moment to listen.
    assert.equal(await eventually(() => page().catch(() => undefined), { what: 'a page of the session' }), 'one');

    for (const refused of [command('true', viewer), ask('GET', 'files/state/a', undefined, viewer)]) {
      const { status, code } = await refused.then(async (found) => ({
        status: found.status,
        ...((await found.json()) as Any),
      }));
      assert.deepEqual([status, code], [403, 'Forbidden']);
    }
  });

  test('has an account that a policy holds to the helper in the container of sessions’ pods', async (t) => {
    const { namespace } = await makeSession(t, 'Image');
    const { status } = await get(['session', 'notes', '-n', namespace]);
    const { items } = await get(['pods', '-n', releaseNamespace, '-l', 'app.kubernetes.io/component=api']);
    const token = (await kubectl(['create', 'token', `${release}-api`, '-n', releaseNamespace])).trim();
    // As whoever has stolen the account's token, and nothing else.
    const [{ cluster }] = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '-o', 'json'])).clusters;
    const stolen = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
      clusters: [{ name: 'c', cluster }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
      users: [{ name: 'c', user: { token } }],
    };
    const kubeconfig = kept('kubeconfig', JSON.stringify(stolen));
    const as = (of: string, ...args: string[]) => tryKubectl(['--kubeconfig', kubeconfig, '-n', of, ...args]);
    const session = ['-c', 'session'];
    const pod = status.podName as string;
    // kubectl itself refuses to forward ports of a pod whose container does not run yet.
    await kubectl(['wait', `pod/${pod}`, '-n', namespace, '--for=condition=Ready', '--timeout=120s']);

    const raw = (query: string) =>
      as(namespace, 'get', '--raw', `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}&stdout=true`);

    const own = await as(namespace, 'exec', pod, ...session, '--', HELPER_PATH);
    assert.doesNotMatch(own.stderr, /denied request|[Ff]orbidden/);
    const refused: [string, Promise<{ code: number; stderr: string }>][] = [
      ['another pod', as(releaseNamespace, 'exec', items[0].metadata.name, ...session, '--', HELPER_PATH)],
      ['another container', as(namespace, 'exec', pod, '-c', 'inject', '--', HELPER_PATH)],
      ['another command', as(namespace, 'exec', pod, ...session, '--', 'sh')],
      ['the helper in a shell', as(namespace, 'exec', pod, ...session, '--', 'sh', '-c', HELPER_PATH)],
      [
        'the helper by another path',
        as(namespace, 'exec', pod, ...session, '--', '/berth-runner/bin/../bin/berth-enter'),
      ],
      ['an argument', as(namespace, 'exec', pod, ...session, '--', HELPER_PATH, 'x')],
      // kubectl itself asks for a terminal only where it has one, and always names a container.
      ['a terminal', raw(`container=session&command=${HELPER_PATH}&tty=true`)],
      ['no container', raw(`command=${HELPER_PATH}`)],
    ];
    const policy = `ValidatingAdmissionPolicy '${release}-api-exec.${releaseNamespace}'`;
    for (const [what, answer] of refused) {
      const { code, stderr } = await answer;
      assert.equal(code, 1, `${what}: ${stderr}`);
      assert.ok(stderr.includes(policy), `${what}: ${stderr}`);
      assert.match(stderr, /denied request: the HTTP API of Berth /, what);
    }
    for (const args of [
      ['attach', pod, ...session],
      ['port-forward', pod, ':8000'],
    ]) {
      const { code, stderr } = await as(namespace, ...args);
      assert.equal(code, 1, args.join(' '));
      assert.match(
        stderr,
        /pods "\S+" is forbidden: User "\S+" cannot (get|create) resource "pods\/(attach|portforward)"/,
      );
    }
  });
});
