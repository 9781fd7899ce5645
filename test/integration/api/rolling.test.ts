import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster, type ApiProgram, EVERYTHING } from './support.ts';

const LOAD = join(import.meta.dirname, '..', '..', 'support', 'http-load.cjs');
const SESSIONS = '/v1/namespaces/default/sessions';
/** Connections that a replica still gets after it was told to stop, as by a kube-proxy that hears of its end late. */
const LATE = 10;

/** A Service: it gives each connection to one of its replicas in turn, and leaves those alone that there are. */
class Service {
  readonly replicas: ApiProgram[] = [];
  /** Connections that each replica was given. */
  readonly given = new Map<ApiProgram, number>();
  readonly server = createServer((client) => {
    const replica = this.replicas[this.#next++ % this.replicas.length]!;
    this.given.set(replica, this.givenTo(replica) + 1);
    const to = connect(replica.port, '127.0.0.1');
    client.pipe(to).pipe(client);
    client.on('error', () => to.destroy());
    to.on('error', () => client.resetAndDestroy());
  });
  #next = 0;

  givenTo(replica: ApiProgram): number {
    return this.given.get(replica) ?? 0;
  }
}

describe('replicas of the API behind a Service', () => {
  let api: ApiCluster;
  beforeAll(async () => {
    api = await ApiCluster.start();
  });
  afterAll(() => api.close());

  test('are replaced one after the other under load, and no request fails', async (t) => {
    const { token } = await api.user(EVERYTHING);
    const start = async () => {
      const replica = await api.startProgram({
        BERTH_API_SHUTDOWN_DELAY: '5s',
        ...{ BERTH_API_CALLER_RATE: '10000', BERTH_API_CALLER_BURST: '10000' },
      });
      t.onTestFinished(() => void replica.child.kill('SIGKILL'));
      const isReady = async () => (await fetch(`http://${replica.host}/readyz`)).status === 200;
      await eventually(isReady, { what: 'it is ready' });
      return replica;
    };
    await api.call('POST', SESSIONS, { token, body: { metadata: { name: 'held' }, spec: { suspend: true } } });
    await api.call('POST', `${SESSIONS}/held/turns`, { token, body: { metadata: { name: 'held-1' } } });
    const service = new Service();
    service.replicas.push(...(await Promise.all([start(), start()])));
    service.server.listen(0, '127.0.0.1');
    await once(service.server, 'listening');
    t.onTestFinished(() => void service.server.close());
    const base = `http://127.0.0.1:${(service.server.address() as AddressInfo).port}${SESSIONS}`;
    const env = { READ: `${base}/held`, WAIT: `${base}/held/turns/held-1?wait=1s`, TOKENS: token };
    const load = spawn(process.execPath, [LOAD], { env: { ...env, PER_SECOND: '200' } });
    t.onTestFinished(() => void load.kill('SIGKILL'));
    let said = '';
    load.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
    await eventually(() => said.includes('every kind of request was answered'), { what: 'requests are answered' });

    for (const before of [...service.replicas]) {
      service.replicas.push(await start());
      before.child.kill('SIGTERM');
      await eventually(() => before.log().includes('"msg":"stopping"'), { what: 'it stops' });
      const already = service.givenTo(before);
      await eventually(() => service.givenTo(before) >= already + LATE, { what: 'late connections' });
      service.replicas.splice(service.replicas.indexOf(before), 1);
      assert.equal(await before.closed, 0, before.log());
    }
    load.kill('SIGTERM');
    await once(load, 'close');
    const { sent, seconds, failed, shown } = JSON.parse(said.trim().split('\n').at(-1)!);
    await t.annotate(`${sent} requests in ${seconds} s; ${failed} failed`);
    assert.deepEqual(shown, []);
    assert.ok(sent > 100, `${sent} requests`);
  });
});
