import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { Agent, fetch as fetchOf } from 'undici';
import { test } from 'vitest';
import { Berth, ConnectionLost } from '../../../../clients/typescript/src/index.ts';
import { LOOPBACK_CERTIFICATE, LOOPBACK_KEY } from '../../../support/loopback-certificate.ts';
import { QUICK, rejection, session } from './server.ts';

test('a server with a private CA is talked to by a fetch that knows it, and refused at once without', async (t) => {
  const server = createServer({ key: LOOPBACK_KEY, cert: LOOPBACK_CERTIFICATE }, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(session('notes')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const dispatcher = new Agent({ connect: { ca: LOOPBACK_CERTIFICATE } });
  t.onTestFinished(async () => {
    await dispatcher.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const options = {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: 'x',
    timing: { ...QUICK, unansweredMs: 5_000 },
  };

  const tries: unknown[] = [];
  const refused = new Berth({ ...options, onRequest: (outcome) => tries.push(outcome) });
  const error = await rejection(refused.session('notes').get());
  assert.ok(error instanceof ConnectionLost, inspect(error));
  assert.match(error.message, /self-signed certificate/);
  assert.deepEqual([error.isFinal, error.sent, tries], [true, false, [error]]);

  const fetch = (url: string, init: object) =>
    fetchOf(url, { ...init, dispatcher }) as Promise<unknown> as Promise<Response>;
  assert.equal((await new Berth({ ...options, fetch }).session('notes').get()).metadata.name, 'notes');
});
