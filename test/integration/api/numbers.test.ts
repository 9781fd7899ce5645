import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parseDocument } from 'yaml';
import { canonicalJson, parseExact } from '../../../core/json.ts';
import type { Agent } from '../../../core/resources/agent.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { RawApi } from '../../support/raw-api.ts';
import { tools } from '../../support/tools.ts';
import { Caller, type Ended } from '../cli/support.ts';
import { ApiCluster, type Ask, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
const TURNS = '/apis/berth.dev/v1alpha1/namespaces/default/turns';
/** An integer that 64 bits hold and a double does not. */
const INTEGERS = '[9007199254740993,9223372036854775807,-9223372036854775808]';
/** A number that no API server holds. */
const LOST = ['12345678901234567890', '1.00000000000000000001', '1e999', '0.1234567890123456789012'];
/** Prints its input, a string, as its JSON output. */
const SAYS: Agent = { command: ['printf', '%s'], args: ['$(INPUT)'], input: 'Args', result: 'Json' };

describe('numbers', () => {
  let api: ApiCluster;
  let kube: RawApi;
  let caller: Caller;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user([...EVERYTHING, { verbs: ['create'], resources: ['approvals'] }]));
    const { server } = api.cluster;
    const admin = server.mintToken({ username: 'admin', groups: ['system:masters', 'system:authenticated'] });
    kube = new RawApi({ url: server.url, ca: server.ca, token: admin });
    caller = new Caller(import.meta.dirname, { KUBECONFIG: api.cluster.kubeconfig });
    await api.cluster.create('echo', { agent: { command: ['cat'], result: 'Json' } });
    await api.cluster.create('says', { agent: SAYS });
  });
  afterAll(async () => {
    caller.remove();
    await kube.close();
    await api.close();
  });

  const call = (method: string, path: string, ask: Ask = {}) => api.call(method, path, { token, ...ask });
  const output = async (session: string, turn: string): Promise<string> => {
    const { status, text } = await call('GET', `${SESSIONS}/${session}/turns/${turn}/output`);
    assert.equal(status, 200, text);
    return text;
  };
  /** A field of a JSON text, as it stands there. */
  const field = (text: string, ...path: string[]) =>
    canonicalJson(path.reduce((value, key) => (value as Record<string, unknown>)[key], parseExact(text)));

  test('an integer of 64 bits arrives exactly, sent by kubectl, the HTTP API or the CLI', async () => {
    const { kubectl } = await tools();
    const object = `{"apiVersion":"berth.dev/v1alpha1","kind":"Turn","metadata":{"name":"by-kubectl","namespace":"default"},
      "spec":{"session":"echo","input":${INTEGERS}}}`;
    await new Promise<void>((resolve, reject) => {
      const args = ['--kubeconfig', api.cluster.kubeconfig, 'create', '-f', '-'];
      const child = execFile(kubectl, args, (error) => (error ? reject(error) : resolve()));
      child.stdin?.end(object);
    });
    await api.cluster.ended('by-kubectl');
    assert.equal(field(await output('echo', 'by-kubectl'), 'input'), INTEGERS);

    const body = `{"metadata":{"name":"by-http"},"spec":{"input":${INTEGERS}}}`;
    const made = await call('POST', `${SESSIONS}/echo/turns`, { body });
    assert.equal(field(made.text, 'spec', 'input'), INTEGERS);
    const ended = await call('GET', `${SESSIONS}/echo/turns/by-http?wait=60s`);
    assert.equal(field(ended.text, 'spec', 'input'), INTEGERS);
    assert.equal(field(ended.text, 'status', 'output', 'input'), INTEGERS);

    const printed = await caller.ok('turn', 'echo', '--input', INTEGERS);
    assert.equal(field(printed, 'input'), INTEGERS);
    const arrived = await kube.get(`${TURNS}/by-kubectl`);
    assert.equal(field(arrived.text, 'status', 'output', 'input'), INTEGERS);
    assert.equal(field(arrived.text, 'spec', 'input'), INTEGERS);
  });

  test('an output that no API server holds is what the agent said, wherever it is read', async () => {
    const said = `{"a":[${LOST}],"b":9007199254740993}`;
    const body = { metadata: { name: 'said' }, spec: { input: said } };
    assert.equal((await call('POST', `${SESSIONS}/says/turns`, { body })).status, 201);
    const { status = {} } = await api.cluster.ended('said');
    assert.equal(status.phase, 'Succeeded', status.error?.message);
    assert.equal(status.output, undefined);
    assert.notEqual(status.outputRef, undefined);
    assert.equal(await output('says', 'said'), said);
    const shown = await caller.ok('get', 'turn', 'said', '-o', 'json');
    assert.equal(field(shown, 'status', 'output'), said);
    const yaml = parseDocument(await caller.ok('get', 'turn', 'said', '-o', 'yaml'));
    const written = yaml.getIn(['status', 'output', 'a'], true) as { items: { source: string }[] };
    assert.deepEqual(
      written.items.map(({ source }) => source),
      LOST,
    );
    assert.match(await caller.ok('get', 'turn', 'said'), /12345678901234567890/);
    assert.equal(await caller.ok('turn', 'says', '--input', JSON.stringify(said)), `${said}\n`);
    const run = await call('POST', '/v1/namespaces/default/runs?wait=60s', {
      body: { metadata: { name: 'run' }, spec: { agent: SAYS, input: said } },
    });
    assert.equal(field(run.text, 'output'), said);
  });

  test('an event of the agent keeps every digit', async (t) => {
    const stop = new AbortController();
    t.onTestFinished(() => stop.abort());
    const lines = `{"type":"step","of":[${LOST}]}\n{"type":"done"}`;
    const agent: Agent = { ...SAYS, result: 'JsonLines', jsonLines: { resultWhen: { '/type': 'done' } } };
    await api.cluster.create('events', { agent });
    const answer = await fetch(`${api.url}${SESSIONS}/events/events`, {
      signal: stop.signal,
      headers: { authorization: `Bearer ${token}` },
    });
    await api.cluster.turn('events', 'events-1', lines);
    let text = '';
    const read = (async () => {
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
    })().catch((error) => assert.ok(stop.signal.aborted, error));
    await eventually(() => text.includes(`"event":{"type":"step","of":[${LOST}]}`), { what: 'the event' });
    stop.abort();
    await read;
  });

  test('a question shows an integer of 64 bits exactly and a longer one as a string, and the response arrives exactly', async () => {
    const asks = pythonAgent(`
if 'approval' in request: answer(request['approval']['response'])
else: answer(status='approval', prompt='?', payload=[9007199254740993, 12345678901234567890])
`);
    await api.cluster.create('asks', { agent: asks });
    for (const [turn, approve] of [
      [
        'asks-http',
        (path: string, id: string) =>
          call('POST', path, { body: `{"spec":{"requestId":"${id}","decision":"Approve","response":${INTEGERS}}}` }),
      ],
      ['asks-cli', () => caller.ok('approve', 'asks', '--response', INTEGERS)],
    ] as const) {
      await api.cluster.turn('asks', turn, null);
      const { status } = await api.cluster.turnUntil(turn, 'asks', (now) => now.status?.phase === 'AwaitingApproval');
      assert.equal(canonicalJson(status?.approval?.payload), '[9007199254740993,"12345678901234567890"]');
      await approve(`${SESSIONS}/asks/turns/${turn}/approvals`, status?.approval?.id ?? '');
      await api.cluster.ended(turn);
      assert.equal(await output('asks', turn), INTEGERS);
    }
  });

  test('a number that cannot be kept is refused on the way in with its path', async () => {
    for (const number of LOST) {
      const message = `the number ${number} cannot be kept exactly; send it as a string: "${number}"`;
      const body = `{"spec":{"input":{"ids":[1,${number}]}}}`;
      const { status, problem } = await call('POST', `${SESSIONS}/echo/turns`, { body });
      assert.deepEqual([status, problem.code], [422, 'NumberNotExact']);
      assert.deepEqual(problem.errors, [{ field: 'spec.input.ids[1]', message }]);
      const refused: Ended = await caller.berth(['turn', 'echo', '--input', `{"ids":[1,${number}]}`]);
      assert.deepEqual([refused.code, refused.stdout], [2, '']);
      assert.ok(refused.stderr.includes(`ids[1]: the number ${number} cannot be kept exactly`), refused.stderr);
    }
  });

  test('an integer of 64 bits where something else has to stand is refused for that', async () => {
    const integer = '9007199254740993';
    for (const [body, field, message] of [
      [`{"metadata":{"labels":${integer}}}`, 'metadata.labels', 'it must be of type object, not number'],
      [`{"spec":{"timeout":${integer}}}`, 'spec.timeout', 'it must be of type string, not number'],
      [
        `{"spec":{"retry":{"maxAttempts":${integer}}}}`,
        'spec.retry.maxAttempts',
        'it must be at most 9007199254740991',
      ],
    ] as const) {
      const { status, problem } = await call('POST', `${SESSIONS}/echo/turns`, { body });
      assert.deepEqual([status, problem.code, problem.errors?.[0]], [422, 'Invalid', { field, message }]);
    }
  });
});
