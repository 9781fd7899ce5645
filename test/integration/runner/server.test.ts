import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { unpackDirectory } from '../../../runner/state/unpack.ts';
import { eventually } from '../../support/eventually.ts';
import { exists, isAsleep } from '../../support/processes.ts';
import { skipIf } from '../../support/requires.ts';
import { type HarnessOptions, hasKeeper, noKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { serverScript } from '../../support/servers.ts';

type AgentOptions = HarnessOptions['agent'];

const serving = (handle: string, options: HarnessOptions & { server?: NonNullable<AgentOptions>['server'] } = {}) => {
  const { server, ...rest } = options;
  const agent = {
    driver: 'Server' as const,
    command: [process.execPath, '-e'],
    args: [serverScript(handle)],
    ...(server && { server }),
  };
  return RunnerHarness.bound({ ...rest, agent });
};

/** Resolves to the text of a turn's log. */
async function logOf(runner: RunnerHarness, turn: string): Promise<string> {
  return (await runner.frame('log', ({ message }) => message.turn === turn)).message.text;
}

describe('one process, many turns', () => {
  test('the same process answers turn after turn, with the request’s method and parameters', async () => {
    await using runner = await serving('respond(id, { pid: process.pid, served, method, parameters, input });');
    const first = (await runner.runTurn({ method: 'add', parameters: { a: 1 } })).output as Record<string, unknown>;
    const second = (await runner.runTurn('plain')).output as Record<string, unknown>;
    assert.deepEqual([first.served, first.method, first.parameters], [1, 'add', { a: 1 }]);
    assert.deepEqual([second.served, second.input, second.method], [2, 'plain', undefined]);
    assert.equal(first.pid, second.pid);
    assert.deepEqual(
      runner.frames('started').map((frame) => frame.message.pid),
      [first.pid, first.pid],
    );
  });

  test('all that was written to stderr before the answer is in the log of its turn', async () => {
    // console.error would hand the text to the event loop, which may write it after the answer.
    const handle = `
const text = Buffer.from((input + '.'.repeat(99) + '\\n').repeat(9000) + 'last ' + input + '\\n');
for (let at = 0; at < text.length; ) at += fs.writeSync(2, text, at);
respond(id, input);`;
    await using runner = await serving(handle);
    for (const input of ['a', 'b', 'c']) {
      const { turn } = await runner.runTurn(input);
      const lines = (await logOf(runner, turn)).split('\n').filter((line) => line.startsWith(`${input}...`));
      assert.equal(lines.length, 9000);
      assert.match(await logOf(runner, turn), new RegExp(`^last ${input}$`, 'm'));
    }
  });

  test('a request has type, a unique id, method, parameters and timestamp', async () => {
    await using runner = await serving('respond(id, request);');
    const [a, b] = [await runner.runTurn({ method: 'm' }), await runner.runTurn({ method: 'm' })];
    const request = a.output as Record<string, unknown>;
    assert.deepEqual([request.type, request.method, request.parameters], ['request', 'm', {}]);
    assert.match(String(request.timestamp), /^\d{4}-\d\d-\d\dT/);
    assert.notEqual(request.id, (b.output as Record<string, unknown>).id);
  });

  test('an invalid method or parameters are refused by name before anything starts', async () => {
    await using runner = await serving('respond(id, 1);');
    for (const [input, field] of [
      [{ method: '' }, /^input\.method must be/],
      [{ method: 7 }, /^input\.method must be/],
      [{ method: 'm', parameters: 'x' }, /^input\.parameters must be/],
    ] as const) {
      const { error } = await runner.runTurn(input);
      assert.equal(error?.code, 'InvalidInput');
      assert.match(error?.message ?? '', field);
    }
    assert.equal(runner.frames('started').length, 0);
  });

  test('a response laid out over many lines, between stray prints, is one response', async () => {
    const handle = `
console.log('thinking {about: "it"}');
console.log('{ not json');
console.error('a warning');
process.stdout.write(JSON.stringify({ type: 'response', id, timestamp: stamp(), result: { text: 'a}\\n{"b' } }, null, 2) + ' tail\\n');`;
    await using runner = await serving(handle);
    const turn = runner.startTurn();
    assert.deepEqual((await runner.result(turn)).output, { text: 'a}\n{"b' });
    const log = await logOf(runner, turn);
    for (const text of ['thinking {about: "it"}\n', '{ not json\n', 'a warning\n', ' tail\n'])
      assert.ok(log.includes(text), log);
    assert.ok(!log.includes('"response"'), log);
  });

  test('a response cut into pieces, and one without a line feed, are found', async () => {
    const handle = `
const text = JSON.stringify({ type: 'response', id, timestamp: stamp(), result: 'é{}' });
for (const byte of Buffer.from(text)) { process.stdout.write(Buffer.of(byte)); if (byte % 7 === 0) await sleep(1); }`;
    await using runner = await serving(handle);
    assert.equal((await runner.runTurn()).output, 'é{}');
    assert.equal((await runner.runTurn()).output, 'é{}');
  });

  test('events are told while the server works, and are text of their turn and no result', async () => {
    // The server answers when told to: its event has arrived by then.
    const handle = `
say({ type: 'event', progress: 0.5, note: 'token=abcdef' }); say({ type: 'event', id: 'of-another', lost: true });
while (!fs.existsSync(process.env.BERTH_STATE_DIR + '/go')) await sleep(10);
respond(id, 'done');`;
    await using runner = await serving(handle);
    const turn = runner.startTurn();
    const event = await eventually(() => runner.agentEvents()[0]?.event, { what: 'the event' });
    assert.deepEqual(event, { type: 'event', progress: 0.5, note: 'token=abcdef' });
    assert.equal(runner.frames('result').length, 0);
    writeFileSync(join(runner.directory('state'), 'go'), '');
    assert.equal((await runner.result(turn)).output, 'done');
    const log = await logOf(runner, turn);
    assert.match(log, /^\[berth event\] .*"progress":0\.5/m);
    assert.match(log, /^\{"type":"event","id":"of-another","lost":true\}$/m, 'one of another request is text');
    assert.equal(runner.agentEvents().length, 1);
  });

  test('turn_count and metadata of a response are the turn’s', async () => {
    const handle = `say({ type: 'response', id, timestamp: stamp(), result: 1, turn_count: 3, metadata: { m: 'key=abcdefgh' } });`;
    await using runner = await serving(handle);
    const { turnCount, metadata } = await runner.runTurn();
    assert.deepEqual([turnCount, metadata], [3, { m: 'key=abcdefgh' }]);
  });

  test('the state directory is stored after each turn while the server lives on', async () => {
    const handle = `fs.writeFileSync(process.env.BERTH_STATE_DIR + '/n', String(served)); respond(id, process.pid);`;
    await using runner = await serving(handle);
    const first = await runner.runTurn();
    const second = await runner.runTurn();
    assert.equal(first.output, second.output);
    const states = runner.frames('state');
    assert.equal(states.length, 2);
    const target = join(runner.directory('tmp'), 'unpacked');
    const last = states[1] as (typeof states)[number];
    await unpackDirectory(target, runner.openState(last), last.message.digest);
    assert.equal(readFileSync(join(target, 'n'), 'utf8'), '2');
  });
});

describe('rules for a response', () => {
  const cases: [string, string, RegExp][] = [
    ['no timestamp', `{ type: 'response', id, result: 1 }`, /"timestamp" must be a time/],
    [
      'a timestamp that is none',
      `{ type: 'response', id, timestamp: 'noon', result: 1 }`,
      /"timestamp" must be a time/,
    ],
    [
      'a date as people write it',
      `{ type: 'response', id, timestamp: '21 Nov 2026', result: 1 }`,
      /"timestamp" must be a time such as 2026-01-01T12:00:00Z; it is another string/,
    ],
    ['neither result nor error', `{ type: 'response', id, timestamp: stamp() }`, /neither "result" nor "error"/],
    ['both', `{ type: 'response', id, timestamp: stamp(), result: 1, error: 'x' }`, /both "result" and "error"/],
    [
      'an error of another kind',
      `{ type: 'response', id, timestamp: stamp(), error: 5 }`,
      /"error" must be a string, or/,
    ],
    ['no id', `{ type: 'response', timestamp: stamp(), result: 1 }`, /"id" must be the request's; it is absent/],
    [
      'metadata that is no object',
      `{ type: 'response', id, timestamp: stamp(), result: 1, metadata: [] }`,
      /"metadata" must be an object/,
    ],
  ];
  for (const [what, message, expected] of cases) {
    test(`a response with ${what} fails the turn with what is wrong, and the server serves on`, async () => {
      await using runner = await serving(`if (input === 'good') respond(id, served); else say(${message});`);
      const { error } = await runner.runTurn('bad');
      assert.equal(error?.code, 'InvalidResult');
      assert.match(error?.message ?? '', expected);
      assert.equal((await runner.runTurn('good')).output, 2);
    });
  }

  for (const [what, text] of [
    ['NaN', `'{"type":"response","id":"' + id + '","timestamp":"' + stamp() + '","result":NaN}'`],
    ['the repr of a Python dictionary', `"{'type': 'response', 'id': '" + id + "', 'result': None}"`],
  ] as const) {
    test(`a response that is no JSON is an error that says so: ${what}`, async () => {
      await using runner = await serving(`console.log(${text});`);
      const { error } = await runner.runTurn();
      assert.deepEqual(
        [error?.code, error?.message],
        ['InvalidResult', 'the response of the agent: it is not valid JSON'],
      );
    });
  }

  test('an error response is the turn’s error, as a string or with code and message', async () => {
    const handle = `say({ type: 'response', id, timestamp: stamp(), error: input ? { code: 'E7', message: 'token=abcdef' } : 'plain' });`;
    await using runner = await serving(handle);
    assert.deepEqual((await runner.runTurn(false)).error, { code: 'AgentFailed', message: 'plain' });
    assert.deepEqual((await runner.runTurn(true)).error, { code: 'AgentFailed', message: 'E7: token=[REDACTED]' });
  });

  test('a late response of an earlier request is never taken for this one’s', async () => {
    const handle = `
if (input === 'slow') { globalThis.late = id; respond('no such request', 'stray'); setTimeout(() => respond(id, 'in time'), 50); return; }
respond(late, 'late'); respond(late, 'later'); say({ type: 'event', id: late, old: true });
await sleep(50); respond(id, 'own'); respond(id, 'twice');`;
    await using runner = await serving(handle);
    assert.equal((await runner.runTurn('slow')).output, 'in time');
    const turn = runner.startTurn();
    assert.equal((await runner.result(turn)).output, 'own');
    assert.match(await logOf(runner, turn), /a response to another request than the present one is left out/);
  });

  test('an output over 8 MiB is refused, one object over 16 MiB does not exhaust the runner', async () => {
    const handle = `respond(id, 'x'.repeat(input));`;
    await using runner = await serving(handle);
    for (const size of [9 * 1024 * 1024, 20 * 1024 * 1024]) {
      assert.equal((await runner.runTurn(size)).error?.code, 'OutputTooLarge');
    }
    assert.equal((await runner.runTurn(3)).output, 'xxx');
  });
});

describe('a server that ends', () => {
  test('a crash fails the turn in flight with exit code and stderr, and the next turn has a new server', async () => {
    const handle = `if (input === 'die') { console.error('no memory, key=abcdefgh'); process.exit(3); } respond(id, process.pid);`;
    await using runner = await serving(handle);
    const before = (await runner.runTurn()).output;
    const { error, exitCode } = await runner.runTurn('die');
    assert.equal(exitCode, 3);
    assert.match(
      error?.message ?? '',
      /^the server ended before it answered: exit code 3\nno memory, key=\[REDACTED\]/,
    );
    assert.equal(error?.code, 'AgentFailed');
    const after = await runner.runTurn();
    assert.equal(after.outcome, 'Succeeded');
    assert.notEqual(after.output, before);
  });

  /** A server that ends at its request while the runner is held, and leaves a process that writes on. */
  async function endsUnseen(
    script: string,
    code: number,
    last: string,
  ): Promise<{ runner: RunnerHarness; turn: string }> {
    const handle = `
const { BERTH_STATE_DIR: folder } = process.env;
fs.writeFileSync(folder + '/asked', '');
while (!fs.existsSync(folder + '/go')) await sleep(10);
// The shell may start after the server has ended, and would have another parent then.
const wait = 'while kill -0 $2; do sleep 0.01; done 2>/dev/null; ';
spawn('sh', ['-c', wait + ${JSON.stringify(script)} + '; touch $BERTH_STATE_DIR/said', 'sh', ${last}, String(process.pid)], { stdio: 'inherit' });
process.exit(${code});`;
    const runner = await serving(handle);
    const turn = runner.startTurn();
    const file = (name: string) => join(runner.directory('state'), name);
    await eventually(() => existsSync(file('asked')), { what: 'the request' });
    const holder = hasKeeper && Number(readFileSync(`/proc/${runner.pid}/task/${runner.pid}/children`, 'utf8'));
    runner.child.kill('SIGSTOP');
    writeFileSync(file('go'), '');
    await eventually(() => existsSync(file('said')), { what: 'the last words' });
    // A keeper that sleeps has handed them on: a runner waits for those of others only for a moment.
    if (holder) await eventually(() => isAsleep(holder), { what: 'all that is to be read' });
    runner.child.kill('SIGCONT');
    return { runner, turn };
  }

  test('the last text on stderr is read before the end is reported, even if it arrives after the end', async () => {
    const { runner: ended, turn } = await endsUnseen('echo last words >&2', 3, '""');
    await using runner = ended;
    const { error } = await runner.result(turn);
    assert.match(error?.message ?? '', /^the server ended before it answered: exit code 3\nlast words\n\[berth: /);
    assert.match(await logOf(runner, turn), /last words\n\[berth: the server ended: exit code 3/);
  });

  test('an end with exit code 0 and one by a signal are told as what they are', async () => {
    const handle = `if (input) process.kill(process.pid, input); else process.exit(0);`;
    await using runner = await serving(handle);
    assert.match((await runner.runTurn()).error?.message ?? '', /^the server ended before it answered: exit code 0/);
    const killed = await runner.runTurn('SIGSEGV');
    assert.equal(killed.signal, 'SIGSEGV');
    assert.match(killed.error?.message ?? '', /killed by SIGSEGV/);
  });

  test('an answer given just before the end counts', async () => {
    const handle = `process.stdout.write(JSON.stringify({ type: 'response', id, timestamp: stamp(), result: 'last' }) + '\\n', () => process.exit(1));`;
    await using runner = await serving(handle);
    assert.equal((await runner.runTurn()).output, 'last');
  });

  test('a result given over the socket just before the end counts, too', async () => {
    const handle = `
const socket = require('node:net').connect(process.env.BERTH_SOCKET);
socket.write(JSON.stringify({ do: 'result', result: { status: 'success', output: 'given' } }) + '\\n');
socket.once('data', () => process.exit(0));`;
    await using runner = await serving(handle);
    const { outcome, output } = await runner.runTurn();
    assert.deepEqual([outcome, output], ['Succeeded', 'given']);
  });

  test('an answer that is still on its way when the process ends counts, too', async () => {
    const answer = `JSON.stringify({ type: 'response', id, timestamp: stamp(), result: 'late' })`;
    const { runner: ended, turn } = await endsUnseen('echo "$1"', 0, answer);
    await using runner = ended;
    assert.equal((await runner.result(turn)).output, 'late');
  });

  test('is started with growing pauses if it crashes again and again', async () => {
    // Start times are those of a monotonic clock, which all processes share.
    const handle = `fs.appendFileSync(process.env.BERTH_STATE_DIR + '/starts', process.hrtime.bigint() / 1000000n + '\\n'); process.exit(1);`;
    await using runner = await serving(handle);
    for (let i = 0; i < 5; i++) assert.equal((await runner.runTurn()).outcome, 'Failed');
    const text = readFileSync(join(runner.directory('state'), 'starts'), 'utf8');
    const starts = text.trim().split('\n').map(Number);
    const pauses = starts.slice(1).map((at, i) => at - (starts[i] as number));
    // Starting a process takes time as well. The test proves that no pause is shorter than the back-off.
    for (const [i, least] of [100, 200, 400, 800].entries()) assert.ok((pauses[i] as number) >= least, `${pauses}`);
  });

  test('is started for the next turn if it ends between turns', async () => {
    const handle = `respond(id, process.pid); setTimeout(() => process.exit(0), 20);`;
    await using runner = await serving(handle);
    const first = await runner.runTurn();
    await eventually(() => runner.stderr.includes('[berth: the server ended: exit code 0;'), { what: 'the end' });
    const second = await runner.runTurn();
    assert.notEqual(first.output, second.output);
  });

  test(
    'what a crash leaves behind has ended before the next turn starts, also where it ignores SIGTERM',
    skipIf(noKeeper),
    async () => {
      const handle = `
const deaf = process.env.BERTH_STATE_DIR + '/deaf';
if (input === 'die') {
  spawn('sh', ['-c', 'trap "" TERM; echo $$ > $BERTH_STATE_DIR/new; mv $BERTH_STATE_DIR/new $BERTH_STATE_DIR/deaf; exec sleep 600'], { stdio: 'ignore' });
  while (!fs.existsSync(deaf)) await sleep(10);
  process.exit(3);
}
respond(id, fs.existsSync('/proc/' + fs.readFileSync(deaf, 'utf8').trim()));`;
      await using runner = await serving(handle);
      assert.equal((await runner.runTurn('die')).exitCode, 3);
      const { outcome, output, error } = await runner.runTurn();
      assert.deepEqual([outcome, output], ['Succeeded', false], JSON.stringify(error));
    },
  );

  test('a program that cannot be found fails the turn, not the session', async () => {
    const agent = { driver: 'Server' as const, command: ['./late'], args: [] };
    await using runner = await RunnerHarness.bound({ agent });
    assert.equal((await runner.runTurn()).error?.code, 'CommandNotFound');
    const program = `#!${process.execPath}\n${serverScript('respond(id, 1);')}`;
    writeFileSync(join(runner.directory('work'), 'late'), program, { mode: 0o755 });
    assert.equal((await runner.runTurn()).output, 1);
  });
});

test('an argument that cannot be given is named as the user’s own list counts it', async () => {
  const agent = { driver: 'Server' as const, command: ['sh', '-c'], args: ['true', 'x'.repeat(131_072)] };
  await using runner = await RunnerHarness.bound({ agent });
  const { error } = await runner.runTurn();
  assert.equal(error?.code, 'InvalidInput');
  assert.match(error?.message ?? '', /^agent\.args\[1\] has 131072 bytes/);
});

describe('a turn that is stopped', () => {
  const deaf = `process.on('SIGTERM', () => { fs.writeFileSync(process.env.BERTH_STATE_DIR + '/termed', ''); process.exit(0); });
if (input === 'hang') { spawn('sleep', ['600']); return; } respond(id, process.pid);`;

  test('by its timeout: the server and its children get SIGTERM, the next turn has a new server', async () => {
    await using runner = await serving(deaf);
    const before = (await runner.runTurn()).output;
    const result = await runner.runTurn('hang', 1000);
    assert.deepEqual([result.outcome, result.error?.code], ['TimedOut', 'TurnTimedOut']);
    assert.ok(existsSync(join(runner.directory('state'), 'termed')));
    assert.deepEqual(runner.processes(), []);
    const after = await runner.runTurn();
    assert.equal(after.outcome, 'Succeeded');
    assert.notEqual(after.output, before);
  });

  test('by cancel, even when it ignores SIGTERM: SIGKILL follows', async () => {
    const handle = `process.on('SIGTERM', () => {}); console.error('here'); if (!input) respond(id, 1);`;
    await using runner = await serving(handle);
    const turn = runner.startTurn('hang');
    await eventually(() => runner.stderr.includes('here'), { what: 'the server' });
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    assert.equal((await runner.result(turn)).outcome, 'Cancelled');
    assert.deepEqual(runner.processes(), []);
    assert.equal((await runner.runTurn()).output, 1);
  });
});

describe('processes that an earlier turn left', skipIf(noKeeper), () => {
  const handle = `
if (input === 'leave') {
  globalThis.child = spawn('sleep', ['600'], { detached: true });
  while (!fs.readFileSync('/proc/' + child.pid + '/cmdline').length);
}
if (input === 'end') { child.kill(); await new Promise((resolve) => child.on('exit', resolve)); }
respond(id, process.pid);`;

  test('never run beside the next turn: the server is started again, and they are gone', async () => {
    await using runner = await serving(handle);
    const first = await runner.runTurn('leave');
    assert.match(first.leftRunning.map(({ command }) => command).join(), /sleep 600/);
    const turn = runner.startTurn();
    const second = await runner.result(turn);
    assert.equal(second.outcome, 'Succeeded');
    assert.notEqual(second.output, first.output);
    assert.match(await logOf(runner, turn), /processes of an earlier turn still run: \d+ sleep 600/);
    assert.deepEqual(
      runner.processes().filter(({ command }) => command.startsWith('sleep')),
      [],
    );
  });

  test('are named by the beginning of their command lines', async () => {
    const zeros = Array(1000).fill('0');
    const many = `
if (input) {
  const { pid } = spawn('sleep', ${JSON.stringify(['600', ...zeros])}, { detached: true });
  while (!fs.readFileSync('/proc/' + pid + '/cmdline').length);
}
respond(id, 1);`;
    await using runner = await serving(many);
    await runner.runTurn('leave');
    const turn = runner.startTurn();
    await runner.result(turn);
    const named = /still run: \d+ (.*)/.exec(await logOf(runner, turn))?.[1] ?? '';
    assert.match(named, /^sleep 600 0 0 /);
    assert.ok(named.length < 300, named);
  });

  test('may stay where the class says so', async () => {
    await using runner = await serving(handle, { server: { leftovers: 'Allow' } });
    const first = await runner.runTurn('leave');
    const second = await runner.runTurn();
    assert.equal(second.output, first.output);
    assert.equal(runner.processes().filter(({ command }) => command.startsWith('sleep')).length, 1);
    assert.equal((await runner.runTurn('end')).output, first.output);
  });

  test('cost the server nothing when they have ended by then', async () => {
    const short = `respond(id, [process.pid, spawn('sleep', ['0.2'], { detached: true }).pid]);`;
    await using runner = await serving(short);
    const [server, child = 0] = (await runner.runTurn()).output as number[];
    await eventually(() => !exists(child), { what: 'the end of the child' });
    assert.equal(((await runner.runTurn()).output as number[])[0], server);
  });
});

test('no process of a server is left when the session ends', async () => {
  const runner = await serving(`spawn('sleep', ['600'], { detached: true }); respond(id, 1);`);
  await runner.runTurn();
  assert.notEqual(runner.processes().length, 0);
  runner.send('shutdown', { graceMs: 500 });
  await runner.exited;
  await eventually(() => runner.processes().length === 0, { what: 'everybody gone' });
  await runner[Symbol.asyncDispose]();
});

describe('a response that opens a brace and does not close it', () => {
  const open = (fields: string) => `process.stdout.write('{"type":"response","id":"' + id + '",${fields}\\n');`;

  test('is told as such before the timeout, and the next turn has its own response', async () => {
    const handle = `if (input === 'open') { ${open('"result":[')} respond(id, 'too late'); } else respond(id, input);`;
    await using runner = await serving(handle);
    const { outcome, error } = await runner.runTurn('open');
    assert.deepEqual([outcome, error?.code], ['Failed', 'InvalidResult']);
    assert.match(error?.message ?? '', /its object is opened and not closed/);
    assert.equal((await runner.runTurn('next')).output, 'next');
  });

  test('does not hide the response behind text that only begins like an object', async () => {
    await using runner = await serving(`console.log('{"thinking": ['); respond(id, input);`);
    assert.equal((await runner.runTurn('first')).output, 'first');
    assert.equal((await runner.runTurn('second')).output, 'second');
  });

  test('left open between turns takes nothing of the next one', async () => {
    const after = `console.log('{"left": [');`;
    await using runner = await serving(`respond(id, input); if (input === 'first') ${after}`);
    assert.equal((await runner.runTurn('first')).output, 'first');
    assert.equal((await runner.runTurn('second')).output, 'second');
  });

  test('and closes it after a pause is one response, also with lines in it that resemble responses', async () => {
    const handle = `
const other = JSON.stringify({ type: 'response', id: 'another', timestamp: stamp(), result: 'wrong' });
const text = JSON.stringify({ type: 'response', id, timestamp: stamp(), result: 'wrong' });
process.stdout.write('{"type":"response","id":"' + id + '","timestamp":"' + stamp() + '","result":[\\n' + other + ',\\n');
await sleep(1500);
process.stdout.write(JSON.stringify(text) + ']\\n}\\n');`;
    await using runner = await serving(handle);
    const output = (await runner.runTurn('x')).output as [{ result: string }, string];
    assert.equal(output[0].result, 'wrong');
    assert.match(output[1], /^\{"type":"response"/);
  });
});
