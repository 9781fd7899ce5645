import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { loadConnection } from '../../../core/kube/config.ts';
import { KubeConfigError } from '../../../core/kube/connection.ts';

function folder(t: TestContext, files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'berth-kubeconfig-'));
  t.onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text, { mode: 0o700 });
  return dir;
}

const kubeconfig = (user: object, cluster: object = {}, context: object = {}) =>
  JSON.stringify({
    'current-context': 'here',
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443/prefix/', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', ...context } }],
  });

const BASE64 = (text: string) => Buffer.from(text).toString('base64');

describe('kubeconfig', () => {
  test('server, certificates, token, namespace and server name are taken from the current context', async (t) => {
    const dir = folder(t, {
      config: kubeconfig(
        { token: 'secret', 'client-certificate': 'cert.pem', 'client-key-data': BASE64('the key') },
        { 'certificate-authority-data': BASE64('the ca'), 'tls-server-name': 'api.example' },
        { namespace: 'team' },
      ),
      'cert.pem': 'the certificate',
    });
    const connection = await loadConnection({ path: join(dir, 'config') });
    assert.equal(connection.server, 'https://10.0.0.1:6443/prefix');
    assert.equal(connection.namespace, 'team');
    assert.deepEqual(await connection.headers(), { authorization: 'Bearer secret' });
    assert.deepEqual(Object.fromEntries(Object.entries(connection.tls).map(([key, value]) => [key, String(value)])), {
      ca: 'the ca',
      cert: 'the certificate',
      key: 'the key',
      servername: 'api.example',
    });
  });

  test('of several files the first that names something wins, and a context can be chosen', async (t) => {
    const dir = folder(t, {
      one: 'current-context: b\ncontexts:\n- {name: b, context: {cluster: c2, user: u}}\n',
      two: kubeconfig({ token: 'of two' }),
      three:
        'clusters: [{name: c2, cluster: {server: "http://127.0.0.1:1"}}]\nusers: [{name: u, user: {token: of three}}]\n',
    });
    const env = { KUBECONFIG: ['one', 'missing', 'two', 'three'].map((name) => join(dir, name)).join(':') };
    const chosen = await loadConnection({ env });
    assert.equal(chosen.server, 'http://127.0.0.1:1');
    assert.deepEqual(await chosen.headers(), { authorization: 'Bearer of two' });
    assert.equal((await loadConnection({ env, context: 'here' })).server, 'https://10.0.0.1:6443/prefix');
    await assert.rejects(loadConnection({ env, context: 'nowhere' }), /there is no context "nowhere"/);
  });

  test('a user can be a password, an impersonated one, or a token file that is read again when it changes', async (t) => {
    const dir = folder(t, {
      basic: kubeconfig({ username: 'ann', password: 'pw', as: 'bob' }),
      file: kubeconfig({ tokenFile: 'token', token: 'old' }),
      token: 'first\n',
    });
    const basic = await loadConnection({ path: join(dir, 'basic') });
    assert.deepEqual(await basic.headers(), { authorization: `Basic ${BASE64('ann:pw')}`, 'impersonate-user': 'bob' });
    const file = await loadConnection({ path: join(dir, 'file') });
    assert.deepEqual(await file.headers(), { authorization: 'Bearer first' });
    // The length differs, because two writes within a tick of the file system's clock have the same time.
    writeFileSync(join(dir, 'token'), 'the second\n');
    assert.deepEqual(await file.headers(), { authorization: 'Bearer the second' });
    rmSync(join(dir, 'token'));
    assert.deepEqual(await file.headers(), { authorization: 'Bearer the second' });
  });

  test('an exec plugin beside the kubeconfig gives token and certificate and is told about the cluster', async (t) => {
    const credential = '{"token":"from plugin","clientCertificateData":"C","clientKeyData":"K"}';
    const dir = folder(t, {
      config: kubeconfig({
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: './plugin',
          args: ['x'],
          env: [{ name: 'EXTRA', value: '1' }],
          provideClusterInfo: true,
        },
      }),
      plugin: `#!/bin/sh\necho "$1 $EXTRA $KUBERNETES_EXEC_INFO" >> "$0.calls"\necho '{"status":${credential}}'\n`,
      broken: kubeconfig({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './fails' } }),
      fails: '#!/bin/sh\necho not logged in >&2\nexit 1\n',
    });
    const connection = await loadConnection({ path: join(dir, 'config') });
    assert.deepEqual(await connection.headers(), { authorization: 'Bearer from plugin' });
    assert.deepEqual(connection.tls, { cert: 'C', key: 'K' });
    const calls = readFileSync(join(dir, 'plugin.calls'), 'utf8').trim().split('\n');
    assert.equal(calls.length, 1, 'the credential is kept while it is valid');
    assert.match(
      calls[0]!,
      /^x 1 \{"apiVersion":"client.authentication.k8s.io\/v1","kind":"ExecCredential".*10\.0\.0\.1/,
    );
    await assert.rejects(loadConnection({ path: join(dir, 'broken') }), /exec plugin .*fails: not logged in/);
  });

  for (const [what, text, message] of [
    ['that is no YAML', '{', /kubeconfig .*config is not valid/],
    ['without a current context', '{}', /no current-context is set/],
    ['whose cluster has no server', '{"clusters":[{"name":"c","cluster":{}}]}', /server is missing/],
    [
      'whose user has an auth-provider',
      kubeconfig({ 'auth-provider': { name: 'oidc' } }),
      /user u: auth-provider is not/,
    ],
    [
      'whose cluster has a proxy',
      kubeconfig({}, { 'proxy-url': 'http://proxy' }),
      /cluster c: proxy-url is not supported/,
    ],
    ['that names a missing file', kubeconfig({}, { 'certificate-authority': 'ca.pem' }), /ca\.pem, named in the/],
  ] as const) {
    test(`a kubeconfig ${what} is refused with its path and the reason`, async (t) => {
      const dir = folder(t, { config: text });
      await assert.rejects(
        loadConnection({ path: join(dir, 'config') }),
        (error) => error instanceof KubeConfigError && message.test(error.message) && error.message.includes(dir),
      );
    });
  }

  test('the error says what was read if nothing is configured', async (t) => {
    const dir = folder(t, {});
    await assert.rejects(
      loadConnection({ env: { HOME: dir } }),
      /KUBECONFIG is not set, .*\.kube\/config does not exist/,
    );
    await assert.rejects(
      loadConnection({ env: { KUBECONFIG: join(dir, 'no') } }),
      /no file named in KUBECONFIG exists/,
    );
  });
});

describe('service account of a pod', () => {
  test('is used when KUBECONFIG is not set, and its token is read again when the kubelet renews it', async (t) => {
    const dir = folder(t, { token: 'one\n', 'ca.crt': 'the ca', namespace: 'berth-system\n' });
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const connection = await loadConnection({ env, serviceAccountDir: dir });
    assert.equal(connection.server, 'https://[fd00::1]:443');
    assert.equal(String(connection.tls.ca), 'the ca');
    assert.equal(connection.namespace, 'berth-system');
    assert.deepEqual(await connection.headers(), { authorization: 'Bearer one' });
    writeFileSync(join(dir, 'token'), 'two\n');
    utimesSync(join(dir, 'token'), new Date(), new Date(Date.now() + 5_000));
    assert.deepEqual(await connection.headers(), { authorization: 'Bearer two' });
  });
});
