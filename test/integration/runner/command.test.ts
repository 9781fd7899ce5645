import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';
import { noKeeper, RunnerHarness } from '../../support/runner-harness.ts';

/** The runner's files for its turns; its socket is not one. */
function filesOfTurns(runner: RunnerHarness): string[] {
  return readdirSync(runner.directory('run')).filter((name) => !name.endsWith('.sock'));
}

const NODE = { command: [process.execPath, '-e'] };

describe('one request, one process', () => {
  test('stray prints around and within lines never corrupt the result, and are kept as log', async () => {
    const script = `
const request = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const { BERTH_RESULT_START_MARKER: start, BERTH_RESULT_END_MARKER: end } = process.env;
process.stdout.write('starting up\\nno line feed here: ');
const envelope = { status: 'success', output: request.input.n * 2, turn_count: 1 };
process.stdout.write(start + JSON.stringify(envelope, null, 1) + end + ' and after\\n');
console.error('warning: é');`;
    await using runner = await RunnerHarness.bound({ agent: { ...NODE, args: [script] } });
    const result = await runner.runTurn({ n: 21 });
    assert.deepEqual([result.outcome, result.output, result.turnCount], ['Succeeded', 42, 1]);
    const log = (await runner.frame('log')).message.text;
    assert.ok(log.includes('starting up\n') && log.includes('no line feed here:  and after\n'), log);
    assert.match(log, /warning: é/);
    assert.ok(!log.includes('turn_count'));
  });

  test('a marker split over two writes is found', async () => {
    const script = `
const { BERTH_RESULT_START_MARKER: start, BERTH_RESULT_END_MARKER: end } = process.env;
const pieces = [start.slice(0, 9), start.slice(9) + '{"status":"success","output":7}' + end.slice(0, 5), end.slice(5)];
const next = () => pieces.length && process.stdout.write(pieces.shift(), () => setTimeout(next, 100));
next();`;
    await using runner = await RunnerHarness.bound({ agent: { ...NODE, args: [script] } });
    assert.equal((await runner.runTurn()).output, 7);
  });

  test('every turn has markers of its own', async () => {
    const args = ['echo "$BERTH_RESULT_START_MARKER" >> $BERTH_STATE_DIR/markers'];
    await using runner = await RunnerHarness.bound({ agent: { args } });
    await runner.runTurn();
    await runner.runTurn();
    const markers = readFileSync(join(runner.directory('state'), 'markers'), 'utf8')
      .trim()
      .split('\n');
    assert.equal(new Set(markers).size, 2);
  });

  test('no markers is an error that says how much was printed, which is the log, and how to give a result', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['echo hello'] } });
    const result = await runner.runTurn();
    assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'MissingEnvelope']);
    assert.match(
      result.error?.message ?? '',
      /^the program ended with exit code 0 without a result; its stdout has 6 bytes\. Print \$BERTH_RESULT_START_MARKER, .* or set agent\.result to Text/,
    );
    assert.equal((await runner.frame('log')).message.text, 'hello\n');
  });

  test('a start marker without an end is said, and what follows it is log', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['echo "$BERTH_RESULT_START_MARKER{}"'] } });
    const { error } = await runner.runTurn();
    assert.equal(error?.code, 'MissingEnvelope');
    assert.match(error?.message ?? '', /its stdout has \d+ bytes, and the start marker has no end marker after it\./);
    assert.equal((await runner.frame('log')).message.text, '{}\n');
  });

  test('the envelope can be left in BERTH_RESULT_FILE, which is gone afterwards', async () => {
    const args = [`echo '{"status":"success","output":"filed"}' > "$BERTH_RESULT_FILE"`];
    await using runner = await RunnerHarness.bound({ agent: { args } });
    assert.equal((await runner.runTurn()).output, 'filed');
    assert.deepEqual(filesOfTurns(runner), []);
  });

  test('a result file that is a link or a pipe is refused', async () => {
    const args = [
      'if [ "$1" = link ]; then echo \'{"status":"success"}\' > e; ln -s $PWD/e "$BERTH_RESULT_FILE"; else mkfifo "$BERTH_RESULT_FILE"; fi',
      'x',
      '$(INPUT)',
    ];
    await using runner = await RunnerHarness.bound({ agent: { args, input: 'Args' } });
    for (const kind of ['link', 'pipe']) assert.equal((await runner.runTurn(kind)).error?.code, 'InvalidResult');
    assert.deepEqual(filesOfTurns(runner), []);
  });

  test('a non-zero exit without an envelope is exit code N and the redacted tail of stderr', async () => {
    const agent = { args: ['head -c 5000 /dev/zero | tr "\\0" y >&2; echo " token=abcdef last words" >&2; exit 7'] };
    await using runner = await RunnerHarness.bound({ agent });
    const { error, exitCode } = await runner.runTurn();
    assert.equal(exitCode, 7);
    assert.match(error?.message ?? '', /^exit code 7\ny+ token=\[REDACTED\] last words$/);
  });

  test('an agent that crashes is told by its signal', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['kill -SEGV $$'] } });
    const { error, signal } = await runner.runTurn();
    assert.deepEqual([signal, error?.message], ['SIGSEGV', 'killed by SIGSEGV']);
  });

  test('every execution has its duration and status, however it ends', async () => {
    const agent = { args: ['$(INPUT)'], input: 'Args' as const, result: 'Text' as const };
    await using runner = await RunnerHarness.bound({ agent });
    const ends: [input: string, outcome: string, timeoutMs?: number][] = [
      ['sleep 0.3', 'Succeeded'],
      ['sleep 0.3; exit 3', 'Failed'],
      ['sleep 0.3; kill -SEGV $$', 'Failed'],
      ['sleep 60', 'TimedOut', 200],
    ];
    for (const [input, outcome, timeoutMs] of ends) {
      const result = await runner.runTurn(input, timeoutMs);
      assert.equal(result.outcome, outcome, input);
      assert.ok((result.usage?.wallMs ?? 0) > 0, `${input}: ${result.usage?.wallMs} ms`);
      // The same where the runner was told of both at once.
      assert.ok(Date.parse(result.finishedAt) >= Date.parse(result.startedAt), input);
    }
    const turn = runner.startTurn('sleep 60');
    await runner.frame('started', ({ message }) => message.turn === turn);
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    const { outcome, usage } = await runner.result(turn);
    assert.deepEqual([outcome, typeof usage?.wallMs], ['Cancelled', 'number']);
    // A turn that never ran has taken no time.
    const refused = await runner.runTurn('a\0b');
    assert.deepEqual([refused.error?.code, refused.usage?.wallMs], ['InvalidInput', 0]);
  });

  test('a fresh process serves every turn', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Json', args: ['echo $$'] } });
    assert.notEqual((await runner.runTurn()).output, (await runner.runTurn()).output);
  });
});

describe('inputs and results', () => {
  test('Text gives a string on stdin as it is, and stdout back as a string', async () => {
    await using runner = await RunnerHarness.bound({ agent: { input: 'Text', result: 'Text', args: ['cat'] } });
    const text = 'a "quoted" $(line)\n\0 é\n';
    assert.equal((await runner.runTurn(text)).output, text);
    assert.equal((await runner.runTurn({ not: 'a string' })).error?.code, 'InvalidInput');
    assert.equal(runner.frames('log').length, 0);
  });

  test('a program may open /dev/stdin, /dev/stdout and /dev/stderr', skipIf(noKeeper), async () => {
    const agent = {
      input: 'Text' as const,
      result: 'Text' as const,
      args: ['cat /dev/stdin > /dev/stdout; echo err > /dev/stderr'],
    };
    await using runner = await RunnerHarness.bound({ agent });
    assert.equal((await runner.runTurn('through')).output, 'through');
    assert.equal((await runner.frame('log')).message.text, 'err\n');
  });

  test('File gives the request in a file of mode 0600 that is gone afterwards', async () => {
    const args = ['stat -c "\\"%a\\"" $BERTH_INPUT_FILE; grep -c \'"input":{"k":"v"}\' $BERTH_INPUT_FILE >&2'];
    await using runner = await RunnerHarness.bound({ agent: { input: 'File', result: 'Json', args } });
    assert.equal((await runner.runTurn({ k: 'v' })).output, '600');
    assert.equal((await runner.frame('log')).message.text, '1\n');
    assert.deepEqual(filesOfTurns(runner), []);
  });

  test('the input file is gone when the program cannot be started or is killed', async () => {
    await using runner = await RunnerHarness.bound({ agent: { input: 'File', args: ['sleep 60'] } });
    const turn = runner.startTurn({});
    await runner.frame('started');
    assert.equal(filesOfTurns(runner).length, 1);
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    await runner.result(turn);
    assert.deepEqual(filesOfTurns(runner), []);
    await using broken = await RunnerHarness.bound({ agent: { input: 'File', command: ['/etc/passwd'] } });
    assert.equal((await broken.runTurn({})).error?.code, 'CommandNotExecutable');
    assert.deepEqual(filesOfTurns(broken), []);
  });

  test('Args gives the input as single arguments that no shell sees', async () => {
    const args = [
      '-p',
      'JSON.stringify(process.argv.slice(1))',
      '--',
      '$(INPUT.q)',
      '--all=$(INPUT)',
      '$(SESSION_UID)',
    ];
    const command = [process.execPath];
    await using runner = await RunnerHarness.bound({ agent: { command, args, input: 'Args', result: 'Json' } });
    const input = { q: '"; touch /tmp/berth-pwned; $(id) `id` *' };
    assert.deepEqual((await runner.runTurn(input)).output, [
      input.q,
      `--all=${JSON.stringify(input)}`,
      runner.session.uid,
    ]);
    const missing = await runner.runTurn({});
    assert.deepEqual([missing.error?.code, missing.error?.message.includes('$(INPUT.q)')], ['InvalidInput', true]);
    assert.match((await runner.runTurn({ q: 'x'.repeat(131_072) })).error?.message ?? '', /args\[3\] has 131072 bytes/);
  });

  test('arguments that are together too large for a process are refused, not a crash', async () => {
    // The kernel takes at most 6 MiB, whatever its limits.
    const args = Array(50).fill('$(INPUT)');
    await using runner = await RunnerHarness.bound({ agent: { command: ['/bin/true'], args, input: 'Args' } });
    const { error } = await runner.runTurn('x'.repeat(131_000));
    assert.deepEqual([error?.code, /too large/.test(error?.message ?? '')], ['InvalidInput', true]);
  });

  test('an agent that does not read its input is no error', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Text', args: ['exec 0<&-; echo done'] } });
    assert.equal((await runner.runTurn('x'.repeat(120_000))).output, 'done\n');
  });

  test('a method with its parameters reaches the agent, a wrong one does not start it', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Json', args: ['cat'] } });
    const { output } = await runner.runTurn({ method: 'add', parameters: { a: 1 } });
    assert.deepEqual((output as Record<string, unknown>).parameters, { a: 1 });
    const before = runner.frames('started').length;
    assert.match((await runner.runTurn({ method: '' })).error?.message ?? '', /^input\.method/);
    assert.match((await runner.runTurn({ method: 'm', parameters: [] })).error?.message ?? '', /^input\.parameters/);
    assert.equal(runner.frames('started').length, before);
  });

  test('Json that is none is InvalidResult that says so', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Json', args: ['echo "{oops"'] } });
    const { error } = await runner.runTurn();
    assert.equal(error?.code, 'InvalidResult');
    assert.match(
      error?.message ?? '',
      /^stdout is not valid JSON: line 1, column 2: .* With agent\.result Json all of stdout/,
    );
  });

  test('NUL and invalid UTF-8 arrive as text', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Text', args: ["printf 'a\\0\\377b'"] } });
    assert.equal((await runner.runTurn()).output, 'a\0\ufffdb');
  });

  test('an output of 8 MiB arrives whole, one byte more is refused with the numbers', async () => {
    const args = ['head -c "$1" /dev/zero | tr "\\0" x', 'x', '$(INPUT)'];
    await using runner = await RunnerHarness.bound({ agent: { input: 'Args', result: 'Text', args } });
    const most = 8 * 1024 * 1024 - 2;
    assert.equal(((await runner.runTurn(String(most))).output as string).length, most);
    const { error } = await runner.runTurn(String(most + 1));
    assert.deepEqual(
      [error?.code, /8388609 bytes; at most 8388608/.test(error?.message ?? '')],
      ['OutputTooLarge', true],
    );
  });
});

describe('surroundings', () => {
  test('the environment is by allow-list: PATH, HOME=/tmp, USER, SHELL, UTF-8, Python’s, and nothing else of the runner’s own', async () => {
    const env = { ...process.env, LEAK: 'x', PYTHONPATH: '/x', BERTH_SECRET_1: 's3cret-value' } as Record<
      string,
      string
    >;
    const agent = {
      result: 'Json' as const,
      command: [process.execPath, '-p'],
      args: ['JSON.stringify(process.env)'],
      env: [
        { name: 'MINE', value: '1' },
        { name: 'TOKEN', secret: 'BERTH_SECRET_1' },
      ],
    };
    await using runner = await RunnerHarness.bound({ agent, env });
    const { PATH, ...rest } = (await runner.runTurn()).output as Record<string, string>;
    assert.ok(PATH?.startsWith(env.PATH as string), PATH);
    assert.deepEqual(rest, {
      BERTH_SESSION: 'sess',
      BERTH_SOCKET: join(runner.directory('run'), 'berth.sock'),
      BERTH_STATE_DIR: runner.directory('state'),
      BERTH_TURN: 'turn-1',
      // The home directory is /tmp in a pod.
      HOME: runner.directory('tmp'),
      LANG: 'C.UTF-8',
      LC_ALL: 'C.UTF-8',
      LOGNAME: 'agent',
      MINE: '1',
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONHASHSEED: '0',
      PYTHONIOENCODING: 'utf-8',
      PYTHONPATH: '',
      PYTHONUNBUFFERED: '1',
      SHELL: '/bin/sh',
      TMPDIR: runner.directory('tmp'),
      TOKEN: '[REDACTED]',
      USER: 'agent',
    });
  });

  test('secrets are replaced wherever the agent shows them, also straddling two writes', async () => {
    const script = `
const { TOKEN, BERTH_RESULT_START_MARKER: start, BERTH_RESULT_END_MARKER: end } = process.env;
process.stderr.write(TOKEN.slice(0, 6));
setTimeout(() => process.stderr.write(TOKEN.slice(6) + '\\n'), 150);
console.log('Authorization: Bearer abc.def');
const output = { t: TOKEN, k: 'sk-0123456789abc' };
console.log(start + JSON.stringify({ status: 'success', output, metadata: { m: TOKEN } }) + end);`;
    const env = [{ name: 'TOKEN', secret: 'BERTH_SECRET_1' }];
    const options = { agent: { ...NODE, args: [script], env }, env: { BERTH_SECRET_1: 'correct horse battery' } };
    await using runner = await RunnerHarness.bound(options);
    const result = await runner.runTurn();
    assert.deepEqual(result.output, { t: '[REDACTED]', k: 'sk-0123456789abc' });
    assert.deepEqual([result.metadata, result.redactions], [{ m: '[REDACTED]' }, 2]);
    const log = (await runner.frame('log')).message.text;
    assert.equal(log.split('[REDACTED]').length, 3);
    // The frames are sealed: what their reader opens is in the log and the result.
    for (const text of [log, runner.stderr]) assert.ok(!/horse|abc\.def/.test(text));
    assert.ok(!/correct horse|abc\.def/.test(runner.stdout));
  });

  test('HOME, TMPDIR and the working directory are writable, the working directory is the session’s', async () => {
    const args = ['touch ~/a $TMPDIR/b c && pwd'];
    await using runner = await RunnerHarness.bound({ agent: { result: 'Text', args } });
    assert.equal((await runner.runTurn()).output, `${runner.directory('work')}\n`);
  });

  test('a working directory that is missing or a file is refused before anything starts', async () => {
    await using runner = await RunnerHarness.bound({ agent: { workingDir: '/nowhere/at/all' } });
    assert.equal((await runner.runTurn()).error?.code, 'WorkingDirInvalid');
    await using other = await RunnerHarness.bound({ agent: { workingDir: '/etc/passwd' } });
    const { error, exitCode } = await other.runTurn();
    assert.deepEqual([error?.code, exitCode], ['WorkingDirInvalid', undefined]);
    assert.match(error?.message ?? '', /\/etc\/passwd is not a directory/);
    assert.equal(other.frames('started').length, 0);
  });

  test('a program that does not exist, or cannot be executed, is told apart', async () => {
    await using missing = await RunnerHarness.bound({ agent: { command: ['no-such-program'] } });
    assert.equal((await missing.runTurn()).error?.code, 'CommandNotFound');
    await using plain = await RunnerHarness.bound({ agent: { command: ['/etc/passwd'] } });
    assert.equal((await plain.runTurn()).error?.code, 'CommandNotExecutable');
  });

  test(
    'a script with a missing interpreter is CommandNotFound, one without any is CommandNotExecutable',
    skipIf(noKeeper),
    async () => {
      for (const [name, text, code] of [
        ['missing', '#!/no/such/interpreter\n', 'CommandNotFound'],
        ['none', 'echo hello\n', 'CommandNotExecutable'],
      ] as const) {
        await using runner = new RunnerHarness({ agent: { command: [`./${name}`], args: [] } });
        await runner.ready();
        mkdirSync(runner.directory('work'), { recursive: true });
        writeFileSync(join(runner.directory('work'), name), text, { mode: 0o755 });
        runner.bind();
        assert.equal((await runner.runTurn()).error?.code, code, name);
      }
    },
  );

  test('100 MB without a line feed are read in bounded memory, the log keeps the last 1 MiB, stderr has it all', async () => {
    const args = ['head -c 100000000 /dev/zero | tr "\\0" x; head -c 10000000 /dev/zero >&2'];
    await using runner = await RunnerHarness.bound({ agent: { args } });
    let peak = 0;
    const turn = runner.startTurn();
    await eventually(
      () => {
        const rss = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${runner.pid}/status`, 'utf8'))?.[1]) / 1024;
        peak = Math.max(peak, rss);
        return runner.frames('result').some((frame) => frame.message.turn === turn);
      },
      { timeoutMs: 150_000 },
    );
    const log = (await runner.frame('log')).message;
    assert.deepEqual([log.bytes, log.truncated, Buffer.byteLength(log.text)], [110_000_000, true, 1024 * 1024]);
    // The turn ends its last line.
    await eventually(() => runner.stderrBytes === 110_000_000 + 1, { what: 'all of it on stderr' });
    assert.ok(peak < 250, `peak memory ${peak} MiB`);
  });
});
