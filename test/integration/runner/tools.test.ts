import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { AgentSpec, ToolSpec } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';
import { type HarnessOptions, noKeeper, RunnerHarness } from '../../support/runner-harness.ts';

interface Result {
  call_id: string;
  tool: string;
  status: 'success' | 'error';
  result?: unknown;
  error?: { code: string; message: string };
  duration_ms: number;
}

const ADD = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
  additionalProperties: false,
};

/** A tool that is a line of shell. */
const sh = (name: string, script: string, more: Partial<ToolSpec> = {}): ToolSpec => ({
  name,
  description: `the ${name} of the test`,
  parameters: { type: 'object' },
  command: ['/bin/bash', '-c', script],
  timeoutMs: 30_000,
  ...more,
});

const TOOLS = [
  sh('add', `node -p 'const { parameters } = JSON.parse(require("fs").readFileSync(0)); parameters.a + parameters.b'`, {
    parameters: ADD,
    description: 'Adds two numbers',
  }),
  sh('request', 'cat'),
  sh('slow', 'echo begun >&2; sleep 600', { timeoutMs: 300 }),
  sh('deaf', 'trap "" TERM; sleep 600 & sleep 600', { timeoutMs: 300 }),
  sh('crash', 'echo last words >&2; kill -SEGV $$'),
  sh('killed', 'kill -KILL $$'),
  sh('fails', 'echo no such thing, key=abcdefgh >&2; exit 3'),
  sh('noise', 'echo {oops'),
  sh('leaves', 'sleep 600 & setsid sleep 600 & echo 1'),
  sh('pid', 'echo $$'),
  sh('nap', 'touch $BERTH_STATE_DIR/nap-$$; until [ -e $BERTH_STATE_DIR/go ]; do sleep 0.02; done; echo 1'),
  sh(
    'secret',
    'for i in 1 2 3 4 5 6 7 8; do printf correct- >&2; sleep 0.01; printf horse >&2; sleep 0.01; echo >&2; done; echo 1',
  ),
  sh('large', 'head -c 3000000 /dev/zero | tr "\\0" x | sed "s/.*/\\"&\\"/"'),
];

const tools = (options: HarnessOptions & { agent?: Partial<AgentSpec> } = {}) =>
  RunnerHarness.bound({
    ...options,
    agent: { driver: 'Tools', command: [], args: [], result: 'Json', tools: TOOLS, maxParallel: 4, ...options.agent },
  });

async function call(runner: RunnerHarness, tool: string, args: unknown = {}): Promise<Result> {
  const result = await runner.runTurn({ tool, args, call_id: 'c1' });
  assert.equal(result.outcome, 'Succeeded', JSON.stringify(result.error));
  return result.output as Result;
}

describe('a tool call', () => {
  test('has its result, in a fresh process each time', async () => {
    await using runner = await tools();
    const { duration_ms: duration, ...rest } = await call(runner, 'add', { a: 1, b: 2 });
    assert.deepEqual(rest, { call_id: 'c1', tool: 'add', status: 'success', result: 3 });
    assert.ok(duration > 0);
    assert.notEqual((await call(runner, 'pid')).result, (await call(runner, 'pid')).result);
  });

  test('gets a request with method, parameters, tool and call_id', async () => {
    await using runner = await tools();
    const request = (await call(runner, 'request', { q: 1 })).result as Record<string, unknown>;
    assert.deepEqual(
      [request.type, request.method, request.parameters, request.tool, request.call_id],
      ['request', 'request', { q: 1 }, 'request', 'c1'],
    );
  });

  test('of a method goes to the agent’s own program', async () => {
    const agent = {
      command: ['/bin/bash', '-c'],
      args: [`node -p 'JSON.stringify(JSON.parse(require("fs").readFileSync(0)).method)'`],
      tools: [
        { name: 'find', description: '', parameters: { type: 'object' }, method: 'search.run', timeoutMs: 30_000 },
      ],
    };
    await using runner = await tools({ agent });
    assert.equal((await call(runner, 'find')).result, 'search.run');
  });

  test('can have its arguments as arguments, which no shell sees', async () => {
    const echo: ToolSpec = {
      name: 'echo',
      description: '',
      parameters: { type: 'object' },
      command: ['/bin/echo', '--', '$(INPUT.text)', '$(SESSION_UID)'],
      timeoutMs: 30_000,
    };
    await using runner = await tools({ agent: { tools: [echo], input: 'Args', result: 'Text' } });
    const text = '$(id); `id` "';
    assert.equal((await call(runner, 'echo', { text })).result, `-- ${text} ${runner.session.uid}\n`);
    const missing = await call(runner, 'echo');
    assert.deepEqual([missing.error?.code, /INPUT\.text/.test(missing.error?.message ?? '')], ['InvalidInput', true]);
  });

  test('without arguments runs beside tools that have them as arguments', async () => {
    const tool = (name: string, command: string[], parameters: ToolSpec['parameters']): ToolSpec => ({
      name,
      description: '',
      parameters,
      command,
      timeoutMs: 30_000,
    });
    const agent = {
      input: 'Args' as const,
      result: 'Text' as const,
      tools: [
        tool('echo', ['/bin/echo', '--', '$(INPUT.text)'], { type: 'object', properties: { text: {} } }),
        tool('hello', ['/bin/echo', 'hello'], { type: 'object' }),
        tool('deaf', ['/bin/echo', 'deaf'], { type: 'object', properties: { text: {} } }),
      ],
    };
    await using runner = await tools({ agent });
    assert.equal((await call(runner, 'hello')).result, 'hello\n');
    assert.equal((await call(runner, 'echo', { text: 'x' })).result, '-- x\n');
    for (const [name, args, message] of [
      ['deaf', {}, /^agent\.input is Args and agent\.tools deaf: command has no \$\(INPUT\) or/],
      ['hello', { text: 'x' }, /^agent\.input is Args and agent\.tools hello: command has no \$\(INPUT\) or/],
      ['echo', {}, /^the input has no field for \$\(INPUT\.text\) in agent\.tools echo: command$/],
      ['echo', { text: 'a\0b' }, /^agent\.tools echo: command\[2\] holds a NUL/],
    ] as const) {
      const { error } = await call(runner, name, args);
      assert.equal(error?.code, 'InvalidInput', name);
      assert.match(error?.message ?? '', message);
    }
  });

  test('whose call_id holds a secret does not show it', async () => {
    const env = [{ name: 'T', secret: 'BERTH_SECRET_0' }];
    await using runner = await tools({ agent: { env }, env: { BERTH_SECRET_0: 'correct-horse' } });
    const { output } = await runner.runTurn({ tool: 'pid', call_id: 'of-correct-horse' });
    assert.equal((output as Result).call_id, 'of-[REDACTED]');
    assert.ok(runner.agentEvents().length > 0);
    assert.doesNotMatch(runner.stderr, /correct-horse/);
  });

  test('with arguments that do not match the schema is refused by the argument’s name, and starts nothing', async () => {
    await using runner = await tools();
    for (const [args, message] of [
      [{ a: 1, b: 'two' }, /^args\.b: .*"string".*"number"/],
      [{ a: 1 }, /^args: .*required property "b"/],
      [{ a: 1, b: 2, c: 3 }, /^args\.c is not allowed/],
    ] as const) {
      const { status, error } = await call(runner, 'add', args);
      assert.deepEqual([status, error?.code], ['error', 'InvalidArguments']);
      assert.match(error?.message ?? '', message);
    }
    assert.equal(runner.frames('started').length, 0);
  });

  test('of a tool that there is not is an error result', async () => {
    await using runner = await tools();
    assert.equal((await call(runner, 'nope')).error?.code, 'UnknownTool');
  });
});

describe('a tool that fails is an error result, never a failed turn', () => {
  for (const [tool, code, message] of [
    ['slow', 'ToolTimedOut', /^tool slow ran longer than its timeout of 300ms and was stopped$/],
    ['deaf', 'ToolTimedOut', /timeout of 300ms/],
    ['crash', 'ToolCrashed', /^tool crash was killed by SIGSEGV\nlast words/],
    ['killed', 'ToolCrashed', /^tool killed was killed by SIGKILL, most likely by the kernel for want of memory/],
    ['fails', 'ToolFailed', /^exit code 3; stdout is empty.*\nno such thing, key=\[REDACTED\]$/],
    ['noise', 'InvalidResult', /stdout is not valid JSON/],
  ] as const) {
    test(`${tool}: ${code}`, async () => {
      await using runner = await tools();
      const { status, error } = await call(runner, tool);
      assert.deepEqual([status, error?.code], ['error', code]);
      assert.match(error?.message ?? '', message);
      assert.deepEqual(runner.processes(), [], 'nobody is left');
      assert.equal((await call(runner, 'add', { a: 1, b: 1 })).result, 2, 'the next call is served');
      assert.deepEqual(
        readdirSync(runner.directory('run')).filter((name) => !name.endsWith('.sock')),
        [],
      );
    });
  }

  test('a program that does not exist', async () => {
    await using runner = await tools({ agent: { tools: [{ ...sh('gone', ''), command: ['no-such-program'] }] } });
    const { error } = await call(runner, 'gone');
    assert.equal(error?.code, 'CommandNotFound');
    assert.match(error?.message ?? '', /^agent\.tools gone: command: "no-such-program" is in no folder of PATH/);
  });

  test('leaves no process behind, whatever it started', skipIf(noKeeper), async () => {
    await using runner = await tools();
    assert.equal((await call(runner, 'leaves')).result, 1);
    assert.deepEqual(runner.processes(), []);
  });
});

describe('an input that is none', () => {
  for (const [input, message] of [
    ['text', /^input must be an object with "tool"/],
    [{}, /^input\.tool must be the name of a tool/],
    [{ tool: 'add', args: [] }, /^input\.args must be an object; it is an array/],
    [{ tool: 'add', call_id: 7 }, /^input\.call_id must be a string/],
    [{ tool: 'add', arguments: {} }, /^input\.arguments is not known/],
    [{ calls: [] }, /^input\.calls must be a list of at least one/],
    [
      {
        calls: [
          { tool: 'add', call_id: 'x' },
          { tool: 'add', call_id: 'x' },
        ],
      },
      /^input\.calls\[1\]\.call_id is that of another/,
    ],
    [{ calls: Array(65).fill({ tool: 'add' }) }, /^input\.calls has 65 calls; a turn can have 64/],
    [{ method: 'other' }, /^input\.method must be "list_tools"/],
    [{ method: 'list_tools', parameters: { query: 5 } }, /^input\.parameters\.query must be a string/],
  ] as const) {
    test(`fails the turn by the field’s name: ${JSON.stringify(input).slice(0, 60)}`, async () => {
      await using runner = await tools();
      const { outcome, error } = await runner.runTurn(input);
      assert.deepEqual([outcome, error?.code], ['Failed', 'InvalidInput']);
      assert.match(error?.message ?? '', message);
    });
  }
});

test('list_tools finds tools by every word of the query, in name or description', async () => {
  await using runner = await tools();
  const list = async (query?: string) => {
    const { output } = await runner.runTurn({
      method: 'list_tools',
      ...(query !== undefined && { parameters: { query } }),
    });
    return (output as { tools: { name: string }[] }).tools;
  };
  assert.equal((await list()).length, TOOLS.length);
  assert.deepEqual(await list('NUMBERS add'), [
    { name: 'add', description: 'Adds two numbers', parameters: ADD, timeout_ms: 30_000 },
  ]);
  assert.deepEqual(await list('add nothing'), []);
});

describe('calls of one turn', () => {
  test('run at once up to the limit, their results in the order of the calls', async () => {
    await using runner = await tools({ agent: { maxParallel: 2 } });
    const calls = Array.from({ length: 5 }, (_, i) => ({ tool: i === 1 ? 'fails' : 'nap', call_id: `c${i}` }));
    const turn = runner.startTurn({ calls });
    const state = runner.directory('state');
    await eventually(() => readdirSync(state).length === 2, { what: 'two that run at once' });
    // Each call is told before its process starts, and what was told before a pong has been read by then.
    const n = runner.send('ping', {});
    await runner.frame('pong', ({ message }) => message.n === n);
    const begun = () =>
      runner.agentEvents().flatMap(({ event: told }) => {
        const { event, call_id: id } = told as { event: string; call_id: string };
        return event === 'tool.started' ? [id] : [];
      });
    assert.deepEqual(begun(), ['c0', 'c1', 'c2']);
    writeFileSync(join(state, 'go'), '');
    const { results } = (await runner.result(turn)).output as { results: Result[] };
    assert.deepEqual(
      results.map(({ call_id, status }) => [call_id, status]),
      calls.map(({ call_id, tool }) => [call_id, tool === 'fails' ? 'error' : 'success']),
    );
    assert.deepEqual(begun(), ['c0', 'c1', 'c2', 'c3', 'c4']);
    assert.equal(runner.frames('started').length, 1, 'the turn starts once');
  });

  test('are told as events, when each begins and ends', async () => {
    await using runner = await tools();
    await runner.runTurn({
      calls: [
        { tool: 'pid', call_id: 'x' },
        { tool: 'fails', call_id: 'y' },
      ],
    });
    const events = runner.agentEvents().map(({ event }) => event as Record<string, unknown>);
    const of = (id: string) =>
      events.filter(({ call_id }) => call_id === id).map(({ event, status, code }) => [event, status, code]);
    assert.deepEqual(of('x'), [
      ['tool.started', undefined, undefined],
      ['tool.finished', 'success', undefined],
    ]);
    assert.deepEqual(of('y'), [
      ['tool.started', undefined, undefined],
      ['tool.finished', 'error', 'ToolFailed'],
    ]);
  });

  test('can be watched live, with what the tool itself tells', async () => {
    // The tool goes on when told to: its events have arrived by then.
    const tells = sh(
      'tells',
      `echo '{"step": "token=abcdef"}'; until [ -e "$BERTH_STATE_DIR/go" ]; do sleep 0.02; done; echo '{"done": 5}'`,
    );
    const jsonLines = { resultWhen: { '/done': '5' }, output: '/done' };
    await using runner = await tools({ agent: { tools: [tells], result: 'JsonLines', jsonLines } });
    const turn = runner.startTurn({ tool: 'tells', call_id: 'x' });
    const events = () => runner.agentEvents().map(({ event }) => event);
    await eventually(() => events().length === 2, { what: 'two events' });
    assert.equal(runner.frames('result').length, 0);
    const facts = { call_id: 'x', tool: 'tells' };
    assert.deepEqual(events(), [
      { type: 'event', event: 'tool.started', ...facts },
      { type: 'event', event: 'tool.event', ...facts, data: { step: 'token=abcdef' } },
    ]);
    writeFileSync(join(runner.directory('state'), 'go'), '');
    assert.equal(((await runner.result(turn)).output as Result).result, 5);
    const { duration_ms: duration, ...finished } = events()[2] as Record<string, unknown>;
    assert.deepEqual(finished, { type: 'event', event: 'tool.finished', ...facts, status: 'success' });
    assert.ok((duration as number) > 0);
  });

  test('write lines that say whose they are, and no secret is parted by what another writes', async () => {
    const env = [{ name: 'T', secret: 'BERTH_SECRET_0' }];
    await using runner = await tools({ agent: { env }, env: { BERTH_SECRET_0: 'correct-horse' } });
    const turn = runner.startTurn({
      calls: [
        { tool: 'secret', call_id: 'a' },
        { tool: 'secret', call_id: 'b' },
      ],
    });
    await runner.result(turn);
    const { text } = (await runner.frame('log')).message;
    const lines = text.split('\n').filter((line) => /^\[[ab]\]/.test(line));
    assert.deepEqual([...new Set(lines)].sort(), ['[a] [REDACTED]', '[b] [REDACTED]']);
    assert.equal(lines.length, 16);
    assert.ok(!/correct-|horse/.test(runner.stderr));
  });

  test('cannot ask for an approval over the socket: nobody is asked, and the tool goes on', async () => {
    const ask = `node -e '
const socket = require("node:net").connect(process.env.BERTH_SOCKET);
socket.write(JSON.stringify({ do: "approve", prompt: "May I?" }) + "\\n");
socket.once("data", (reply) => { console.log(String(reply)); socket.end(); });'`;
    await using runner = await tools({ agent: { tools: [sh('ask', ask)] } });
    const { status, result } = await call(runner, 'ask');
    const error = { code: 'NotAsked', message: 'a tool cannot ask for an approval' };
    assert.deepEqual([status, result], ['success', { ok: false, error }]);
    assert.deepEqual(runner.frames('approval'), []);
  });

  test('whose results are together too large fail alone', async () => {
    await using runner = await tools();
    assert.equal(((await call(runner, 'large')).result as string).length, 3_000_000);
    const { output } = await runner.runTurn({ calls: [{ tool: 'large' }, { tool: 'pid' }, { tool: 'large' }] });
    const codes = (output as { results: Result[] }).results.map(({ error }) => error?.code);
    assert.deepEqual(codes, ['OutputTooLarge', undefined, 'OutputTooLarge']);
  });

  test('end with the turn: what runs is stopped, what waits is not started', async () => {
    await using runner = await tools({
      agent: { maxParallel: 1, tools: [sh('long', 'sleep 600'), sh('pid', 'echo 1')] },
    });
    const turn = runner.startTurn({ calls: [{ tool: 'pid' }, { tool: 'long' }, { tool: 'pid' }] });
    await eventually(() => runner.processes().some(({ command }) => command.startsWith('sleep')), {
      what: 'the second',
    });
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    const { outcome, output } = await runner.result(turn);
    assert.equal(outcome, 'Cancelled');
    const codes = (output as { results: Result[] }).results.map(({ error }) => error?.code);
    assert.deepEqual(codes, [undefined, 'Cancelled', 'NotStarted']);
    assert.deepEqual(runner.processes(), []);
  });
});

describe('the first result of a new pod', () => {
  const restored = { workspaceReset: true, note: 'The files are gone.' };

  test('says what was kept, whatever its form, and no later one does', async () => {
    await using runner = await tools({ bind: { restored } });
    const ofTurn = async (input: object) => (await runner.runTurn(input)).output as { restored?: object };
    assert.deepEqual((await ofTurn({ method: 'list_tools' })).restored, restored);
    assert.deepEqual((await ofTurn({ calls: [{ tool: 'pid' }, { tool: 'pid', call_id: 'b' }] })).restored, restored);
    assert.ok(!Object.hasOwn(await ofTurn({ tool: 'pid' }), 'restored'));
  });

  test('says it in the result of a single call, too', async () => {
    await using runner = await tools({ bind: { restored } });
    const { output } = await runner.runTurn({ tool: 'pid' });
    const { status, restored: told } = output as { status: string; restored?: object };
    assert.deepEqual([status, told], ['success', restored]);
  });
});
