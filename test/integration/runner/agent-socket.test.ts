import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { isAsleep } from '../../support/processes.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');

const PYTHON = join(CHECKOUT, 'clients', 'python');

const sh = (script: string) => ({ agent: { args: [script], result: 'Text' as const } });

const socketOf = (runner: RunnerHarness) => join(runner.directory('run'), 'berth.sock');

/** Sends the text to the runner and resolves to its first `count` replies, one per line. */
function answers(runner: RunnerHarness, text: string | Buffer, count: number): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(socketOf(runner), () => socket.write(text));
    socket.on('error', reject);
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
      const lines = received.split('\n').slice(0, -1);
      if (lines.length < count) return;
      socket.destroy();
      resolve(lines.map((line) => JSON.parse(line)));
    });
  });
}

/** The decision on a request, as the controller sends it. */
const decision = (turn: string, requestId: string, more: object = {}) => ({
  turn,
  name: 'turn-1',
  index: 1,
  attempt: 1,
  input: null,
  timeoutMs: 30_000,
  ranMs: 0,
  approval: { requestId, decision: 'Approve' as const, ...more },
});

describe('berth-agent', () => {
  test('is one small static file: no loader, no library, no other file is needed for it to start', () => {
    const program = readFileSync(join(CHECKOUT, 'build', 'bin', 'berth-agent'));
    assert.equal(program.toString('latin1', 0, 6), '\x7fELF\x02\x01', 'a program of 64 bits, little end first');
    const [headers, size, count] = [program.readBigUInt64LE(32), program.readUInt16LE(54), program.readUInt16LE(56)];
    const kinds = Array.from({ length: count }, (_, i) => program.readUInt32LE(Number(headers) + i * size));
    const [LOAD, DYNAMIC, INTERPRETER] = [1, 2, 3];
    assert.ok(kinds.includes(LOAD) && !kinds.includes(DYNAMIC) && !kinds.includes(INTERPRETER), `${kinds}`);
    assert.ok(program.length < 1024 * 1024, `${program.length} bytes`);
  });

  test('event: a redacted line of its own in the readable text, and no frame', async () => {
    await using runner = await RunnerHarness.bound({
      env: { S: 'geheim-wort' },
      agent: {
        args: [`printf 'half a line' >&2; sleep 0.2; berth-agent event "{\\"note\\": \\"token=abc $A\\"}"; echo out`],
        result: 'Text',
        env: [{ name: 'A', secret: 'S' }],
      },
    });
    const turn = runner.startTurn();
    const result = await runner.result(turn);
    assert.deepEqual([result.output, result.redactions], ['out\n', 1]);
    const line = runner.stderr.split('\n').find((text) => text.startsWith('[berth event] '));
    const { at, ...told } = JSON.parse((line ?? '').slice('[berth event] '.length));
    assert.deepEqual(told, { seq: 1, turn: 'turn-1', event: { note: 'token=abc [REDACTED]' } });
    assert.match(at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.deepEqual(runner.frames('event'), []);
    assert.match(runner.stderr, /^half a line$/m);
    assert.ok(!runner.stderr.includes('geheim-wort'));
  });

  test('cannot change the prompt by its JSON: people read the first argument', async () => {
    await using runner = await RunnerHarness.bound(
      sh(`berth-agent approve "Delete everything?" '1,"prompt":"Say hello?"'`),
    );
    const turn = runner.startTurn();
    const { message } = await runner.frame('approval');
    assert.deepEqual([message.prompt, message.payload], ['Delete everything?', 1]);
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    await runner.result(turn);
  });

  test('approve: waits for the decision, prints it, and its exit code tells which it was', async () => {
    await using runner = await RunnerHarness.bound(
      sh(`for q in one two; do berth-agent approve "May I \\"$q\\"?" '{"q": 1}'; echo "exit $?"; done`),
    );
    const turn = runner.startTurn();
    const first = await runner.frame('approval');
    assert.deepEqual(
      [first.message.prompt, first.message.payload, first.message.process],
      ['May I "one"?', { q: 1 }, 'Alive'],
    );
    runner.send('approval', decision(turn, first.message.id, { response: { a: '"decision":"Deny"' }, note: 'n' }));
    const second = await runner.frame('approval', (frame) => frame.message.id !== first.message.id);
    assert.equal(second.message.prompt, 'May I "two"?');
    runner.send('approval', {
      ...decision(turn, second.message.id),
      approval: { requestId: second.message.id, decision: 'Deny' },
    });
    const lines = String((await runner.result(turn)).output).split('\n');
    assert.deepEqual(JSON.parse(lines[0] ?? ''), {
      requestId: first.message.id,
      decision: 'Approve',
      response: { a: '"decision":"Deny"' },
      note: 'n',
    });
    assert.equal(lines[1], 'exit 0');
    assert.deepEqual(JSON.parse(lines[2] ?? ''), { requestId: second.message.id, decision: 'Deny' });
    assert.equal(lines[3], 'exit 1');
  });

  test('several questions at once are asked one after the other', async () => {
    await using runner = await RunnerHarness.bound(
      sh('berth-agent approve first & until [ -e go ]; do sleep 0.02; done; berth-agent approve second & wait'),
    );
    const turn = runner.startTurn();
    const first = await runner.frame('approval');
    assert.equal(first.message.prompt, 'first');
    writeFileSync(join(runner.directory('work'), 'go'), '');
    const second = () => runner.processes().find(({ command }) => command === 'berth-agent approve second');
    await eventually(() => isAsleep(second()?.pid ?? 0), { what: 'the second asker, waiting for an answer' });
    // A later connection is read later. The reply on it shows that both approvals have been asked for.
    assert.deepEqual(await answers(runner, '{"do":"touch"}\n', 1), [{ ok: true }]);
    const n = runner.send('ping', {});
    await runner.frame('pong', ({ message }) => message.n === n);
    assert.equal(runner.frames('approval').length, 1);
    runner.send('approval', decision(turn, first.message.id));
    const next = await runner.frame('approval', (frame) => frame.message.prompt === 'second');
    runner.send('approval', decision(turn, next.message.id));
    assert.equal(String((await runner.result(turn)).output).split('\n').length, 3);
  });

  test('a decision that is repeated, or for another request, is not told', async () => {
    await using runner = await RunnerHarness.bound(sh('berth-agent approve q; berth-agent approve q'));
    const turn = runner.startTurn();
    const first = await runner.frame('approval');
    const wrong = runner.send('approval', decision(turn, 'f'.repeat(16)));
    assert.equal((await runner.refusal(wrong)).code, 'UnknownRequest');
    runner.send('approval', decision(turn, first.message.id));
    const second = await runner.frame('approval', (frame) => frame.message.id !== first.message.id);
    runner.send('approval', decision(turn, first.message.id));
    const n = runner.send('ping', {});
    const pong = await runner.frame('pong', (frame) => frame.message.n === n);
    assert.equal(pong.message.turn?.told, first.message.id);
    assert.equal(runner.frames('refused').length, 1);
    assert.equal(runner.frames('result').length, 0);
    runner.send('approval', decision(turn, second.message.id));
    await runner.result(turn);
  });

  test('the state as it was when asked goes with the request, and the timeout stands still', async () => {
    /** A turn that asks, is told when it has been running for longer than it may, were the time not to stand still, and ends. */
    async function asking(limitMs: number) {
      await using runner = await RunnerHarness.bound(
        sh('echo a > "$BERTH_STATE_DIR/f"; berth-agent approve q > /dev/null; cat "$BERTH_STATE_DIR/f"'),
      );
      const turn = runner.startTurn(null, limitMs);
      await eventually(() => runner.frames('approval').length + runner.frames('result').length > 0);
      const [request] = runner.frames('approval');
      const [state] = runner.frames('state');
      await eventually(async () => {
        const n = runner.send('ping', {});
        const pong = await runner.frame('pong', (frame) => frame.message.n === n);
        return !request || (pong.message.turn?.runningMs ?? 0) > limitMs;
      });
      if (request) {
        runner.send('ack', { through: request.seq });
        runner.send('approval', decision(turn, request.message.id));
      }
      return { limitMs, request, state, result: await runner.result(turn) };
    }
    const { limitMs, request, state, result } = await longEnough(
      asking,
      (asked) => asked.result.outcome === 'Succeeded',
    );
    assert.ok(request && state, JSON.stringify(result));
    assert.deepEqual(request.message.state, { seq: state.seq, digest: state.message.digest });
    assert.deepEqual([result.outcome, result.output, result.state], ['Succeeded', 'a\n', 'Unchanged']);
    assert.ok(request.message.ranMs <= limitMs);
  });

  test('result: wins over what is printed; --error fails the turn', async () => {
    await using runner = await RunnerHarness.bound({
      agent: {
        args: [
          `if [ -n "$FAIL" ]; then berth-agent result --error 'no "luck"'; else echo '{"n":\n[1,2]}' | berth-agent result -; fi; echo noise`,
        ],
        result: 'Envelope',
      },
    });
    assert.deepEqual((await runner.runTurn()).output, { n: [1, 2] });
    await using failing = await RunnerHarness.bound({
      agent: { args: [`berth-agent result --error 'no "luck"'`], result: 'Envelope' },
    });
    const failed = await failing.runTurn();
    assert.deepEqual([failed.outcome, failed.error], ['Failed', { code: 'AgentFailed', message: 'no "luck"' }]);
  });

  test('of a process that an earlier turn left running tells nothing of a later turn, unless that process wants it to', async () => {
    const background = `until [ -e go ]; do sleep 0.02; done
for request in 'event 1' 'result "done"' 'approve q'; do timeout 20 berth-agent $request; echo "exit $?"; done
berth-agent touch; echo "exit $?"
env -u BERTH_TURN berth-agent event '"for all"'; echo "exit $?"; touch told`;
    await using runner = await RunnerHarness.bound(
      sh(`if [ "$BERTH_TURN" = turn-1 ]; then (${background}) > said 2>&1 & echo first
else touch go; until [ -e told ]; do sleep 0.02; done; berth-agent event '"own"'; cat said; fi`),
    );
    assert.equal((await runner.runTurn()).output, 'first\n');
    const { outcome, output } = await runner.runTurn();
    const refused =
      'berth-agent: {"ok":false,"error":{"code":"NoTurn","message":"the turn that the request is for has ended, and another one runs"}}\nexit 3\n';
    assert.deepEqual([outcome, output], ['Succeeded', `${refused.repeat(3)}${'exit 0\n'.repeat(2)}`]);
    assert.deepEqual(runner.frames('approval'), []);
    assert.deepEqual(
      runner.agentEvents().map(({ turn, event }) => [turn, event]),
      [
        ['turn-2', 'for all'],
        ['turn-2', 'own'],
      ],
    );
  });

  test('cannot change the turn by its JSON, and a turn of any name is one string', async () => {
    await using runner = await RunnerHarness.bound(
      sh(`berth-agent event '1,"turn":"other"'; BERTH_TURN='"\\
' berth-agent event 2 2>&1; BERTH_TURN= berth-agent event 3`),
    );
    const { outcome, output } = await runner.runTurn();
    assert.deepEqual([outcome, /"code":"NoTurn"/.test(String(output))], ['Succeeded', true]);
    assert.deepEqual(
      runner.agentEvents().map(({ event }) => event),
      [1, 3],
    );
  });

  test('reports errors by its exit code: usage 2, refused 3', async () => {
    await using runner = await RunnerHarness.bound(
      sh(`exec 2>&1
berth-agent event; echo "$?"
berth-agent event '{"a":'; echo "$?"
berth-agent event "\\"$(head -c 20000 /dev/zero | tr '\\0' x)\\""; echo "$?"
berth-agent approve ''; echo "$?"
head -c 17000000 /dev/zero | tr '\\0' 1 | berth-agent result -; echo "$?"
BERTH_SOCKET= berth-agent touch; echo "$?"
berth-agent touch; echo "$?"`),
    );
    const output = String((await runner.runTurn()).output);
    assert.deepEqual(output.match(/^\d$/gm), ['2', '3', '3', '3', '3', '3', '0']);
    assert.match(output, /"code":"InvalidRequest","message":"the request is not one line of JSON"/);
    assert.match(output, /"code":"TooLarge","message":"the event has 20002 bytes as JSON; at most 16384 are taken"/);
    assert.match(output, /\\"prompt\\" is empty/);
    assert.match(output, /"code":"InvalidRequest","message":"a request of more than \d+ bytes"/);
    assert.match(output, /BERTH_SOCKET is not set/);
  });
});

describe('the socket', () => {
  test('is its user’s alone', async () => {
    await using runner = await RunnerHarness.bound();
    await eventually(() => existsSync(socketOf(runner)));
    assert.equal(lstatSync(socketOf(runner)).mode & 0o777, 0o600);
    assert.equal(lstatSync(runner.directory('run')).mode & 0o777, 0o700);
  });

  test('without a turn only touch is taken; any bytes get an answer', async () => {
    await using runner = await RunnerHarness.bound();
    await eventually(() => existsSync(socketOf(runner)));
    const noTurn = { ok: false, error: { code: 'NoTurn', message: 'no turn runs' } };
    const asked =
      '{"do":"touch"}\n\n{"do":"event","event":1}\n{"do":"approve","prompt":"q"}\n[]\n{"do":"dance"}\n\xff\n';
    const got = (await answers(runner, Buffer.from(asked, 'latin1'), 6)) as { ok: boolean; error: { code: string } }[];
    assert.deepEqual(got.slice(0, 3), [{ ok: true }, noTurn, noTurn]);
    assert.deepEqual(
      got.slice(3).map(({ error }) => error.code),
      Array(3).fill('InvalidRequest'),
    );
  });

  test('an asker that goes away is asked for no more; the same question replaces it, however soon it is asked', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['sleep 600'], result: 'Text' } });
    const turn = runner.startTurn();
    await runner.frame('started');
    const gone = connect(socketOf(runner), () => gone.write('{"do":"approve","prompt":"q"}\n'));
    const request = await runner.frame('approval');
    const replies: unknown[] = [];
    const again = connect(socketOf(runner), () => again.write('{"do":"touch"}\n')).setEncoding('utf8');
    again.on('data', (text: string) => replies.push(JSON.parse(text)));
    await eventually(() => replies.length === 1, { what: 'the first reply' });
    // The runner sees at the same moment that the one has gone and that the other asks.
    runner.child.kill('SIGSTOP');
    gone.destroy();
    await once(gone, 'close');
    await new Promise((resolve) => again.write('{"do":"approve","prompt":"q"}\n', resolve));
    runner.child.kill('SIGCONT');
    // A later connection is read later. The reply on it shows that the runner has read the request.
    await answers(runner, '{"do":"touch"}\n', 1);
    runner.send('approval', decision(turn, request.message.id));
    await eventually(() => replies.length === 2, { what: 'the decision' });
    const approval = { requestId: request.message.id, decision: 'Approve' };
    assert.deepEqual(replies, [{ ok: true }, { ok: true, decision: 'Approve', approval }]);
    again.destroy();
    assert.equal(runner.frames('approval').length, 1);
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    await runner.result(turn);
  });

  test('a suspension stops the process that waits, and the decision begins another', async () => {
    const ask = `printf '{"do":"approve","prompt":"q"}\\n' | timeout 20 python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["BERTH_SOCKET"]); s.sendall(sys.stdin.buffer.read()); print(s.recv(9999))'`;
    await using runner = await RunnerHarness.bound({
      agent: {
        args: [`echo leg; if [ -n "$BERTH_APPROVAL" ]; then echo "$BERTH_APPROVAL"; else ${ask}; fi`],
        result: 'Text',
      },
    });
    const turn = runner.startTurn();
    const request = await runner.frame('approval');
    runner.send('ack', { through: request.seq });
    runner.send('suspend', {});
    runner.send('snapshot', {});
    await runner.frame('state', (frame) => frame.message.turn === undefined);
    assert.equal(runner.frames('result').length, 0);
    const n = runner.send('ping', {});
    assert.equal((await runner.frame('pong', (frame) => frame.message.n === n)).message.turn, undefined);
    const refused = runner.send('approval', decision(turn, request.message.id));
    assert.equal((await runner.refusal(refused)).code, 'Suspended');
    runner.send('resume', {});
    runner.send('approval', decision(turn, request.message.id));
    const { output } = await runner.result(turn);
    assert.equal(output, `leg\n{"requestId":"${request.message.id}","decision":"Approve"}\n`);
  });
});

test('a pod that is told to stop while its turn waits does not end the turn', async () => {
  await using runner = await RunnerHarness.bound({ agent: { args: ['berth-agent approve q'], result: 'Text' } });
  runner.startTurn();
  await runner.frame('approval');
  runner.child.kill('SIGTERM');
  await runner.frame('bye');
  assert.deepEqual(runner.frames('result'), []);
  await eventually(() => runner.processes().length === 0, { what: 'no process is left' });
});

test('the Python module does the same, in one file that needs nothing but Python', async () => {
  const program = `
import sys; sys.path.insert(0, '${PYTHON}')
import berth_agent
berth_agent.event({'step': 1}); berth_agent.touch()
decision = berth_agent.approve('Go?', ['x'])
try:
    berth_agent.event('x' * 20000)
except berth_agent.AgentError as problem:
    berth_agent.result({'decision': decision, 'code': problem.code}, turn_count=3, metadata={'m': 1})
`;
  await using runner = await RunnerHarness.bound({
    agent: { command: ['python3', '-I', '-S', '-c', program], args: [] },
  });
  const turn = runner.startTurn();
  const request = await runner.frame('approval');
  assert.deepEqual(request.message.payload, ['x']);
  runner.send('approval', decision(turn, request.message.id));
  const result = await runner.result(turn);
  assert.deepEqual(result.output, {
    decision: { requestId: request.message.id, decision: 'Approve' },
    code: 'TooLarge',
  });
  assert.deepEqual([result.turnCount, result.metadata], [3, { m: 1 }]);
  assert.deepEqual(
    runner.agentEvents().map(({ event }) => event),
    [{ step: 1 }],
  );
});

test('the Python module of a process that an earlier turn left running tells nothing of a later turn', async () => {
  const program = `
import os, sys, time; sys.path.insert(0, '${PYTHON}')
import berth_agent
if os.environ['BERTH_TURN'] == 'turn-1' and os.fork() == 0:
    while not os.path.exists('go'): time.sleep(0.02)
    try: berth_agent.result('done')
    except berth_agent.AgentError as problem: said = problem.code
    else: said = 'taken'
    berth_agent.touch()
    os.environ.pop('BERTH_TURN')
    berth_agent.event('for all')
    with open('said', 'w') as file: file.write(said)
    os.rename('said', 'told')
elif os.environ['BERTH_TURN'] == 'turn-2':
    open('go', 'w').close()
    while not os.path.exists('told'): time.sleep(0.02)
    print(open('told').read())
`;
  await using runner = await RunnerHarness.bound({
    agent: { command: ['python3', '-I', '-S', '-c', program], args: [], result: 'Text' },
  });
  await runner.runTurn();
  assert.equal((await runner.runTurn()).output, 'NoTurn\n');
  assert.deepEqual(
    runner.agentEvents().map(({ turn, event }) => [turn, event]),
    [['turn-2', 'for all']],
  );
});

test('the Python module fails a turn, and says where there is no runner', async () => {
  const program = `
import os, sys; sys.path.insert(0, '${PYTHON}')
import berth_agent
berth_agent.error('no "luck"')
try: berth_agent.result('x' * 17000000)
except berth_agent.AgentError as problem: print(problem, file=sys.stderr)
for path in ('/no/such/socket', ''):
    os.environ['BERTH_SOCKET'] = path
    try: berth_agent.touch()
    except berth_agent.AgentError as problem: print(problem, file=sys.stderr)
`;
  await using runner = await RunnerHarness.bound({
    agent: { command: ['python3', '-I', '-S', '-c', program], args: [] },
  });
  const { outcome, error } = await runner.runTurn();
  assert.deepEqual([outcome, error], ['Failed', { code: 'AgentFailed', message: 'no "luck"' }]);
  const log = (await runner.frame('log')).message.text.split('\n');
  assert.match(log[0] ?? '', /^InvalidRequest: a request of more than \d+ bytes$/);
  assert.match(log[1] ?? '', /^NoRunner: the runner does not answer at \/no\/such\/socket: .*No such file/);
  assert.equal(log[2], 'NoRunner: BERTH_SOCKET is not set: this is no session of Berth');
});
