import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { describe, test } from 'vitest';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { RawApi } from '../../support/raw-api.ts';
import { start } from './widgets.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const user = { username: 'system:serviceaccount:default:dead', groups: ['system:masters'] };

describe('a token that is revoked', () => {
  test('is refused, and a request that was under way is not carried out', async () => {
    const { server, api } = await start();
    const token = server.mintToken(user);
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: server.ca });
    await once(socket, 'secureConnect');
    const body = JSON.stringify({ metadata: { name: 'late' } });
    socket.write(
      `POST ${configMaps} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nExpect: 100-continue\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1.1 100 /, 'the request is admitted');
    socket.write(body.slice(0, 10));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    await server.revokeToken(token);
    socket.write(body.slice(10));
    await closed;
    assert.equal((await api.get(`${configMaps}/late`)).status, 404);
    assert.equal((await api.get(configMaps, { token })).status, 401);
    assert.equal((await api.get(configMaps)).status, 200);
  });

  test('is revoked once nothing that was asked for with it can still happen', async () => {
    const { server, api } = await start();
    const token = server.mintToken(user);
    const arrived = Promise.withResolvers<void>();
    const isIt = ({ verb, resource }: RequestFacts) => {
      if (verb === 'create' && resource === 'configmaps') arrived.resolve();
      return verb === 'create' && resource === 'configmaps';
    };
    server.faults.delayNext(isIt, 1_000);
    const asked = api.call('POST', configMaps, { token, body: { metadata: { name: 'slow' } } });
    const cut = assert.rejects(asked);
    await arrived.promise;
    const before = performance.now();
    await server.revokeToken(token);
    assert.ok(performance.now() - before > 250, 'it waits for the request');
    await cut;
    assert.equal((await api.get(`${configMaps}/slow`)).status, 404);
  });

  test('ends its watches', async () => {
    const { server } = await start();
    const token = server.mintToken(user);
    const client = new RawApi({ ...server.connection, token });
    const watch = await client.watch(`${configMaps}?watch=true`);
    assert.equal(watch.status, 200);
    // The connection is cut. A watch that stays open rejects, too, but later and with no code.
    const cut = assert.rejects(watch.next(), { code: /^(UND_ERR_SOCKET|ECONNRESET)$/ });
    await server.revokeToken(token);
    await cut;
    await client.close();
  });
});
