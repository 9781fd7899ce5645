import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { WebSocket } from 'ws';
import { encodeFrame, encodeJson, FrameDecoder, positionBytes } from '../../../core/enter/frames.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster, EVERYTHING, KeptLog, type Rule } from './support.ts';

const COMMANDS = '/v1/namespaces/default/sessions/notes/commands';
const EXEC: Rule[] = [{ verbs: ['get', 'create'], resources: ['sessions/exec'] }];

describe('commands of a session over HTTP', () => {
  let api: ApiCluster;
  let token: string;
  const log = new KeptLog();
  beforeAll(async () => {
    api = await ApiCluster.start({}, undefined, log.logger);
    api.cluster.startController();
    ({ token } = await api.user(EXEC));
    await api.cluster.create('notes', { agent: pythonAgent("answer('done')") });
    await api.cluster.turn('notes', 'notes-1', null);
    await api.cluster.ended('notes-1');
  });
  afterAll(() => api.close());

  const start = (command: string[], more: object = {}, query = '', headers: Record<string, string> = {}) =>
    api.call('POST', COMMANDS + query, { token, body: { command, ...more }, headers });
  const sh = (script: string, more: object = {}, query = '?wait=30s') => start(['sh', '-c', script], more, query);
  const read = async (id: string, query: string) =>
    (await api.call('GET', `${COMMANDS}/${id}/output?${query}`, { token })).text;

  test('run, and are answered with output and exit where that is waited for', async () => {
    const { status, body } = await sh('echo out; echo err >&2; echo $WORD; pwd; exit 3', {
      env: { WORD: 'ho' },
      cwd: '/tmp',
    });
    assert.equal(status, 201, JSON.stringify(body));
    assert.deepEqual(body.stdout, { text: 'out\nho\n/tmp\n' });
    assert.deepEqual(body.stderr, { text: 'err\n' });
    assert.deepEqual([body.exit.code, body.exit.stdout, body.exit.stderr], [3, 12, 4]);
    const bytes = await sh("printf '\\377'");
    assert.deepEqual(bytes.body.stdout, { base64: '/w==' });
  });

  test('with more output than an answer has are told where it goes on', async () => {
    const { body } = await sh('head -c 1500000 /dev/zero | tr "\\0" x');
    assert.equal(body.stdout.text.length, 1024 * 1024);
    assert.equal(body.stdout.truncated, 1024 * 1024);
    const rest = await read(body.id, `stream=stdout&from=${body.stdout.truncated}`);
    assert.equal(rest.length, 1_500_000 - 1024 * 1024);
  });

  test('are started once for an Idempotency-Key, and another command is refused', async () => {
    const key = { 'idempotency-key': 'one' };
    const first = await start(['sh', '-c', 'echo $$; sleep 60'], {}, '', key);
    const again = await start(['sh', '-c', 'echo $$; sleep 60'], {}, '', key);
    assert.deepEqual([first.status, again.body], [201, first.body]);
    assert.equal((await start(['true'], {}, '', key)).problem.code, 'CommandConflict');
    const { body } = await api.call('GET', COMMANDS, { token });
    assert.equal(body.items.filter(({ id }: { id: string }) => id === first.body.id).length, 1);
    await api.call('POST', `${COMMANDS}/${first.body.id}/signal`, { token, body: { signal: 'SIGKILL' } });
  });

  test('are read while they run, by stream and from a position, and as records', async () => {
    const { body } = await start(['sh', '-c', 'echo one; echo two >&2; read line; echo $line'], { stdin: true });
    await eventually(async () => (await read(body.id, 'stream=stdout')) === 'one\n', { what: 'the first line' });
    await eventually(async () => (await read(body.id, 'stream=stderr')) === 'two\n', { what: 'the error' });
    const followed = read(body.id, 'stream=stdout&follow&from=8');
    const input = { token, body: 'three\n', headers: { 'content-type': 'application/octet-stream' } };
    const ahead = await api.call('POST', `${COMMANDS}/${body.id}/input?at=1000000`, input);
    assert.equal(ahead.status, 422);
    assert.deepEqual(ahead.problem.errors, [
      { field: 'at', message: 'must not be above 0, the position of the next byte' },
    ]);
    const given = await api.call('POST', `${COMMANDS}/${body.id}/input?at=0&end`, input);
    assert.deepEqual([given.status, given.body], [200, { taken: 6 }], given.text);
    assert.equal(await followed, 'three\n');
    const answer = await fetch(`${api.url}${COMMANDS}/${body.id}/output?follow`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(answer.headers.get('content-type'), 'application/vnd.berth.output');
    const frames = new FrameDecoder().push(Buffer.from(await answer.arrayBuffer()));
    // Which of the two streams the runner read first is open.
    const of = (stream: number) =>
      frames
        .filter(({ kind, payload }) => kind === 'output' && payload[0] === stream)
        .map(({ payload }) => String(payload.subarray(9)))
        .join('');
    assert.deepEqual([of(1), of(2)], ['one\nthree\n', 'two\n']);
    assert.equal(frames.at(-1)?.kind, 'exit');
    const listed = await api.call('GET', `${COMMANDS}/${body.id}`, { token });
    assert.deepEqual([listed.body.exit.code, listed.body.command[0]], [0, 'sh']);
    const beyond = await api.call('GET', `${COMMANDS}/${body.id}/output?from=1000`, { token });
    assert.deepEqual([beyond.status, beyond.problem.code], [422, 'Invalid']);
  });

  test('get signals', async () => {
    const { body } = await start([
      'sh',
      '-c',
      'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.1; done',
    ]);
    await eventually(async () => (await read(body.id, 'stream=stdout')) === 'ready\n', { what: 'it is ready' });
    const { status } = await api.call('POST', `${COMMANDS}/${body.id}/signal`, { token, body: { signal: 'SIGTERM' } });
    assert.equal(status, 204);
    assert.equal(await read(body.id, 'stream=stdout&follow'), 'ready\ncaught\n');
  });

  test('are attached to by a WebSocket', async (t) => {
    const { body } = await start(['cat'], { stdin: true });
    const url = `${api.url.replace('http', 'ws')}${COMMANDS}/${body.id}/attach?input`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    t.onTestFinished(() => socket.terminate());
    const decoder = new FrameDecoder();
    const seen: string[] = [];
    socket.on('message', (data: Buffer) => {
      for (const { kind, payload } of decoder.push(data)) {
        if (kind === 'output') seen.push(String(payload.subarray(9)));
        if (kind === 'exit') seen.push(`exit ${JSON.parse(String(payload)).code}`);
      }
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(encodeFrame('input', positionBytes(0), Buffer.from('hello')));
    await eventually(() => seen[0] === 'hello', { what: 'the echo' });
    socket.send(encodeFrame('inputEnd', positionBytes(5)));
    assert.equal(await closed, 1000);
    assert.deepEqual(seen, ['hello', 'exit 0']);
    const other = await start(['sleep', '60']);
    const wrong = new WebSocket(url.replace(body.id, other.body.id), { headers: { authorization: `Bearer ${token}` } });
    const code = new Promise((resolve) => wrong.once('close', resolve));
    wrong.once('open', () => wrong.send(encodeJson('hello', {})));
    assert.equal(await code, 1011);
    await api.call('POST', `${COMMANDS}/${other.body.id}/signal`, { token, body: { signal: 'SIGKILL' } });
  });

  test('that cannot be had are refused with the reason', async () => {
    const code = async (method: string, path: string, body?: object) => {
      const { status, problem } = await api.call(method, COMMANDS + path, { token, ...(body && { body }) });
      return `${status} ${problem.code}`;
    };
    assert.equal(await code('POST', '', { command: ['no-such-program'] }), '422 CommandFailed');
    assert.equal(await code('POST', '', { command: [] }), '422 Invalid');
    assert.equal(await code('GET', '/nobody'), '404 CommandNotFound');
    assert.equal(await code('GET', '/nobody/output'), '404 CommandNotFound');
    assert.equal(await code('POST', '/nobody/signal', { signal: 'SIGTERM' }), '404 CommandNotFound');
    assert.equal(await code('GET', '/nobody/attach'), '426 UpgradeRequired');
  });

  test('need the rights to sessions/exec, which those to sessions do not include', async () => {
    const [other, reader] = await Promise.all([
      api.user(EVERYTHING),
      api.user([{ verbs: ['get'], resources: ['sessions/exec'] }]),
    ]);
    const body = { command: ['true'] };
    assert.equal((await api.call('POST', COMMANDS, { token: other.token, body })).status, 403);
    assert.equal((await api.call('POST', COMMANDS, { token: reader.token, body })).status, 403);
    assert.equal((await api.call('GET', COMMANDS, { token: reader.token })).status, 200);
  });

  test('of a pod that is gone are not started again by a repeat', async () => {
    await api.cluster.create('moved', { agent: pythonAgent("answer('done')") });
    const turn = async (name: string) => {
      await api.cluster.turn('moved', name, null);
      await api.cluster.ended(name);
    };
    await turn('moved-1');
    const again = () =>
      api.call('POST', COMMANDS.replace('notes', 'moved'), {
        token,
        body: { command: ['true'] },
        headers: { 'idempotency-key': 'moved' },
      });
    assert.equal((await again()).status, 201);
    const all = await api.user([{ verbs: ['*'], resources: ['sessions', 'turns'] }]);
    const restart = '/v1/namespaces/default/sessions/moved/restart';
    const restarted = await api.call('POST', restart, { token: all.token });
    assert.equal(restarted.status, 202, restarted.text);
    await turn('moved-2');
    await api.cluster.until('moved', 'has another pod', ({ status }) => (status?.incarnation ?? 0) > 1);
    const { status, problem } = await again();
    assert.deepEqual([status, problem.code], [410, 'CommandLost']);
  });

  test('leave a line with caller, session, id and outcome, and without words, variables or output', async () => {
    log.clear();
    const { body } = await sh('echo $HIDDEN-word', { env: { HIDDEN: 'secret' } });
    assert.equal(body.stdout.text, 'secret-word\n');
    const [line = {}] = log.entered();
    const { user, requestId, ...facts } = line;
    assert.deepEqual(facts, {
      namespace: 'default',
      session: 'notes',
      want: 'command',
      command: body.id,
      outcome: 'Done',
      bytes: 12,
    });
    assert.doesNotMatch(JSON.stringify(log.lines), /secret|HIDDEN|word|echo/);
  });
});
