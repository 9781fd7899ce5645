import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { run, session, sessionList, turn } from '../../../api/openapi/schemas.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster, type Ask, BERTH_API, EVERYTHING } from './support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const ECHO = pythonAgent("answer({'got': request['input']})");
const RUNS = '/v1/namespaces/default/runs';
const SESSIONS = '/v1/namespaces/default/sessions';

describe('the API beside a controller', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user(EVERYTHING));
  });
  afterAll(() => api.close());
  const call = (method: string, path: string, ask: Ask = {}) => api.call(method, path, { token, ...ask });

  test('a run is answered with its result', async () => {
    const body = { spec: { agent: ECHO, input: { n: 3 } } };
    const answer = await call('POST', `${RUNS}?wait=60s`, { body });
    assert.equal(answer.status, 200, answer.text);
    run.parse(answer.body);
    assert.equal(answer.body.phase, 'Succeeded');
    assert.deepEqual(answer.body.output, { got: { n: 3 } });
    const { phase, turns: counts } = answer.body.session.status;
    assert.deepEqual([phase, counts.total, counts.succeeded], ['Finished', 1, 1]);
    const followed = await call('GET', answer.headers.get('location') ?? '');
    assert.deepEqual(followed.body.status.output, { got: { n: 3 } });
  });

  test('a run whose output is beyond 16 KiB is answered with all of it', async () => {
    const input = 'x'.repeat(50_000);
    const answer = await call('POST', `${RUNS}?wait=60s`, { body: { spec: { agent: ECHO, input } } });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.turn.status.output, undefined);
    assert.deepEqual(answer.body.output, { got: input });
  });

  test('a run that fails is answered 200 with its phase and error', async () => {
    const agent = pythonAgent("print('oh no', file=sys.stderr)\nsys.exit(3)");
    const answer = await call('POST', `${RUNS}?wait=60s`, { body: { spec: { agent, input: null } } });
    assert.equal(answer.status, 200, answer.text);
    run.parse(answer.body);
    assert.equal(answer.body.phase, 'Failed');
    const { conditions } = answer.body.session.status;
    const finished = conditions.find(({ type }: { type: string }) => type === 'Finished');
    assert.deepEqual(
      [answer.body.error.code, finished.status, finished.reason],
      ['AgentFailed', 'True', 'AgentFailed'],
    );
  });

  test('a run whose time to wait is over goes on, and a repeat with its key brings the result', async () => {
    const ask = { body: { spec: { agent: ECHO, input: 'late' } }, headers: { 'idempotency-key': 'run-1' } };
    const early = await call('POST', `${RUNS}?wait=0s`, ask);
    assert.equal(early.status, 202, early.text);
    const late = await call('POST', `${RUNS}?wait=60s`, ask);
    assert.equal(late.status, 200, late.text);
    assert.deepEqual(late.body.output, { got: 'late' });
    assert.equal(late.body.session.metadata.uid, early.body.session.metadata.uid);
  });

  test('a run goes on when its client goes away', async () => {
    const client = new AbortController();
    const gone = join(api.cluster.home, 'client-gone');
    const agent = pythonAgent(
      `while not os.path.exists('${gone}'): time.sleep(0.02)\nanswer({'got': request['input']})`,
    );
    const body = { metadata: { name: 'abandoned' }, spec: { agent, input: 'alone' } };
    const asked = call('POST', `${RUNS}?wait=60s`, { body, signal: client.signal });
    await eventually(async () => (await call('GET', `${SESSIONS}/abandoned`)).status === 200, {
      what: 'it is created',
    });
    client.abort();
    await assert.rejects(asked);
    writeFileSync(gone, '');
    const turns = `${SESSIONS}/abandoned/turns/abandoned`;
    const ended = await eventually(async () => {
      const answer = await call('GET', `${turns}?wait=60s`);
      return answer.body.status?.phase === 'Succeeded' && answer.body;
    });
    assert.deepEqual(ended.status.output, { got: 'alone' });
  });

  test('a session takes turns, is suspended, and is woken by the next; what is shown fits the schemas', async () => {
    const made = await call('POST', SESSIONS, { body: { metadata: { name: 'whole' }, spec: { agent: ECHO } } });
    assert.equal(made.status, 201, made.text);
    const give = async (input: unknown) => {
      const given = await call('POST', `${SESSIONS}/whole/turns`, { body: { spec: { input } } });
      assert.equal(given.status, 201, given.text);
      const path = given.headers.get('location') ?? '';
      const ended = await call('GET', `${path}?wait=60s`);
      turn.parse(ended.body);
      assert.equal(ended.body.status.phase, 'Succeeded', ended.text);
      return (await call('GET', `${path}/output`)).body;
    };
    assert.deepEqual(await give(1), { got: 1 });
    assert.equal((await call('POST', `${SESSIONS}/whole/suspend`)).status, 202);
    const asleep = await eventually(async () => {
      const { body } = await call('GET', `${SESSIONS}/whole`);
      return body.status.phase === 'Suspended' && body;
    });
    session.parse(asleep);
    assert.deepEqual(await give(2), { got: 2 });
    sessionList.parse((await call('GET', SESSIONS)).body);
    assert.equal((await call('GET', `${SESSIONS}/whole`)).body.status.incarnation, 2);
  });

  test('a request that comes while the program stops is answered 503, and one that is under way is finished', async () => {
    const program = await api.startProgram();
    let isCreating = false;
    const creates = ({ resource, verb, user }: RequestFacts) => {
      const matches = resource === 'sessions' && verb === 'create' && user === BERTH_API;
      isCreating ||= matches;
      return matches;
    };
    api.cluster.server.faults.delayNext(creates, 2_000);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ metadata: { name: 'last' }, spec: { agent: ECHO } });
    const made = fetch(`http://${program.host}${SESSIONS}`, { method: 'POST', headers, body });
    const socket = connect(program.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    // A connection in the middle of a request is not closed as an idle one.
    socket.write(`GET /healthz HTTP/1.1\r\nHost: berth\r\n\r\nGET ${SESSIONS} HTTP/1.1\r\nHost: berth\r\n`);
    await eventually(() => isCreating && text.endsWith('ok\n'), { what: 'both are under way' });
    program.child.kill('SIGTERM');
    await eventually(() => program.log().includes('"msg":"stopping"'), { what: 'it stops' });
    socket.write('\r\n');
    await once(socket, 'close');
    const [, refused = ''] = text.split('ok\n');
    assert.match(refused, /^HTTP\/1.1 503 Service Unavailable\r\n/);
    assert.match(refused, /^content-type: application\/problem\+json[^\r]*\r\nretry-after: 1\r$/m);
    assert.match(refused, /"code":"ShuttingDown"/);
    assert.equal((await made).status, 201);
    assert.equal(await program.closed, 0);
  });

  test('a program that is to stop after a delay is not ready, serves all that comes, and ends each connection with its next answer', async (t) => {
    const program = await api.startProgram({ BERTH_API_SHUTDOWN_DELAY: '1h' });
    t.onTestFinished(() => void program.child.kill('SIGKILL'));
    const socket = connect(program.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const ask = `GET ${SESSIONS} HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    socket.write(ask);
    await eventually(() => /connection: keep-alive\r\n.*"items"/is.test(text), { what: 'the connection is kept' });
    program.child.kill('SIGTERM');
    await eventually(() => program.log().includes('"msg":"stopping"'), { what: 'it stops' });
    text = '';
    socket.write(ask);
    await once(socket, 'close');
    assert.match(text, /^HTTP\/1.1 200 OK\r\n.*connection: close\r\n.*"items"/is);
    const fresh = await fetch(`http://${program.host}${SESSIONS}`, { headers: { authorization: `Bearer ${token}` } });
    assert.deepEqual([fresh.status, fresh.headers.get('connection')], [200, 'close']);
    const statusOf = async (probe: string) => (await fetch(`http://${program.host}${probe}`)).status;
    assert.deepEqual([await statusOf('/healthz'), await statusOf('/readyz')], [200, 503]);
  });

  test('the program listens, answers waits when it is told to stop, and ends in order', async () => {
    const program = await api.startProgram({ BERTH_API_SHUTDOWN_DELAY: '100ms' });
    const url = `http://${program.host}`;
    const isReady = async () => (await (await fetch(`${url}/readyz`)).text()) === 'ok\n';
    await eventually(isReady, { what: 'it is ready' });
    await call('POST', SESSIONS, { body: { metadata: { name: 'held' }, spec: { agent: ECHO, suspend: true } } });
    await call('POST', `${SESSIONS}/held/turns`, { body: { metadata: { name: 'held-1' } } });
    const headers = { authorization: `Bearer ${token}` };
    let waits = false;
    const looks = ({ resource, verb, user }: RequestFacts) => {
      waits ||= resource === 'turns' && (verb === 'list' || verb === 'watch') && user === BERTH_API;
      return false;
    };
    api.cluster.server.faults.delayNext(looks, 0);
    const waiting = fetch(`${url}${SESSIONS}/held/turns/held-1?wait=60s`, { headers });
    await eventually(() => waits, { what: 'it waits for the turn' });
    program.child.kill('SIGTERM');
    const answer = await waiting;
    assert.equal(answer.status, 200);
    assert.equal(((await answer.json()) as { metadata: { name: string } }).metadata.name, 'held-1');
    assert.equal(await program.closed, 0);
    assert.match(program.log(), /"msg":"API stopped"/);
    assert.ok(!program.log().includes(token), 'no token is logged');
  });
});

/** Resolves to the message with which the program refuses to start. */
async function refusal(env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [join(ROOT, 'api', 'main.ts')], { env: { PATH: process.env.PATH, ...env } });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk;
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 1);
  return err;
}

test('a configuration that cannot be used is refused with every problem named', async () => {
  const err = await refusal({ BERTH_API_PORT: 'http', BERTH_LOG_LEVEL: 'loud' });
  assert.match(err, /BERTH_API_PORT: "http"/);
  assert.match(err, /BERTH_LOG_LEVEL: "loud"/);
});

test('a missing cluster configuration is reported in one line', async () => {
  const err = await refusal({ HOME: '/nonexistent' });
  assert.match(err, /^berth-api: no cluster is configured: KUBECONFIG is not set, [^\n]*\n$/);
});
