import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parse } from 'yaml';
import { turns } from '../../../core/resources/kinds.ts';
import { MAX_OUTPUT_BYTES, MiB } from '../../../core/resources/limits.ts';
import { parseQuantity } from '../../../core/resources/quantity.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import { systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster, type ApiProgram, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const CHART = join(import.meta.dirname, '..', '..', '..', 'charts', 'berth', 'values.yaml');
const limitOfPod = parseQuantity(parse(readFileSync(CHART, 'utf8')).api.resources.limits.memory);

describe('the memory of the API with its default limits', () => {
  let api: ApiCluster;
  let program: ApiProgram;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    program = await api.startProgram({ BERTH_API_STALL_TIMEOUT: '600s' });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    program.child.kill();
    await api.close();
  });

  /** Sends a request and reads no more than the head of the answer; '' until there is one. */
  function begin(token: string, head: string): () => string {
    const socket = connect(program.port, '127.0.0.1');
    sockets.push(socket);
    socket.on('error', () => {});
    let status = '';
    socket.once('data', (chunk) => {
      status = String(chunk).split(' ')[1] ?? '';
      socket.pause();
    });
    socket.write(`${head}\r\nHost: berth\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    return () => status;
  }
  const peak = () => {
    const status = readFileSync(`/proc/${program.child.pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024;
  };

  async function storeOutput(session: string, turn: string): Promise<string> {
    const { client } = api.cluster;
    const { uid } = (await api.cluster.session(session)).metadata;
    const store = new BlobStore({ api: client, clock: systemClock, ceilingBytes: 1e9 });
    const key = { namespace: 'default', sessionUID: uid, incarnation: 1, seq: 1, kind: 'Output' as const };
    const output = Buffer.from(JSON.stringify(randomBytes((MAX_OUTPUT_BYTES / 4) * 3 - 3).toString('base64')));
    await store.put(key, output, { name: session, uid }, new AbortController().signal);
    const status = { phase: 'Succeeded', outputRef: `${uid}/1/1`, outputBytes: output.length };
    await client.patch(turns, { namespace: 'default', name: turn }, { status }, { subresource: 'status' });
    return `${SESSIONS}/${session}/turns/${turn}/output`;
  }

  test('stays below the limit of the pod while four callers begin all the downloads they may, and read none', async () => {
    await api.cluster.create('large', { suspend: true });
    await api.cluster.turn('large', 'large-1', null);
    const path = await storeOutput('large', 'large-1');
    const users = await Promise.all(Array.from({ length: 4 }, () => api.user(EVERYTHING)));
    const peaks: number[] = [peak()];
    for (const { token } of users) {
      const answers = Array.from({ length: 16 }, () => begin(token, `GET ${path} HTTP/1.1`));
      await eventually(() => answers.every((status) => status() !== ''), { what: 'each is answered' });
      assert.deepEqual(
        answers.map((status) => status()).sort(),
        Array.from({ length: 16 }, (_, i) => (i < 3 ? '200' : '429')),
      );
      peaks.push(peak());
    }
    const shown = peaks.map((bytes) => Math.round(bytes / MiB)).join(', ');
    assert.ok((peaks.at(-1) as number) < 0.85 * limitOfPod, `MiB at most, by callers: ${shown}`);
    if (process.env.SHOW) console.log(shown);
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  test('counts bodies that are still being sent, and one that does not fit is refused before it comes', async () => {
    const { token } = await api.user(EVERYTHING);
    const head = `POST ${SESSIONS} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: ${MiB}`;
    // Other requests of these tests may have ended for their clients and not yet for the server.
    const answers = Array.from({ length: 8 }, () => begin(token, head));
    const refused = () => answers.filter((status) => status() === '429').length;
    await eventually(() => refused() === 2, { what: 'two of eight are refused' });
    const list = await fetch(`http://${program.host}${SESSIONS}`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(list.status, 429);
    assert.ok(Number(list.headers.get('retry-after')) >= 1);
    const other = await api.user(EVERYTHING);
    const served = await fetch(`http://${program.host}${SESSIONS}`, {
      headers: { authorization: `Bearer ${other.token}` },
    });
    assert.equal(served.status, 200);
  });
});
