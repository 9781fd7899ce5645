import assert from 'node:assert/strict';
import { connect } from 'node:tls';
import { describe, test } from 'vitest';
import type { KubeObject, Resource } from '../../../core/kube/types.ts';
import type { PodHandlers } from '../../../local/apiserver/types.ts';
import type { TestServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import type { RawApi } from '../../support/raw-api.ts';
import { start, widget, widgets, withWidgets } from './widgets.ts';

describe('pods of the embedded cluster', () => {
  const pod = (name: string, nodeName?: string) => ({
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'x:1' }], ...(nodeName ? { nodeName } : {}) },
  });
  const pods = '/api/v1/namespaces/default/pods';
  const handlers: PodHandlers = {
    log: (object, query, res) => {
      res.writeHead(200, { 'content-type': 'text/plain' });
      res.end(`${object.metadata.name} ${query.get('tailLines')}`);
    },
    stream: (kind, object, query, { socket }) => {
      socket.end(
        `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${kind} ${object.metadata.name} ${query.getAll('command').join(' ')}`,
      );
    },
  };
  const ready = async (api: RawApi) =>
    eventually(async () => (await api.get('/api/v1/namespaces/default/serviceaccounts/default')).status === 200);
  const upgrade = (server: TestServer, path: string, token = 'test-admin') =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port: server.port, host: '127.0.0.1', ca: server.ca }, () =>
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n\r\n`,
        ),
      );
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });

  test('log, attach and exec reach who runs the pods, for pods that exist and have a node', async () => {
    const { server, api } = await start({ pods: handlers });
    await ready(api);
    await api.post(pods, pod('waiting'));
    await api.post(pods, pod('placed', 'node'));
    assert.equal((await api.get(`${pods}/placed/log?tailLines=5`)).text, 'placed 5');
    assert.equal((await api.get(`${pods}/waiting/log`)).status, 204);
    assert.equal((await api.get(`${pods}/nobody/log`)).status, 404);
    const wrong = await api.get(`${pods}/placed/log?container=other`);
    assert.equal(wrong.status, 400);
    assert.equal(wrong.body.message, 'container other is not valid for pod placed');
    assert.match(await upgrade(server, `${pods}/placed/exec?command=ls&command=-l`), /exec placed ls -l$/);
    assert.match(await upgrade(server, `${pods}/placed/attach?container=main`), /attach placed $/);
    assert.match(await upgrade(server, `${pods}/waiting/attach`), /^HTTP\/1\.1 400 .*does not have a host assigned/s);
    assert.match(await upgrade(server, `${pods}/nobody/attach`), /^HTTP\/1\.1 404 /);
    assert.match(await upgrade(server, `${pods}/placed/attach`, 'wrong'), /^HTTP\/1\.1 401 /);
    assert.match(await upgrade(server, '/api/v1/namespaces'), /^HTTP\/1\.1 404 /);
  });

  test('a WebSocket is authorised as the verb get on the subresource', async () => {
    const { server, api } = await start({ pods: handlers });
    await ready(api);
    await api.post(pods, pod('placed', 'node'));
    const token = server.mintToken({ username: 'viewer', groups: [] });
    assert.match(
      await upgrade(server, `${pods}/placed/attach`, token),
      /^HTTP\/1\.1 403 .*User \\"viewer\\" cannot get resource \\"pods\/attach\\" in API group \\"\\" in the namespace \\"default\\"/s,
    );
  });

  test('the kubelet in the same process sees and changes objects as any client does', async () => {
    const { server, api } = await withWidgets({ pods: handlers });
    const resource: Resource<KubeObject & { spec: { size: number } }> = {
      group: 'contract.berth.dev',
      version: 'v1',
      plural: 'widgets',
      kind: 'Widget',
      namespaced: true,
    };
    const stop = new AbortController();
    const { metadata } = await server.store.list(resource);
    const seen: string[] = [];
    const watching = (async () => {
      const options = { resourceVersion: metadata.resourceVersion, signal: stop.signal };
      for await (const event of server.store.watch(resource, options)) {
        if (event.type !== 'BOOKMARK') seen.push(`${event.type} ${event.object.spec.size}`);
      }
    })();
    await api.post(widgets, widget('a'));
    await server.store.patch(resource, { namespace: 'default', name: 'a' }, { spec: { size: 2 } });
    await assert.rejects(server.store.patch(resource, { namespace: 'default', name: 'a' }, { spec: { size: -1 } }), {
      code: 422,
    });
    await server.store.delete(resource, { namespace: 'default', name: 'a' });
    await eventually(() => seen.length === 3);
    assert.deepEqual(seen, ['ADDED 1', 'MODIFIED 2', 'DELETED 2']);
    stop.abort();
    await watching;
  });
});
