import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { ApiCluster, type ApiProgram, EVERYTHING } from '../integration/api/support.ts';
import { eventually } from '../support/eventually.ts';
import { compared, type Figure } from './figures.ts';
import type { Greed } from './greedy.ts';
import { count } from './settings.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const FIRST = 20;
const SAMPLES = count(400, 40);
/** Pause between two requests of the other caller, so that it stays below its rate. */
const PAUSE_MS = 15;
const GREEDY_CONNECTIONS = 64;
const SLOW_CALLERS = 2;
const SLOW_EACH = 25;
/** More than the buffers of a connection hold. */
const LOG_BYTES = 9 * 1024 * 1024;

const CASES: readonly { what: string; env: Record<string, string> }[] = [
  { what: 'with the default limits', env: {} },
  {
    what: 'without limits of a caller',
    env: {
      BERTH_API_MAX_REQUESTS: '100000',
      BERTH_API_CALLER_SHARE: '100',
      BERTH_API_CALLER_RATE: '1000000',
      BERTH_API_CALLER_BURST: '1000000',
    },
  },
];

/** Milliseconds of each request of the other caller. */
async function latencies(program: ApiProgram, token: string): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < FIRST + SAMPLES; i++) {
    await delay(PAUSE_MS);
    const started = performance.now();
    const answer = await fetch(`http://${program.host}${SESSIONS}/one`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await answer.text();
    if (answer.status !== 200) throw new Error(`the other caller was answered ${answer.status}`);
    if (i >= FIRST) values.push(performance.now() - started);
  }
  return values;
}

/** A reader that takes the head of its answer and nothing more. */
function stall(program: ApiProgram, path: string, token: string): Socket {
  const socket = connect(program.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  socket.once('readable', () => socket.read(1));
  return socket;
}

/** A session with a long log. Resolves with the path of the log, which is complete. */
async function chatty({ cluster, url }: ApiCluster, token: string): Promise<string> {
  const script = `yes ${'x'.repeat(8191)} | head -c ${LOG_BYTES}; sleep 600`;
  const agent = { command: ['sh', '-c', script] };
  await cluster.createClass('chatty', { runner: 'None', image: 'berth.local/machine', agent });
  await cluster.create('chatty', { class: 'chatty' });
  await cluster.turn('chatty', 'chatty-1', null);
  const path = `${SESSIONS}/chatty/logs`;
  const read = async () =>
    (await (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).text()).length;
  await eventually(async () => (await read()) === LOG_BYTES, { what: 'the whole log' });
  return path;
}

/**
 * Requests of one caller of the HTTP API alone, and beside a greedy caller and 50 readers that stall; the API is a program
 * of its own, with an embedded cluster in this process.
 */
export async function http(): Promise<Figure[]> {
  const api = await ApiCluster.start();
  try {
    api.cluster.startController();
    await api.cluster.create('one', { suspend: true });
    const log = await chatty(api, (await api.user(EVERYTHING)).token);
    const figures: Figure[] = [];
    for (const { what, env } of CASES) {
      const [other, greedy] = [await api.user(EVERYTHING), await api.user(EVERYTHING)];
      const slow = await Promise.all(Array.from({ length: SLOW_CALLERS }, () => api.user(EVERYTHING)));
      const program = await api.startProgram(env);
      const alone = await latencies(program, other.token);
      const workerData: Greed = {
        ...{ origin: `http://${program.host}`, path: SESSIONS, token: greedy.token },
        connections: GREEDY_CONNECTIONS,
      };
      const worker = new Worker(join(import.meta.dirname, 'greedy.ts'), { workerData });
      const readers = slow.flatMap(({ token }) =>
        Array.from({ length: SLOW_EACH }, () => stall(program, `${log}?follow`, token)),
      );
      const beside = await latencies(program, other.token);
      figures.push(
        compared(`GET of a session over HTTP beside a greedy caller and 50 stalled readers, ${what}`, beside, {
          what: 'alone',
          values: alone,
        }),
      );
      await worker.terminate();
      for (const reader of readers) reader.destroy();
      program.child.kill();
      await program.closed;
    }
    return figures;
  } finally {
    await api.close();
  }
}
