import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import { systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ApiCluster, type ApiProgram, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
/** More than the connection's buffers hold, so that a reader who stops reading is one for whom something waits. */
const LOG_BYTES = 9 * 1024 * 1024;
const READERS = 50;
const BURST = 150;

type User = { name: string; token: string };

describe('one caller among others', () => {
  let api: ApiCluster;
  let program: ApiProgram;
  let slow: User;
  let greedy: User;
  let other: User;
  let scraper: User;
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    // A quarter of each: 50 streams, 2 waits, 3 contents, 100 requests.
    program = await api.startProgram({
      BERTH_API_MAX_REQUESTS: '400',
      BERTH_API_MAX_STREAMS: String(4 * READERS),
      BERTH_API_MAX_WAITS: '8',
      BERTH_API_MAX_CONTENTS: '12',
      BERTH_API_MAX_BYTES: '1Gi',
      BERTH_API_CALLER_RATE: '1',
      BERTH_API_CALLER_BURST: String(BURST),
      BERTH_API_STALL_TIMEOUT: '10s',
    });
    [slow, greedy, other] = await Promise.all([api.user(EVERYTHING), api.user(EVERYTHING), api.user(EVERYTHING)]);
    scraper = await api.scraper();
  });
  afterAll(async () => {
    program.child.kill();
    await api.close();
  });

  const ask = (user: User, path: string, init: RequestInit = {}) =>
    fetch(`http://${program.host}${path}`, { ...init, headers: { authorization: `Bearer ${user.token}` } });
  const outcome = async (answer: Response) => {
    const { code } = (await answer.json()) as { code?: string };
    if (answer.status !== 200) assert.ok(Number(answer.headers.get('retry-after')) >= 1, `${answer.status}`);
    return code ? `${answer.status} ${code}` : String(answer.status);
  };
  /** Number of times that each outcome is there. */
  const tally = (outcomes: (string | number)[]) =>
    Object.fromEntries([...Map.groupBy(outcomes, String)].map(([what, all]) => [what, all.length]));
  const metric = async (name: string) => {
    const answer = await ask(scraper, '/metrics');
    assert.equal(answer.status, 200);
    return samplesOf(await answer.text(), name);
  };
  /** Number of open files of the embedded cluster, whose kubelet runs in this process: one for each read of a log. */
  const openFiles = () => {
    const links = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return ''; // It was closed meanwhile.
      }
    });
    return links.filter((link) => link.startsWith(api.cluster.home)).length;
  };

  /** Opens a stream and reads nothing but its head. Resolves with the status. */
  async function stall(user: User, path: string): Promise<{ status: number; socket: Socket }> {
    const socket = connect(program.port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer ${user.token}\r\n\r\n`);
    const head = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
    socket.pause();
    socket.on('error', () => {});
    return { status: Number(head.split(' ')[1]), socket };
  }

  /** Reads an answer in small pieces with pauses. Resolves with its length. */
  async function readSteadily(answer: Response): Promise<number> {
    let bytes = 0;
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      await delay(100);
    }
    return bytes;
  }

  /** Gives the turn a log in the store. Resolves with its path. */
  async function storeLog(session: string, turn: string): Promise<string> {
    const { client } = api.cluster;
    const { uid } = (await api.cluster.session(session)).metadata;
    const store = new BlobStore({ api: client, clock: systemClock, ceilingBytes: 1e9 });
    const key = { namespace: 'default', sessionUID: uid, incarnation: 1, seq: 1, kind: 'Log' as const };
    const owner = { name: session, uid };
    await store.put(key, Buffer.alloc(LOG_BYTES, 'x'), owner, new AbortController().signal);
    const status = { phase: 'Succeeded', log: { ref: `${uid}/1/1`, bytes: LOG_BYTES, truncated: false } };
    await client.patch(turns, { namespace: 'default', name: turn }, { status }, { subresource: 'status' });
    return `${SESSIONS}/${session}/turns/${turn}/log`;
  }

  test('who reads slowly and asks for too much is cut and refused, while the requests of others are all answered', async (t) => {
    const line = 'x'.repeat(8191);
    const script = `yes ${line} | head -c ${LOG_BYTES}; sleep 600`;
    await api.cluster.createClass('chatty', {
      runner: 'None',
      image: 'berth.local/machine',
      agent: { command: ['sh', '-c', script] },
    });
    await api.cluster.create('chatty', { class: 'chatty' });
    await api.cluster.turn('chatty', 'chatty-1', null);
    const log = `${SESSIONS}/chatty/logs`;
    // These requests are not to count against the limits of the others.
    const early = await api.user(EVERYTHING);
    await eventually(async () => (await (await ask(early, log)).text()).length === LOG_BYTES, {
      what: 'the whole log',
    });
    await api.cluster.create('quiet', { suspend: true });
    await api.cluster.turn('quiet', 'quiet-1', null);
    await api.cluster.turn('quiet', 'quiet-2', null);
    const wait = `${SESSIONS}/quiet/turns/quiet-2?wait`;

    const before = openFiles();
    const stored = await storeLog('quiet', 'quiet-1');
    const opened = await Promise.all([
      ...Array.from({ length: READERS + 1 }, () => stall(slow, `${log}?follow`)),
      stall(slow, stored),
    ]);
    t.onTestFinished(() => opened.forEach(({ socket }) => void socket.destroy()));
    assert.deepEqual(tally(opened.map(({ status }) => status)), { 200: READERS + 1, 429: 1 });
    const readers = opened.filter(({ status }) => status === 200);
    await eventually(() => openFiles() >= before + READERS, { what: 'a log is read for each' });

    const steady = readSteadily(await ask(other, log));

    const leaves = new AbortController();
    const ends: string[] = [];
    const waits = Array.from({ length: 5 }, () =>
      ask(greedy, `${wait}=60s`, { signal: leaves.signal })
        .then(outcome, () => 'left')
        .then((end) => ends.push(end)),
    );
    await eventually(() => ends.length === 3, { what: 'all but two are refused' });
    const flood = Array.from({ length: 400 }, () => ask(greedy, SESSIONS).then(outcome));

    const answers: string[] = [];
    for (let i = 0; i < 25; i++) {
      for (const path of [SESSIONS, `${SESSIONS}/quiet`, `${wait}=10ms`])
        answers.push(await outcome(await ask(other, path)));
    }
    assert.deepEqual(tally(answers), { 200: 75 });

    const {
      200: taken = 0,
      '429 TooManyRequests': tooFast = 0,
      '429 CallerLimit': tooMany = 0,
    } = tally(await Promise.all(flood));
    assert.ok(taken > 0 && tooFast > 0, `${taken} answered, ${tooFast} too fast, ${tooMany} too many at once`);
    assert.equal(taken + tooFast + tooMany, 400);
    leaves.abort();
    await Promise.all(waits);
    assert.deepEqual(tally(ends), { left: 2, '429 CallerLimit': 3 });

    // A stalled reader loses its connection, its slot, and what the server reads for it from the cluster.
    const cuts = () => program.log().match(/"msg":"stalled reader disconnected"/g)?.length;
    await eventually(() => cuts() === READERS + 1, { what: 'all of them are cut' });
    assert.deepEqual(await metric('berth_http_stalled_readers_total'), { '': READERS + 1 });
    assert.equal(await steady, LOG_BYTES);
    for (const { socket } of readers) socket.resume();
    await eventually(() => readers.every(({ socket }) => socket.closed), { what: 'their connections are closed' });
    await eventually(() => openFiles() <= before, { what: 'nothing is read for them' });
    assert.equal((await metric('berth_http_open_requests'))['{kind="streams"}'], 0);
    const refused = await metric('berth_http_refused_total');
    for (const limit of ['rate', 'streams', 'waits']) assert.ok(refused[`{limit="${limit}",of="caller"}`], limit);
    assert.deepEqual(
      Object.keys(refused).filter((labels) => !labels.includes('of="caller"')),
      [],
    );
  });

  test('who takes contents slowly has a few of them in the memory of the server, and others get theirs', async (t) => {
    const reader = await api.user(EVERYTHING);
    await api.cluster.create('large', { suspend: true });
    await api.cluster.turn('large', 'large-1', null);
    const stored = await storeLog('large', 'large-1');
    const opened = await Promise.all(Array.from({ length: 8 }, () => stall(reader, stored)));
    t.onTestFinished(() => opened.forEach(({ socket }) => void socket.destroy()));
    assert.deepEqual(tally(opened.map(({ status }) => status)), { 200: 3, 429: 5 });
    assert.equal(await outcome(await ask(reader, stored)), '429 CallerLimit');
    const answer = await ask(await api.user(EVERYTHING), stored);
    assert.equal((await answer.text()).length, LOG_BYTES);
  });
});
