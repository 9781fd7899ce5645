import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'vitest';
import { startFailure } from '../../../core/program/start-failure.ts';

test('a port that is taken is told in one line, what nobody foresaw with where it comes from', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const [error] = await once(createServer().listen(port, '127.0.0.1'), 'error');
  server.close();
  assert.equal(
    startFailure('berth-api', error),
    `berth-api: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
  );
  assert.match(startFailure('berth-api', new TypeError('x')), /^berth-api: TypeError: x\n +at /);
});
