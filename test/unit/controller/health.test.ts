import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { serveHealth } from '../../../controller/health.ts';

test('/healthz fails for what only a new start can mend, /readyz for what is missing, and says what is left out; /metrics is beside them', async () => {
  const state = {
    stalled: undefined as string | undefined,
    problem: 'the caches are empty' as string | undefined,
    note: undefined as string | undefined,
  };
  let text = async () => 'up 1\n';
  const server = await serveHealth(
    { port: 0, host: '127.0.0.1' },
    { stalled: () => state.stalled, problem: () => state.problem, note: () => state.note },
    { contentType: 'text/plain; version=0.0.4; charset=utf-8', metrics: () => text() },
  );
  const { port } = server.address() as AddressInfo;
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return [answer.status, (await answer.text()).trim()];
  };
  try {
    assert.deepEqual(await get('/healthz'), [200, 'ok']);
    assert.deepEqual(await get('/readyz'), [503, 'the caches are empty']);
    Object.assign(state, { stalled: 'nothing moves', problem: undefined });
    assert.deepEqual(await get('/healthz'), [503, 'nothing moves']);
    assert.deepEqual(await get('/readyz?verbose'), [200, 'ok']);
    state.note = 'namespace "other" cannot be read';
    assert.deepEqual(await get('/readyz'), [200, 'ok, but namespace "other" cannot be read']);
    assert.deepEqual(await get('/'), [404, '']);
    assert.deepEqual(await get('/metrics'), [200, 'up 1']);
    text = () => Promise.reject(new Error('cannot be counted'));
    assert.deepEqual(await get('/metrics'), [500, 'cannot be counted']);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
