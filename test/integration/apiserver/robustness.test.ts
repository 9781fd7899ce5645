import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { connect } from 'node:tls';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { systemClock } from '../../../core/system.ts';
import { testServer } from '../../support/api-server.ts';
import { start, widget, widgets, withWidgets } from './widgets.ts';

describe('the server stands what clients do', () => {
  test('garbage of every kind is answered with a Status', async () => {
    const { api } = await withWidgets();
    const bodies = [
      '',
      'null',
      '[]',
      '"x"',
      '{',
      '{"a":',
      '\u0000',
      '{"metadata":1}',
      '{"metadata":{"labels":1}}',
      '{"kind":1}',
    ];
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    for (const raw of [...bodies, deep, JSON.stringify({ ...widget('x'), metadata: { name: 1 } })]) {
      for (const [method, path, contentType] of [
        ['POST', widgets, 'application/json'],
        ['PUT', `${widgets}/x`, 'application/json'],
        ['PATCH', `${widgets}/x`, 'application/merge-patch+json'],
        ['PATCH', `${widgets}/x`, 'application/json-patch+json'],
        ['PATCH', `${widgets}/x?fieldManager=a`, 'application/apply-patch+yaml'],
        ['POST', '/api/v1/namespaces/default/pods', 'application/json'],
        ['POST', '/api/v1/namespaces/default/pods', 'application/vnd.kubernetes.protobuf'],
        ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', 'application/json'],
        ['POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'application/json'],
      ] as const) {
        const answer = await api.call(method, path, { raw, contentType });
        // The API server itself answers an apply of a wrong type with 500.
        const told = answer.status < 500 || /^failed to create typed patch object/.test(answer.body?.message);
        assert.ok(answer.status >= 400 && told, `${method} ${path} ${raw.slice(0, 40)}: ${answer.text}`);
        assert.equal(answer.body?.kind, 'Status');
      }
    }
    assert.equal((await api.get('/readyz')).text, 'ok');
  });

  test('a key that would reach the prototype of objects is refused, however it is written', async () => {
    const { api } = await withWidgets();
    await api.post(widgets, widget('x'));
    for (const [contentType, raw] of [
      ['application/merge-patch+json', '{"spec":{"any":{"__proto__":{"polluted":true}}}}'],
      ['application/merge-patch+json', '{"spec":{"any":{"\\u005f_proto__":{"polluted":true}}}}'],
      ['application/merge-patch+json', '{"metadata":{"labels":{"__proto__":"x"}}}'],
      ['application/json-patch+json', '[{"op":"add","path":"/spec/__proto__","value":{"polluted":true}}]'],
    ] as const) {
      const { status, body } = await api.call('PATCH', `${widgets}/x`, { raw, contentType });
      assert.deepEqual([status, body.message], [400, 'the key "__proto__" is not accepted'], raw);
    }
    const applied = await api.call('PATCH', `${widgets}/x?fieldManager=a`, {
      raw: 'metadata: {labels: {__proto__: x}}',
      contentType: 'application/apply-patch+yaml',
    });
    assert.deepEqual([applied.status, applied.body.message], [400, 'the key "__proto__" is not accepted']);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  test('the value "__proto__" is a text like any other, in any format of a body', async () => {
    const { api } = await withWidgets();
    const any = { text: '__proto__', list: ['__proto__', '"__proto__"'], quoted: 'has "__proto__": in it' };
    const made = await api.post(widgets, widget('text', { size: 1, any }));
    assert.deepEqual([made.status, made.body.spec?.any], [201, any], made.text);
    const patches = [
      ['merge-patch+json', { spec: { any: { again: '__proto__' } } }],
      ['json-patch+json', [{ op: 'add', path: '/spec/any/other', value: '__proto__' }]],
    ] as const;
    for (const [type, body] of patches) {
      const { status, text } = await api.call('PATCH', `${widgets}/text`, { body, contentType: `application/${type}` });
      assert.equal(status, 200, text);
    }
    const config = { data: { text: '__proto__' }, metadata: { name: 'text' } };
    assert.equal((await api.post('/api/v1/namespaces/default/configmaps', config)).status, 201);
  });

  test('objects whose fields are called like methods of objects are stored as they are', async () => {
    const { api } = await withWidgets();
    const any = { constructor: 'a', toString: 'b', hasOwnProperty: 'c' };
    const { body, text } = await api.post(widgets, widget('odd', { size: 1, any, options: { constructor: 'd' } }));
    assert.deepEqual(body.spec?.any, any, text);
    assert.deepEqual(body.spec.options, { constructor: 'd' });
  });

  test('a client that goes away in the middle of a request or a watch leaves nothing behind', async () => {
    const { server, api } = await withWidgets();
    const watch = await api.watch(`${widgets}?watch=true`);
    watch.close();
    await new Promise<void>((resolve) => {
      const broken = request(`${server.url}${widgets}`, {
        method: 'POST',
        ca: server.ca,
        headers: { authorization: 'Bearer test-admin', 'content-length': 100_000 },
      });
      broken.on('error', () => resolve());
      broken.write('{"kind":');
      setImmediate(() => broken.destroy(new Error('gone')));
    });
    await new Promise<void>((resolve) => {
      const plain = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false }, () =>
        plain.end('nonsense\r\n\r\n'),
      );
      // The server may cut it while it still says goodbye.
      plain.on('error', () => {});
      plain.on('close', () => resolve());
      plain.resume();
    });
    assert.equal((await api.post(widgets, widget('after'))).status, 201);
  });

  test('large answers are compressed for those who take that, and bodies may come compressed', async () => {
    const { server, api } = await withWidgets();
    const configMap = { metadata: { name: 'large' }, data: { x: 'x'.repeat(500_000) } };
    const headers = { authorization: 'Bearer test-admin', 'accept-encoding': 'gzip', 'content-encoding': 'gzip' };
    const exchange = (method: string, path: string, body?: Buffer) =>
      new Promise<{ encoding: string | undefined; body: Buffer; status: number | undefined }>((resolve, reject) => {
        const req = request(`${server.url}${path}`, { method, ca: server.ca, headers }, async (res) => {
          const chunks: Buffer[] = [];
          for await (const chunk of res) chunks.push(chunk as Buffer);
          resolve({ encoding: res.headers['content-encoding'], body: Buffer.concat(chunks), status: res.statusCode });
        });
        req.on('error', reject);
        req.end(body);
      });
    const path = '/api/v1/namespaces/default/configmaps';
    const made = await exchange('POST', path, gzipSync(JSON.stringify(configMap)));
    assert.equal(made.status, 201);
    assert.equal(made.encoding, 'gzip');
    assert.ok(made.body.length < 10_000);
    assert.deepEqual(JSON.parse(gunzipSync(made.body).toString()).data, configMap.data);
    assert.equal((await exchange('POST', path, Buffer.from('no gzip'))).status, 400);
    assert.equal((await exchange('POST', path, gzipSync(Buffer.alloc(4_000_000)))).status, 413);
    assert.equal((await api.get('/readyz')).text, 'ok');
  });

  test('a change in the moment in which a watch is over is nobody’s any more', async () => {
    let end: () => void = () => assert.fail('the watch has no timeout');
    const setTimer = (ms: number, fn: () => void) => {
      if (ms === 77_000) end = fn;
      return systemClock.setTimer(ms, fn);
    };
    const { server, api } = await withWidgets({ clock: { ...systemClock, setTimer } });
    const watch = await api.watch('/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=77');
    const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
    end();
    await server.store.create(configMaps, { metadata: { name: 'late', namespace: 'default' } });
    let last: unknown;
    for (let event = await watch.next(); event; event = await watch.next()) last = event.object.metadata.name;
    assert.notEqual(last, 'late');
    assert.equal((await api.get('/api/v1/namespaces/default/configmaps/late')).status, 200);
  });

  test('closing ends open watches in good order and frees the port', async () => {
    const { server, api } = await withWidgets();
    const watch = await api.watch(`${widgets}?watch=true`);
    await server.close();
    assert.equal(await watch.next(), undefined);
    const again = await testServer({ port: server.port });
    await again.close();
  });

  test('the certificate is for the loopback addresses and is its own authority', async () => {
    const { server } = await start();
    const certificate = new X509Certificate(server.ca);
    assert.equal(certificate.checkIP('127.0.0.1'), '127.0.0.1');
    assert.equal(certificate.checkIP('::1'), '::1');
    assert.equal(certificate.checkHost('localhost'), 'localhost');
    assert.ok(certificate.ca);
    assert.ok(certificate.verify(certificate.publicKey));
    assert.equal(certificate.checkHost('example.com'), undefined);
  });
});
