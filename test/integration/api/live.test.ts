import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, type TestContext, test } from 'vitest';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { tools } from '../../support/tools.ts';
import { ApiCluster } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');
const BERTH = join(CHECKOUT, 'bin', 'berth');
const LOOK = [{ verbs: ['get', 'list'], resources: ['sessions', 'turns'] }];

/** Reads a stream to its end. Keeps its text and the delay of every event of `tells`. */
class Reader {
  text = '';
  ended = false;
  /** Milliseconds from the agent's own clock to the reader, by turn and step. */
  readonly late = new Map<string, number>();
  /** Error that cut the stream. */
  #problem: unknown;

  constructor(stream: AsyncIterable<Uint8Array>) {
    void this.#read(stream)
      .catch((error) => {
        this.#problem = error;
      })
      .finally(() => {
        this.ended = true;
      });
  }

  /** Tells whether the event of that turn and step has come. Throws once it can no longer come. */
  has(event: string): boolean {
    if (!this.late.has(event) && this.ended) {
      throw new Error(`it ended with: ${this.text.slice(-500)}`, { cause: this.#problem });
    }
    return this.late.has(event);
  }

  async #read(stream: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this.text += decoder.decode(chunk, { stream: true });
      for (const [, turn, step, at] of this.text.matchAll(/\{"turn":"([^"]+)","step":(\d+),"at":([\d.]+)\}/g)) {
        const key = `${turn} ${step}`;
        if (!this.late.has(key)) this.late.set(key, Date.now() - Number(at) * 1000);
      }
    }
  }
}

/** Lines of the text, each event reduced to its turn. */
const linesOf = (text: string) =>
  text.split('\n').map((line) => line.replace(/^(\[berth event\]).*"turn":"([^"]+)".*/, '$1 $2'));
/** Lines of a turn with one event, sorted: an agent's output and its events arrive on separate paths. */
const toldBy = (turn: string) => [`[berth event] ${turn}`, `begin ${turn}`];

describe('output and events of a session while it works', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'berth-live-'));
  /** Agent that sends as many events as its input says, a moment apart, and ends when told to. */
  const tells = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
turn = request['turn']['name']
print('begin', turn)
for step in range(request['input']):
    berth_agent.event({'turn': turn, 'step': step, 'at': time.time()})
    time.sleep(0.1)
while not os.path.exists('${scratch}/' + turn): time.sleep(0.02)
answer(None)
`);
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user(LOOK));
  });
  afterAll(async () => {
    await api.close();
    // Processes that have just been ended may still write.
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  });
  const end = async (turn: string) => {
    writeFileSync(join(scratch, turn), '');
    await api.cluster.ended(turn);
  };
  const path = (session: string, page: string) => `/v1/namespaces/default/sessions/${session}/${page}`;

  async function read(page: string, signal: AbortSignal, headers: Record<string, string> = {}): Promise<Reader> {
    const answer = await fetch(api.url + page, { signal, headers: { authorization: `Bearer ${token}`, ...headers } });
    assert.equal(answer.status, 200);
    const type = /events/.test(page) ? 'text/event-stream' : 'text/plain';
    assert.equal(answer.headers.get('content-type'), `${type}; charset=utf-8`);
    return new Reader(answer.body as AsyncIterable<Uint8Array>);
  }

  function program(t: TestContext, file: string, args: string[]): Reader {
    const PATH = `${scratch}${delimiter}${process.env.PATH}`;
    const env = { PATH, HOME: scratch, KUBECONFIG: api.cluster.kubeconfig };
    const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.onTestFinished(() => void child.kill());
    return new Reader(child.stdout as Readable);
  }

  test('an event reaches server-sent events, the followed text, berth logs -f and kubectl session logs -f within a second', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    const { kubectl } = await tools();
    symlinkSync(BERTH, join(scratch, 'kubectl-session'));
    await api.cluster.create('tells', { agent: tells });
    const readers = {
      events: await read(path('tells', 'events'), stop.signal),
      'logs?follow': await read(path('tells', 'logs?follow'), stop.signal),
      'berth logs -f': program(t, BERTH, ['logs', '-f', 'tells']),
      'kubectl session logs -f': program(t, kubectl, ['session', 'logs', '-f', 'tells']),
    };
    // Programs take a while to start: from the first event on they listen.
    await api.cluster.turn('tells', 'tells-0', 1);
    for (const [name, reader] of Object.entries(readers)) {
      await eventually(() => reader.has('tells-0 0'), { what: `the first event by ${name}` });
    }
    await end('tells-0');
    // A busy machine delays the events of one turn. Only a slow path delays those of every turn.
    const slow = new Set(Object.keys(readers));
    for (let round = 1; slow.size > 0 && round <= 5; round++) {
      const turn = `tells-${round}`;
      await api.cluster.turn('tells', turn, 9);
      for (const [name, reader] of Object.entries(readers)) {
        // The turn still runs: no reader waits for its end.
        await eventually(() => reader.has(`${turn} 8`), { what: `the last event by ${name}` });
        const late = (step: number) => reader.late.get(`${turn} ${step}`) ?? Number.NaN;
        const times = Array.from({ length: 9 }, (_, step) => late(step)).sort((a, b) => a - b);
        await t.annotate(`${name}: median ${times[4]?.toFixed(0)} ms, most ${times[8]?.toFixed(0)} ms`);
        if ((times[4] as number) < 1000) slow.delete(name);
      }
      await end(turn);
    }
    assert.deepEqual([...slow], []);
  });

  test('berth logs -f --turn brings all that the turn has printed, however late its log is to be had', async (t) => {
    await api.cluster.create('late', { agent: tells });
    await api.cluster.turn('late', 'late-1', 1);
    await api.cluster.turnUntil('late-1', 'runs', ({ status }) => status?.phase === 'Running');
    let isAsked = false;
    const log = ({ resource, subresource }: RequestFacts) => {
      const matches = !isAsked && resource === 'pods' && subresource === 'log';
      isAsked ||= matches;
      return matches;
    };
    api.cluster.server.faults.delayNext(log, 3_000);
    const reader = program(t, BERTH, ['logs', '-f', 'late', '--turn', 'late-1']);
    await eventually(() => isAsked, { what: 'the log is asked for' });
    await end('late-1');
    await eventually(() => reader.ended, { what: 'the follow ends with the turn' });
    const lines = linesOf(reader.text);
    assert.deepEqual([lines.slice(0, 2).sort(), lines.slice(2)], [toldBy('late-1'), ['']]);
  });

  test('events go on after Last-Event-ID, and with the next incarnation', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    await api.cluster.create('again', { agent: tells });
    const first = await read(path('again', 'events'), stop.signal);
    await api.cluster.turn('again', 'again-1', 5);
    await eventually(() => first.has('again-1 4'), { what: 'five events' });
    const ids = [...first.text.matchAll(/^id: (.+)\nevent: agent\ndata: .*"again-1"/gm)].map(([, id]) => id);
    assert.equal(ids.length, 5);
    const next = await read(path('again', 'events'), stop.signal, { 'last-event-id': ids[2] as string });
    await eventually(() => next.has('again-1 4'), { what: 'the last event again' });
    assert.deepEqual([...next.late.keys()], ['again-1 3', 'again-1 4']);
    await end('again-1');
    await api.cluster.patch('again', { suspendRequest: 'x' });
    await api.cluster.until('again', 'suspended', ({ status }) => status?.podName === undefined);
    await api.cluster.turn('again', 'again-2', 1);
    await eventually(() => next.has('again-2 0'), { what: 'one of the next incarnation' });
    assert.match(next.text, /^id: \d+\.\d+\.2\.1\.\w{8}\.\d+\.\d+\nevent: agent$/m);
    await end('again-2');
  });

  test('the text is followed over all the session’s pods, without frames, until the session is deleted', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    await api.cluster.create('talks', { agent: tells });
    const reader = await read(path('talks', 'logs?follow=true'), stop.signal);
    // A pod's text disappears with the pod. The test suspends the session only after the text was read.
    const hasAll = (turn: string) => toldBy(turn).every((line) => linesOf(reader.text).includes(line));
    const follows = (turn: string) => eventually(() => hasAll(turn), { what: `the text of ${turn}` });
    await api.cluster.turn('talks', 'talks-1', 1);
    await eventually(async () => (await api.call('GET', path('talks', 'logs'), { token })).text.includes('"step":0'), {
      what: 'the text so far',
    });
    await follows('talks-1');
    await end('talks-1');
    await api.cluster.patch('talks', { suspendRequest: 'x' });
    await api.cluster.until('talks', 'suspended', ({ status }) => status?.podName === undefined);
    const without = await api.call('GET', path('talks', 'logs'), { token });
    assert.deepEqual([without.status, without.problem.code], [404, 'NoLog']);
    await api.cluster.turn('talks', 'talks-2', 1);
    await follows('talks-2');
    await end('talks-2');
    await api.cluster.delete('talks');
    await eventually(() => reader.ended, { what: 'the end of the text' });
    const lines = linesOf(reader.text);
    const [first, second, rest] = [lines.slice(0, 2).sort(), lines.slice(2, 4).sort(), lines.slice(4)];
    assert.deepEqual([first, second, rest], [toldBy('talks-1'), toldBy('talks-2'), ['']]);
  });

  test('the text of a pod that waits for a node is followed all the same', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    // A pod without a runner is let onto a node only by a patch, which fails here for as long as it is held.
    let held = true;
    let asked = 0;
    const { faults } = api.cluster.server;
    const letsOn = ({ resource, verb }: RequestFacts) => held && resource === 'pods' && verb === 'patch';
    const looks = ({ resource, subresource }: RequestFacts) => {
      if (resource === 'pods' && subresource === 'log') asked++;
      return false;
    };
    faults.failNext(letsOn, { code: 503, reason: 'ServiceUnavailable', message: 'held' }, 1_000);
    faults.delayNext(looks, 0);
    await api.cluster.createClass('plain', {
      runner: 'None',
      image: 'berth.local/machine',
      // A pod's text disappears with the pod. The agent works until the text was read.
      agent: { command: ['sh', '-c', `echo begin; until [ -e ${join(scratch, 'waits-1')} ]; do sleep 0.05; done`] },
    });
    await api.cluster.create('waits', { class: 'plain' });
    await api.cluster.turn('waits', 'waits-1', null);
    await eventually(async () => (await api.cluster.podsOf('waits')).length === 1, { what: 'its pod' });
    const reader = await read(path('waits', 'logs?follow'), stop.signal);
    // The second time says that the first answer was had.
    await eventually(() => asked >= 2, { what: 'the log is asked for while the pod has no node' });
    const [pod] = await api.cluster.podsOf('waits');
    assert.equal(pod?.spec.nodeName, undefined);
    held = false;
    await eventually(() => reader.text === 'begin\n', { what: 'the text' });
    await end('waits-1');
  });

  test('are redacted where no runner does it', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    const event = JSON.stringify({ seq: 1, turn: 'hides-1', at: '', event: 'customer-123456' });
    const says = `echo customer-123456; echo token=abcdef0123; echo '[berth event] ${event}'`;
    await api.cluster.createClass('discreet', {
      runner: 'None',
      image: 'berth.local/machine',
      redact: ['customer-\\d{6}'],
      agent: {
        command: ['sh', '-c', `${says}; echo said; until [ -e ${join(scratch, 'hides-1')} ]; do sleep 0.05; done`],
      },
    });
    await api.cluster.create('hides', { class: 'discreet' });
    const events = await read(path('hides', 'events?logs=true'), stop.signal);
    await api.cluster.turn('hides', 'hides-1', null);
    const followed = await read(path('hides', 'logs?follow'), stop.signal);
    for (const { what, reader } of [
      { what: 'events', reader: events },
      { what: 'followed text', reader: followed },
    ]) {
      await eventually(() => reader.text.includes('said'), { what });
    }
    const soFar = await api.call('GET', path('hides', 'logs'), { token });
    const hidden = ['[REDACTED]', 'token=[REDACTED]'];
    for (const text of [soFar.text, followed.text]) assert.deepEqual(text.split('\n').slice(0, 2), hidden);
    for (const text of [soFar.text, followed.text, events.text]) assert.doesNotMatch(text, /123456|abcdef0123/);
    for (const line of hidden) assert.ok(events.text.includes(`"text":"${line}"`), events.text);
    assert.match(
      events.text,
      /"text":"\[berth event\] .*\[REDACTED\]/,
      'a line of a program without a runner is no event',
    );
    assert.doesNotMatch(events.text, /^event: agent/m);
    await end('hides-1');
  });

  test('need the right to read the session and its turns', async () => {
    await api.cluster.create('seen', { agent: tells });
    const stranger = await api.user([{ verbs: ['get'], resources: ['sessions'] }]);
    for (const page of ['events', 'logs', 'logs?follow']) {
      const answer = await api.call('GET', path('seen', page), { token: stranger.token });
      assert.deepEqual([answer.status, answer.problem.code], [403, 'Forbidden'], page);
    }
    const headers = { 'last-event-id': 'x' };
    const wrong = await api.call('GET', path('seen', 'events'), { token, headers });
    assert.equal(wrong.problem.code, 'InvalidParameter');
    const follow = await api.call('GET', path('seen', 'logs?follow=yes'), { token });
    assert.deepEqual([follow.status, follow.problem.errors?.[0]?.field], [400, 'follow']);
  });
});
