import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ApiCluster, type ApiProgram, EVERYTHING } from './support.ts';
import { makePair, type Pair } from './tls-pair.ts';

const SESSIONS = '/v1/namespaces/default/sessions';

/** Files of a Secret as the kubelet mounts and renews them: links into a folder that is a link itself, which is swapped. */
class MountedSecret {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-tls-'));
  #version = 0;

  constructor(pair: Pair) {
    this.write(pair);
    for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('..data', file), join(this.folder, file));
  }

  write({ cert, key }: Pair): void {
    const version = `..version-${++this.#version}`;
    mkdirSync(join(this.folder, version));
    writeFileSync(join(this.folder, version, 'tls.crt'), cert);
    writeFileSync(join(this.folder, version, 'tls.key'), key);
    symlinkSync(version, join(this.folder, '..data_tmp'));
    renameSync(join(this.folder, '..data_tmp'), join(this.folder, '..data'));
  }

  get env() {
    return {
      BERTH_API_TLS_CERT_FILE: join(this.folder, 'tls.crt'),
      BERTH_API_TLS_KEY_FILE: join(this.folder, 'tls.key'),
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

describe('the API over TLS', () => {
  const first = makePair('first');
  const secret = new MountedSecret(first);
  let api: ApiCluster;
  let program: ApiProgram;
  let token: string;
  let scraper: { token: string };
  beforeAll(async () => {
    api = await ApiCluster.start();
    program = await api.startProgram(secret.env);
    ({ token } = await api.user(EVERYTHING));
    scraper = await api.scraper();
  });
  afterAll(async () => {
    program.child.kill();
    await program.closed;
    await api.close();
    secret.remove();
  });

  /** Opens a connection that trusts this certificate alone. */
  async function open({ cert }: Pair): Promise<TLSSocket> {
    const socket = connect({ port: program.port, host: '127.0.0.1', ca: cert });
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Gets a path from a server with this certificate, on a new connection. */
  async function get({ cert }: Pair, path: string, bearer = token): Promise<{ status: number; text: string }> {
    const headers = { authorization: `Bearer ${bearer}` };
    const asked = request({ port: program.port, host: '127.0.0.1', path, ca: cert, agent: false, headers }).end();
    const [answer] = await once(asked, 'response');
    return { status: answer.statusCode, text: await text(answer) };
  }
  const metric = async (pair: Pair, name: string) => samplesOf((await get(pair, '/metrics', scraper.token)).text, name);
  const served = async () => {
    const socket = connect({ port: program.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { subject } = socket.getPeerX509Certificate() as X509Certificate;
    socket.destroy();
    return subject;
  };

  test('a request is answered by HTTPS with the certificate of the files, and by HTTP not at all', async () => {
    assert.equal((await get(first, SESSIONS)).status, 200);
    assert.equal((await get(first, '/healthz')).text, 'ok\n');
    assert.match(program.log(), /"tls":true,"msg":"API started"/);
    const plain = connectPlain(program.port, '127.0.0.1');
    plain.write(`GET ${SESSIONS} HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    let text = '';
    plain.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await once(plain, 'close');
    assert.doesNotMatch(text, /HTTP/);
  });

  test('what the parser refuses is problem+json here too', async () => {
    const socket = await open(first);
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.write('garbage\r\n\r\n');
    await once(socket, 'close');
    assert.match(text, /^HTTP\/1.1 400 Bad Request\r\n/);
    assert.match(text, /^content-type: application\/problem\+json/m);
    assert.match(text, /"code":"MalformedRequest"/);
  });

  test('a renewed Secret serves new connections, an open one goes on, and a bad one changes nothing', async () => {
    const socket = await open(first);
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const again = async () => {
      text = '';
      socket.write('GET /healthz HTTP/1.1\r\nHost: berth\r\n\r\n');
      await eventually(() => text.endsWith('ok\n'), { what: 'the open connection is answered' });
    };
    await again();

    const second = makePair('second');
    secret.write(second);
    await eventually(async () => (await served()) === 'CN=second', { what: 'the renewed certificate is served' });
    await again();
    assert.equal((await get(second, SESSIONS)).status, 200);
    await assert.rejects(get(first, SESSIONS), /self-signed certificate|unable to verify/);
    const notAfter = Date.parse(new X509Certificate(second.cert).validTo) / 1000;
    assert.deepEqual(await metric(second, 'berth_http_tls_not_after_timestamp_seconds'), { '': notAfter });

    const failed = async () => (await metric(second, 'berth_http_tls_reloads_total'))['{result="failed"}'] ?? 0;
    const bad: [string, Pair][] = [
      ['a key of another certificate', { cert: makePair('other').cert, key: second.key }],
      ['no PEM', { cert: 'nonsense', key: 'nonsense' }],
      ['nothing', { cert: '', key: '' }],
    ];
    for (const [i, [what, pair]] of bad.entries()) {
      secret.write(pair);
      await eventually(async () => (await failed()) === i + 1, { what: `${what} is counted` });
      assert.equal(await served(), 'CN=second', what);
    }
    assert.equal(program.log().match(/"msg":"new certificate cannot be used; the one before is kept"/g)?.length, 3);
    await again();
    socket.destroy();

    const third = makePair('third');
    secret.write(third);
    await eventually(async () => (await served()) === 'CN=third', { what: 'the next good certificate is served' });
    assert.deepEqual(await metric(third, 'berth_http_tls_reloads_total'), {
      '{result="ok"}': 2,
      '{result="failed"}': 3,
    });
    assert.ok(!program.log().includes('PRIVATE KEY'), 'no key is logged');
  });

  test('files that cannot be used are reported in one line at the start', async () => {
    const empty = new MountedSecret({ cert: '', key: '' });
    for (const [env, words] of [
      [{ ...secret.env, BERTH_API_TLS_KEY_FILE: '/nowhere/tls.key' }, /\/nowhere\/tls\.key, cannot be read: ENOENT/],
      [empty.env, /tls\.crt, is empty/],
      [
        { ...secret.env, BERTH_API_TLS_CERT_FILE: secret.env.BERTH_API_TLS_KEY_FILE },
        /no certificate with its private key/,
      ],
    ] as const) {
      const err = await api.refusedStart(env);
      assert.match(err, words);
      assert.equal(err.trimEnd().split('\n').length, 1, err);
    }
    empty.remove();
  });
});
