import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { ClusterFlags } from '../../../../cli/cli.ts';
import { serverConnection } from '../../../../cli/server/address.ts';
import { chosenServer } from '../../../../cli/server/chosen.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-server-'));
afterAll(() => rmSync(root, { recursive: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(root, name), text);
  return join(root, name);
};
const token = file('token', 'abc.def\n');
const connect = (flags: ClusterFlags, env: NodeJS.ProcessEnv = {}) => {
  const chosen = chosenServer(flags, { env });
  assert.ok(chosen);
  return serverConnection(chosen, flags, { cwd: root });
};
const refuses = (flags: ClusterFlags, text: RegExp) =>
  assert.throws(
    () => connect(flags),
    (error: Error & { exitCode?: number }) => {
      assert.match(error.message, text);
      assert.doesNotMatch(error.message, /abc|hidden/);
      assert.equal(error.exitCode, 2);
      return true;
    },
  );

describe('the server of the HTTP API', () => {
  test('is that of --server, or BERTH_SERVER where no flag names a cluster', () => {
    const env = { BERTH_SERVER: 'https://env', BERTH_TOKEN_FILE: 'token' };
    assert.equal(connect({}, env).server, 'https://env/');
    assert.equal(connect({ server: 'https://flag/base' }, env).server, 'https://flag/base');
    assert.equal(chosenServer({ kubeconfig: 'k' }, { env }), undefined);
    assert.equal(chosenServer({ context: 'c' }, { env }), undefined);
    assert.equal(chosenServer({}, { env: { BERTH_SERVER: '' } }), undefined);
  });
  test('cannot be named beside a kubeconfig, and its flags not without it', () => {
    for (const [flag, flags] of [
      ['--kubeconfig', { kubeconfig: 'k' }],
      ['--context', { context: 'c' }],
    ] as const)
      assert.throws(
        () => chosenServer({ server: 'https://x', ...flags }, { env: {} }),
        new RegExp(`--server and ${flag}`),
      );
    assert.throws(() => chosenServer({ tokenFile: 'x' }, { env: {} }), /--token-file is for a server/);
  });
  test('has a URL that begins with https://, or http:// on this machine or as asked for', () => {
    for (const url of ['http://127.0.0.1:8080', 'http://localhost', 'http://[::1]:1', 'https://berth.example.com/base'])
      assert.equal(new URL(connect({ server: url, tokenFile: token }).server).href, new URL(url).href);
    refuses(
      { server: 'http://berth.example.com', tokenFile: token },
      /berth\.example\.com would get the token unencrypted/,
    );
    refuses({ server: 'http://127.0.0.1.example.com', tokenFile: token }, /unencrypted/);
    assert.ok(connect({ server: 'http://berth.example.com', tokenFile: token, allowPlainText: true }));
    for (const server of ['berth.example.com', 'ftp://x', 'localhost:8080', 'https://', '', 'https:x'])
      refuses({ server, tokenFile: token }, /--server: the URL of a server begins with https:\/\//);
    refuses({ server: 'https://me:hidden@x', tokenFile: token }, /user or a password/);
    refuses({ server: 'https://x/?token=hidden', tokenFile: token }, /a \? or #/);
  });
  test('needs a file with a token, whose text is in no error', () => {
    const server = 'https://x';
    refuses({ server }, /needs a token.*--token-file/);
    refuses({ server, tokenFile: 'missing' }, /missing cannot be read: ENOENT/);
    refuses({ server, tokenFile: root }, /cannot be read: EISDIR/);
    refuses({ server, tokenFile: file('empty', ' \n') }, /empty is empty/);
    refuses({ server, tokenFile: file('two', 'hidden\nhidden') }, /one line without spaces/);
  });
  test('gets the token that is projected into the pod where no file is named', async () => {
    const chosen = { url: 'https://x', from: 'BERTH_SERVER' } as const;
    const projected = serverConnection(chosen, {}, { cwd: root }, token);
    assert.deepEqual(await projected.headers?.(), { authorization: 'Bearer abc.def' });
    const named = { ...chosen, tokenFile: file('named', 'other') };
    const other = serverConnection(named, {}, { cwd: root }, token);
    assert.deepEqual(await other.headers?.(), { authorization: 'Bearer other' });
    const missing = join(root, 'missing');
    assert.throws(() => serverConnection(chosen, {}, { cwd: root }, missing), /audience berth at .*missing$/);
  });
  test('gets the token that the file has at each request', async () => {
    const path = file('rotated', 'first');
    const { headers } = connect({ server: 'https://x', tokenFile: path });
    assert.deepEqual(await headers(), { authorization: 'Bearer first' });
    file('rotated', 'other');
    assert.deepEqual(await headers(), { authorization: 'Bearer other' });
    rmSync(path);
    assert.throws(headers, /ENOENT/);
  });
  test('is checked with the certificates of --certificate-authority', () => {
    const server = 'https://x';
    const pem = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n';
    assert.equal(String(connect({ server, tokenFile: token, certificateAuthority: file('ca', pem) }).tls.ca), pem);
    refuses({ server, tokenFile: token, certificateAuthority: token }, /no certificate in PEM/);
    refuses({ server: 'http://localhost', tokenFile: token, certificateAuthority: 'ca' }, /is for https/);
  });
  test('is asked for the namespace default, unless the token is a pod’s', () => {
    assert.equal(connect({ server: 'https://x', tokenFile: token }).namespace, 'default');
  });
});
