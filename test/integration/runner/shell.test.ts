import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { AgentSpec, Result } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { exists } from '../../support/processes.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { type HarnessOptions, noKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

const SHELL: Partial<AgentSpec> = { driver: 'Shell', command: [], args: [], shell: { rewriteBackground: true } };
const VERBATIM: Partial<AgentSpec> = { ...SHELL, shell: { rewriteBackground: false } };

/** `make` builds it. */
const noAgentTool = skipWithout(
  'agent-tool',
  existsSync(join(import.meta.dirname, '../../../build/bin/berth-agent')),
  'there is no build/bin/berth-agent: run make keeper',
);

interface Output {
  stdout: string;
  stderr: string;
  output?: string;
  exitCode: number | null;
  signal: string | null;
  shell: string;
  background: { pid: number; command: string }[];
  truncated?: Record<string, { bytes: number; leftOut: number }>;
}

const bound = ({ agent, ...options }: HarnessOptions = {}) =>
  RunnerHarness.bound({ ...options, agent: { ...SHELL, ...agent } });

const outputOf = (result: Result) => result.output as Output;

async function run(runner: RunnerHarness, command: string, more: object = {}): Promise<Output> {
  const result = await runner.runTurn({ command, ...more });
  assert.equal(result.outcome, 'Succeeded', result.error?.message);
  return outputOf(result);
}

/** Waits until one of the shell's session is this program: a child begins as another shell. */
const until = (command: string) => `until pgrep -s 0 -xf "${command}" >/dev/null; do :; done`;

describe('the first result of a new pod', () => {
  const restored = { workspaceReset: true, note: 'The files are gone.' };

  test('says what was kept, and no later one does', async () => {
    await using runner = await bound({ bind: { restored } });
    const first = await runner.runTurn({ command: 'true' });
    assert.deepEqual((first.output as { restored?: object }).restored, restored);
    const second = await runner.runTurn({ command: 'true' });
    assert.ok(!Object.hasOwn(second.output as object, 'restored'));
  });
});

describe('a command', () => {
  test('returns its output, exit code, signal and shell, whatever the exit code', async () => {
    await using runner = await bound();
    const result = await runner.runTurn({ command: 'echo out; echo err >&2; exit 3' });
    assert.deepEqual([result.outcome, result.exitCode], ['Succeeded', 3]);
    assert.deepEqual(result.output, {
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 3,
      signal: null,
      shell: 'bash',
      background: [],
    });
    const { exitCode, signal } = await run(runner, 'kill -KILL $$');
    assert.deepEqual([exitCode, signal], [null, 'SIGKILL']);
    assert.deepEqual((await run(runner, 'nosuch')).stderr, 'bash: line 1: nosuch: command not found\n');
    assert.match((await run(runner, 'if')).stderr, /syntax error/);
  });

  test('that begins with - or + is a command and no option of the shell', async () => {
    await using runner = await bound();
    for (const command of ['-x', '+x', '-c', '--', '--help', '-']) {
      const { exitCode, stdout, stderr } = await run(runner, command);
      assert.deepEqual([exitCode, stdout, stderr], [127, '', `bash: line 1: ${command}: command not found\n`]);
    }
    assert.equal((await run(runner, '-x || echo "$0"')).stdout, 'bash\n');
  });

  test('every turn has a shell of its own, in the working directory, with nothing on stdin', async () => {
    await using runner = await bound();
    assert.equal((await run(runner, 'x=1; cd /; cat; echo $$ > first; pwd')).stdout, '/\n');
    assert.equal((await run(runner, 'echo "[$x]"; pwd')).stdout, `[]\n${runner.directory('work')}\n`);
  });

  test('stdin is /dev/null, which nothing takes for input that was piped to it', async () => {
    await using runner = await bound();
    for (const merge of [false, true]) {
      const { stdout, output } = await run(runner, 'readlink /proc/self/fd/0; echo "$0 $SHLVL"; ls /proc/self/fd', {
        merge,
      });
      assert.equal(stdout ?? output, '/dev/null\nbash 1\n0\n1\n2\n3\n');
    }
  });

  test('cwd, absolute or relative, and env are obeyed', async () => {
    await using runner = await bound({ agent: { env: [{ name: 'A', value: 'class' }] } });
    mkdirSync(join(runner.directory('work'), 'sub'));
    const env = { A: 'turn', B: 'a "b" $c\n' };
    const { stdout } = await run(runner, 'pwd; echo "$A|$B|$BERTH_SESSION|$BERTH_TURN"', { cwd: 'sub', env });
    assert.equal(stdout, `${runner.directory('work')}/sub\nturn|a "b" $c\n|sess|turn-1\n`);
    assert.equal((await run(runner, 'pwd', { cwd: '/' })).stdout, '/\n');
  });

  test('merge joins both streams in the order in which they were written', async () => {
    await using runner = await bound();
    const { output, stdout, stderr } = await run(runner, 'for i in 1 2 3; do echo o$i; echo e$i >&2; done; nosuch', {
      merge: true,
    });
    assert.equal(output, 'o1\ne1\no2\ne2\no3\ne3\nbash: line 1: nosuch: command not found\n');
    assert.deepEqual([stdout, stderr], [undefined, undefined]);
  });

  test('a wrong input is refused with its field before anything starts', async () => {
    await using runner = await bound();
    writeFileSync(join(runner.directory('work'), 'file'), '');
    const wrong: [unknown, RegExp][] = [
      ['ls', /^input must be an object with a "command"; it is a string$/],
      [null, /^input must be an object with a "command"; it is null$/],
      [{}, /^input\.command must be a non-empty string; it is absent$/],
      [{ command: ' ' }, /^input\.command is blank; give the text of a command$/],
      [{ command: '' }, /^input\.command is empty; give the text of a command$/],
      [{ command: ['ls'] }, /^input\.command must be a non-empty string; it is an array$/],
      [{ command: 'a\0b' }, /^input\.command holds a NUL character/],
      [{ command: 'x'.repeat(131_072) }, /^input\.command has 131072 bytes; a process can be given 131071$/],
      [{ command: 'ls', cwd: 'nope' }, /^input\.cwd \/.*\/work\/nope does not exist$/],
      [{ command: 'ls', cwd: 'file' }, /^input\.cwd \/.*\/work\/file is not a directory$/],
      [{ command: 'ls', cwd: 5 }, /^input\.cwd must be a path; it is a number$/],
      [{ command: 'ls', env: ['A=1'] }, /^input\.env must be an object of strings; it is an array$/],
      [{ command: 'ls', env: { A: 1 } }, /^input\.env\.A must be a string; it is a number$/],
      [{ command: 'ls', env: { A: 'x\0' } }, /^input\.env\.A holds a NUL/],
      [{ command: 'ls', env: { 'A=B': '1' } }, /^input\.env has "A=B", which is no variable name$/],
      [{ command: 'ls', env: { BERTH_TURN: '1' } }, /^input\.env\.BERTH_TURN /],
      [{ command: 'ls', env: { SHELLOPTS: 'xtrace' } }, /^input\.env\.SHELLOPTS cannot be set; use set -o/],
      [{ command: 'ls', merge: 'yes' }, /^input\.merge must be true or false; it is a string$/],
      [{ command: 'ls', timeout: 5 }, /^input has a field "timeout"; there are command, cwd, env, merge$/],
    ];
    for (const [input, message] of wrong) {
      const { outcome, error } = await runner.runTurn(input);
      assert.deepEqual([outcome, error?.code], ['Failed', 'InvalidInput']);
      assert.match(error?.message ?? '', message);
    }
    assert.equal(runner.frames('started').length, 0);
    assert.equal((await run(runner, `: ${'x'.repeat(131_069)}`)).exitCode, 0);
  });

  test('large output keeps its head and tail and says how much is missing; the log has the last 1 MiB', async () => {
    await using runner = await bound();
    const { stdout, stderr, truncated } = await run(runner, 'seq 1 300000; seq 1 20000 >&2');
    assert.ok(stdout.startsWith('1\n2\n3\n') && stdout.endsWith('\n299999\n300000\n'));
    const bytes = 1_988_895;
    const gap = /\n\[berth: (\d+) bytes are left out here\]\n/.exec(stdout);
    assert.deepEqual(truncated?.stdout, { bytes, leftOut: bytes - 65_536 });
    assert.equal(gap?.[1], String(bytes - 65_536));
    assert.equal(stdout.length - (gap?.[0].length ?? 0), 65_536);
    assert.ok(stderr.startsWith('1\n2\n') && stderr.endsWith('\n20000\n') && truncated?.stderr);
    const log = (await runner.frame('log')).message;
    assert.ok(log.text.length > 1_040_000 && log.truncated && log.bytes > bytes);
  });

  test('has output that the result leaves out in its log, up to the last 1 MiB', async () => {
    await using runner = await bound();
    const { truncated } = await run(runner, 'seq 1 60000');
    const all = Array.from({ length: 60_000 }, (_, i) => `${i + 1}\n`).join('');
    assert.deepEqual(truncated?.stdout, { bytes: all.length, leftOut: all.length - 65_536 });
    const { text, truncated: cut } = (await runner.frame('log')).message;
    assert.ok(text === all && !cut, `${text.length} of ${all.length} bytes are in the log`);
  });

  test('output of exactly what is kept is whole', async () => {
    await using runner = await bound();
    const { stdout, truncated } = await run(runner, 'head -c 65536 /dev/zero | tr "\\0" x');
    assert.deepEqual([stdout, truncated], ['x'.repeat(65_536), undefined]);
  });

  test('a secret never shows: not in a text, a background command, an error, or across the cut', async () => {
    const value = 's3cr3t-value-0123456789';
    const agent = { env: [{ name: 'TOKEN', secret: 'BERTH_SECRET_0' }] };
    await using runner = await bound({ agent, env: { BERTH_SECRET_0: value } });
    const pad = 32 * 1024 - 10;
    const command = `printf "\${TOKEN:0:5}"; sleep 0.05; printf "\${TOKEN:5} "; head -c ${pad} /dev/zero | tr '\\0' x
printf "$TOKEN"; seq 1 20000; echo $TOKEN >&2; (exec -a "$TOKEN" sleep 1000) &
until grep -q "^$TOKEN" /proc/$!/cmdline; do :; done`;
    const result = await runner.runTurn({ command });
    const { stdout, stderr, background } = outputOf(result);
    assert.ok(stdout.startsWith('[REDACTED] xxx'), stdout.slice(0, 100));
    assert.equal(stderr, '[REDACTED]\n');
    assert.match(background[0]?.command ?? '', /\[REDACTED\]/);
    const { error } = await runner.runTurn({ command: 'ls', cwd: value });
    assert.match(error?.message ?? '', /\[REDACTED\] does not exist/);
    const all = JSON.stringify([runner.events, result]) + runner.stderr;
    for (let at = 0; at + 8 <= value.length; at += 1) assert.ok(!all.includes(value.slice(at, at + 8)));
  });

  test('a command can give a result of its own, or fail its turn, by berth-agent', skipIf(noAgentTool), async () => {
    await using runner = await bound();
    const given = await runner.runTurn({ command: `echo noise; berth-agent result '{"n": 1}'` });
    assert.deepEqual([given.outcome, given.output, given.exitCode], ['Succeeded', { n: 1 }, 0]);
    const failed = await runner.runTurn({ command: 'berth-agent result --error "no luck"' });
    assert.deepEqual([failed.outcome, failed.error], ['Failed', { code: 'AgentFailed', message: 'no luck' }]);
    assert.equal((await run(runner, 'echo plain')).stdout, 'plain\n');
  });

  test('an image without bash has sh, and the result says so; one without either is told', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-path-'));
    try {
      symlinkSync('/bin/sh', join(folder, 'sh'));
      await using runner = await bound({ env: { PATH: folder } });
      const text =
        'cd / && /bin/sleep 1000 >/dev/null 2>&1 & until /bin/grep -q ^/bin/sleep /proc/$!/cmdline; do :; done; echo "$0 $!"';
      const { stdout, shell, background } = await run(runner, text);
      // `sh` gets every text verbatim and has no subshell that waits.
      assert.deepEqual([stdout, shell], [`sh ${background[0]?.pid}\n`, 'sh']);
      assert.deepEqual(background, [{ pid: background[0]?.pid, command: '/bin/sleep 1000' }]);
      const { output } = await run(runner, 'echo a; echo b >&2; echo c', { merge: true });
      assert.equal(output, 'a\nb\nc\n');
      assert.equal((await run(runner, '-x')).exitCode, 127);
      rmSync(join(folder, 'sh'));
      const { error } = await runner.runTurn({ command: 'ls' });
      assert.deepEqual([error?.code, /neither is in a folder/.test(error?.message ?? '')], ['CommandNotFound', true]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('the background', () => {
  const kinds: [string, HarnessOptions][] = [
    ['rewritten', {}],
    ['verbatim', { agent: VERBATIM }],
    ['without a keeper', { processGroup: true }],
  ];
  for (const [name, options] of kinds) {
    test(
      `a command returns when its foreground work is done, ${name}`,
      skipIf(name !== 'without a keeper' && noKeeper),
      async () => {
        await using runner = await bound(options);
        for (const command of [
          'sleep 1000 && true & echo done',
          'true && sleep 1000 & echo done',
          'false || sleep 1000 2>&1 & echo done',
          'sleep 1000 & echo done',
          '{ sleep 1000; } & echo done',
          '(sleep 1000 && sleep 1000) & echo done',
        ]) {
          const { stdout, background, exitCode } = await run(runner, `${command}; ${until('sleep 1000')}`);
          assert.deepEqual([stdout, exitCode], ['done\n', 0], command);
          assert.ok(
            background.some((process) => process.command === 'sleep 1000'),
            command,
          );
        }
      },
    );
  }

  test('output of a background child until then is in the result', async () => {
    await using runner = await bound();
    const command = 'mkfifo p; true && sh -c "echo early; echo said >&2; echo > p; exec sleep 1000" & read -r _ < p';
    const { stdout, stderr } = await run(runner, command);
    assert.deepEqual([stdout, stderr], ['early\n', 'said\n']);
  });

  test(
    'no subshell waits for the last command, and $! is its pid; verbatim there is one',
    skipIf(noKeeper),
    async () => {
      const command = `cd / && sleep 1000 & echo $!; ${until('sleep 1000')}`;
      await using runner = await bound();
      const { stdout, background } = await run(runner, command);
      assert.deepEqual(background, [{ pid: Number(stdout), command: 'sleep 1000' }]);
      const dashed = await run(runner, `-x; ${command}`);
      assert.deepEqual(
        dashed.background.filter(({ pid }) => pid !== Number(stdout)),
        [{ pid: Number(dashed.stdout), command: 'sleep 1000' }],
      );
      await using verbatim = await bound({ agent: VERBATIM });
      const before = await run(verbatim, command);
      assert.equal(before.background.length, 2);
      assert.notEqual(
        before.background.find((process) => process.command === 'sleep 1000')?.pid,
        Number(before.stdout),
      );
    },
  );

  test('rewriteBackground: false gives bash every text verbatim', async () => {
    const command = 'true && sleep 0 & wait; tr "\\0" "\\n" </proc/$$/cmdline';
    const given = async (agent: Partial<AgentSpec>) => {
      await using runner = await bound({ agent });
      return (await run(runner, command)).stdout;
    };
    const words = (text: string) => ['-c', text, 'bash', ''];
    assert.deepEqual((await given(VERBATIM)).split('\n').slice(1), words(command));
    assert.deepEqual((await given(SHELL)).split('\n').slice(1), words(command.replace('sleep', 'exec sleep')));
  });

  test('a server outlives its turn, serves the next, and kill $! ends it', async () => {
    await using runner = await bound();
    const start = await run(runner, 'mkdir d && cd d && sleep 1000 >log 2>&1 & echo $!');
    const pid = Number(start.stdout);
    assert.equal((await run(runner, `kill -0 ${pid} && echo alive`)).stdout, 'alive\n');
    await run(runner, `kill ${pid}`);
    await eventually(() => !exists(pid), { what: 'the end of the server' });
  });

  test('no process is left when the session ends, however it detached', skipIf(noKeeper), async () => {
    const runner = await bound();
    const { stdout } = await run(
      runner,
      `true && sleep 1001 & echo $!
setsid sleep 1002 & echo $!
(setsid sh -c 'sleep 1003 & echo $! > pid' &); until [ -s pid ]; do :; done; cat pid
nohup sleep 1004 >/dev/null 2>&1 & disown; echo $!
trap '' TERM; sleep 1005 & echo $!`,
    );
    const pids = stdout.trim().split('\n').map(Number);
    assert.ok(pids.length === 5 && pids.every(exists), stdout);
    await runner[Symbol.asyncDispose]();
    await eventually(() => !pids.some(exists) && runner.processes().length === 0, { what: 'the end of all of them' });
  });

  test('background processes get SIGTERM before SIGKILL', async () => {
    await using runner = await bound();
    const loop = `trap 'echo bye > bye; exit' TERM; echo > ready; while :; do sleep 0.05; done`;
    await run(runner, `sh -c "${loop}" & until [ -e ready ]; do :; done`);
    runner.send('shutdown', { graceMs: 60_000 });
    await runner.exited;
    assert.equal(readFileSync(join(runner.directory('work'), 'bye'), 'utf8'), 'bye\n');
  });

  test(
    'a cancelled turn keeps what it printed and takes its own background along, not an earlier turn’s',
    skipIf(noKeeper),
    async () => {
      await using runner = await bound();
      const earlier = Number((await run(runner, 'true && sleep 1000 & echo $!')).stdout);
      const turn = runner.startTurn({ command: 'true && sleep 1000 & echo $! | tee pid; sleep 1000' });
      const file = join(runner.directory('work'), 'pid');
      await eventually(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), { what: 'the pid' });
      runner.send('cancel', { turn, outcome: 'Cancelled' });
      const result = await runner.result(turn);
      const own = Number(readFileSync(file, 'utf8'));
      assert.deepEqual(
        [result.outcome, result.error?.code, outputOf(result).stdout],
        ['Cancelled', 'Cancelled', `${own}\n`],
      );
      assert.deepEqual([outputOf(result).background, exists(own), exists(earlier)], [[], false, true]);
    },
  );

  test('a turn that runs too long is stopped with all that it started', skipIf(noKeeper), async () => {
    await using runner = await bound();
    const result = await longEnough(
      (limitMs) => runner.runTurn({ command: 'echo begun; true && sleep 1000 & sleep 1000' }, limitMs),
      (ended) => outputOf(ended).stdout === 'begun\n',
    );
    assert.deepEqual([result.outcome, result.error?.code], ['TimedOut', 'TurnTimedOut']);
    assert.equal(outputOf(result).stdout, 'begun\n');
    await eventually(() => runner.processes().length === 0, { what: 'the end of all processes' });
  });

  test('texts that a rewrite would change run verbatim: a program that does not exist, a BASH_ENV, text that bash does not parse', async () => {
    await using runner = await bound();
    const missing = await run(runner, 'true && nosuch & wait $!; echo $?');
    assert.deepEqual([missing.stdout, missing.stderr], ['127\n', 'bash: line 1: nosuch: command not found\n']);
    const library = join(runner.directory('work'), 'library');
    writeFileSync(library, 'ls() { echo "not the program"; }\n');
    const { stdout } = await run(runner, 'true && ls & wait', { env: { BASH_ENV: library } });
    assert.equal(stdout, 'not the program\n');
    const once = join(runner.directory('work'), 'once');
    writeFileSync(once, 'echo read >> times\n');
    assert.equal((await run(runner, 'cat times', { env: { BASH_ENV: once } })).stdout, 'read\n');
    const broken = await run(runner, 'true && ls & true(');
    assert.match(broken.stderr, /syntax error.*\n.*`true && ls & true\('/);
    const script = join(runner.directory('work'), 'run.sh');
    writeFileSync(script, '#!/bin/sh\necho "$0"\n');
    chmodSync(script, 0o755);
    assert.equal((await run(runner, 'true && ./run.sh & wait')).stdout, './run.sh\n');
    assert.equal((await run(runner, `true && ${script} & wait`)).stdout, `${script}\n`);
  });
});
