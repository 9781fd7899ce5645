import assert from 'node:assert/strict';
import { test } from 'vitest';
import { pods } from '../../../core/kube/resources.ts';
import { refuse } from '../../support/kube-server.ts';
import { serverAndClient } from './support.ts';

const POD = { metadata: { namespace: 'ns', name: 'a' }, spec: { containers: [] } };
const REF = { namespace: 'ns', name: 'a' };

test('every request is told with its verb and what came of it, every try for itself', async (t) => {
  const seen: string[] = [];
  const { server, client } = await serverAndClient(t, { onRequest: (verb, code) => seen.push(`${verb} ${code}`) });
  const told = () => seen.splice(0);
  const made = await client.create(pods, POD);
  await client.get(pods, REF);
  await client.list(pods, { namespace: 'ns' });
  await client.replace(pods, { ...made, spec: { containers: [{ name: 'c' }] } });
  await client.patch(pods, REF, {});
  await client.delete(pods, REF);
  await assert.rejects(client.get(pods, REF));
  assert.deepEqual(told(), ['create 201', 'get 200', 'list 200', 'update 200', 'patch 200', 'delete 200', 'get 404']);

  const stop = new AbortController();
  setImmediate(() => server.put('/api/v1/namespaces/ns/pods', POD));
  for await (const _ of client.watch(pods, { resourceVersion: String(server.version), signal: stop.signal })) break;
  await assert.rejects(client.attach(REF, { container: 'c', stdout: true }));
  server.onStream = () => {};
  (await client.attach(REF, { container: 'c', stdout: true })).close();
  assert.deepEqual(told(), ['watch 200', 'attach 404', 'attach 101']);

  let refused = 0;
  server.intercept = (_request, response) => {
    if (refused++ > 0) return false;
    refuse(response, 503, 'ServiceUnavailable', 'in a moment');
    return true;
  };
  await client.get(pods, REF);
  assert.deepEqual(told(), ['get 503', 'get 200']);
  // An aborted request says nothing of the API server.
  const given = new AbortController();
  server.intercept = () => {
    given.abort();
    return true;
  };
  await assert.rejects(client.get(pods, REF, { signal: given.signal }));
  assert.deepEqual(told(), []);
  await server.stop();
  await assert.rejects(client.get(pods, REF, { retry: false }));
  assert.deepEqual(told(), ['get error']);
  await server.start();
});
