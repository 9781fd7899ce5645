import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { ContainedRunner, noContainer, stageImage } from '../../support/contained-runner.ts';
import { skipIf } from '../../support/requires.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

/** An agent that runs what its turn brings, in the state directory, which is empty at first. */
const CLEAN =
  'chmod -R u+rwx "$BERTH_STATE_DIR" 2>/dev/null; rm -rf "$BERTH_STATE_DIR"; mkdir "$BERTH_STATE_DIR"; cd "$BERTH_STATE_DIR"';
const agent = { result: 'Text' as const, input: 'Args' as const, args: [`${CLEAN}; eval "$0"`, '$(INPUT)'] };

const stored = (result: { outcome: string; state: unknown }) => [result.outcome, typeof result.state];
const python = (code: string) => `python3 - <<'END'\nimport os, socket\n${code}\nEND`;

/** A later incarnation of the session, restored from the last state that was sent. */
async function restored(runner: RunnerHarness): Promise<RunnerHarness> {
  const state = runner.frames('state').at(-1);
  assert.ok(state);
  const { digest, keyId } = state.message;
  const next = new RunnerHarness({
    agent: { ...agent, args: ['cd "$BERTH_STATE_DIR"; eval "$0"', '$(INPUT)'] },
    after: runner,
    bind: { incarnation: 2, restores: { digest, incarnation: 1, seq: 1 } },
  });
  await next.ready();
  next.bind();
  await next.frame('bound');
  next.restore({ digest, keyId }, runner.sealState(runner.openState(state)));
  return next;
}

describe('a hostile state directory', () => {
  let runner: RunnerHarness;
  beforeAll(async () => {
    runner = await RunnerHarness.bound({ agent });
  });
  afterEach(async () => {
    execFileSync('rm', ['-rf', runner.directory('state')]);
    assert.equal((await runner.runTurn('echo next')).output, 'next\n', 'the session goes on');
  });
  afterAll(() => runner[Symbol.asyncDispose]());

  const kept: [what: string, script: string, check: string][] = [
    [
      'links that lead outside',
      'ln -s /etc/passwd a; ln -s ../../.. b; ln -s / c',
      'readlink a b c | tr "\\n" " "; ls -A | wc -l',
    ],
    [
      'links in a circle, and to nothing',
      'ln -s b a; ln -s a b; ln -s . c; ln -s nowhere d',
      'readlink a b c d | tr "\\n" " "',
    ],
    [
      'hard links within it, and a file that has another name elsewhere',
      'echo x > a; ln a b; ln /etc/hostname c 2>/dev/null || echo h > c',
      'cat a b; stat -c %h a',
    ],
    [
      'names with line feeds, quotes and backslashes',
      `touch -- $'a\\nb' $'c\\td' 'e"f' 'g\\h' ' ' '-rf' '*' '$(x)'`,
      'ls -A1b | sort',
    ],
    [
      'names of 255 bytes, and below 11 more',
      `n=$(printf "é%.0s" {1..127}); touch "$n"; for i in 1 2 3 4 5 6 7 8 9 10 11; do mkdir "$n$i" 2>/dev/null || mkdir "\${n%?}$i"; cd "\${n%?}$i" 2>/dev/null || cd "$n$i"; done; echo deep > f`,
      'find . -type f -name f | xargs cat; find . -type d | wc -l',
    ],
    ['a tree of 400 levels', 'for i in {1..400}; do mkdir d; cd d; done; echo deep > f', 'find . -name f | wc -c'],
    [
      'times before 1970 and after 2038',
      'touch -d 1901-01-01 a; touch -d 2200-01-01 b; touch -d @99999999999 c 2>/dev/null || touch c',
      'ls -A1',
    ],
    ['a sparse file of 200 MB', 'truncate -s 200000000 a; echo end >> a', 'stat -c %s a; tail -c 4 a'],
    [
      'a file that is only to be executed, a set-uid bit',
      'printf x > a; chmod 4711 a; mkdir b; chmod 1777 b',
      'stat -c "%a %n" a b',
    ],
  ];
  for (const [what, script, check] of kept) {
    test(`with ${what} is stored and comes back the same`, async () => {
      const result = await runner.runTurn(`(${script}) && echo done`);
      assert.deepEqual(
        [...stored(result), result.output],
        ['Succeeded', 'object', 'done\n'],
        JSON.stringify(result.error),
      );
      const before = execFileSync('bash', ['-c', check], { cwd: runner.directory('state'), encoding: 'utf8' });
      await using next = await restored(runner);
      const { output } = await next.runTurn(check);
      const bits = (text: string) => text.replace(/^4711|^1777/gm, (mode) => mode.slice(1));
      assert.equal(output, bits(before));
      execFileSync('rm', ['-rf', next.directory('state')]);
    });
  }

  const left: [what: string, script: string, said: RegExp][] = [
    [
      'pipes, sockets and devices',
      `mkfifo fifo; ${python("s = socket.socket(socket.AF_UNIX); s.bind('sock')")}\nmknod dev c 1 5 2>/dev/null || mkfifo dev; echo x > file`,
      /not stored, as neither file.*"dev", "fifo", "sock"/,
    ],
    [
      'a thousand pipes',
      'for i in {1..1000}; do echo p$i; done | xargs mkfifo; echo x > file',
      /not stored.*"p1", .* and 990 more\]/,
    ],
    [
      'a pipe whose name is two lines',
      `mkfifo $'a\\n[berth: bound]'; echo x > file`,
      /not stored.*: "a\\n\[berth: bound\]"\]/,
    ],
  ];
  for (const [what, script, said] of left) {
    test(`with ${what} is stored without them, and the log says so`, async () => {
      const from = runner.stderr.length;
      assert.deepEqual(stored(await runner.runTurn(script)), ['Succeeded', 'object']);
      assert.match(runner.stderr.slice(from), said);
    });
  }

  const refused: [what: string, script: string, code: string, message: RegExp][] = [
    ['a name that is not UTF-8', python("open(b'a\\xff', 'w')"), 'StateNotStored', /the name of .* is not UTF-8/],
    [
      'a link whose target is not UTF-8',
      python("os.symlink(b'a\\xff', b'link')"),
      'StateNotStored',
      /the target of "link" is not UTF-8/,
    ],
    ['a sparse file of 8 TB', 'truncate -s 8T a', 'StateTooLarge', /8796093022208|8796\d+ bytes/],
    [
      '100 names of one file of 4 MB',
      'truncate -s 4M a; for i in {1..99}; do ln a a$i; done',
      'StateTooLarge',
      /bytes as an archive/,
    ],
    ['noise of 40 MB', 'head -c 40000000 /dev/urandom > a', 'StateTooLarge', /packed/],
    [
      'a tree deeper than a path may be',
      python("for i in range(1100): os.mkdir('dddd'); os.chdir('dddd')\nopen('f','w')"),
      'StateNotStored',
      /the path "dddd\/.* has \d+ bytes; at most 3072 can be stored/,
    ],
    [
      'a link in its own place',
      'cd /; rm -rf "$BERTH_STATE_DIR"; ln -s / "$BERTH_STATE_DIR"',
      'StateNotStored',
      /no directory any more/,
    ],
    [
      'a link to the runner’s files in its own place',
      'cd /; rm -rf "$BERTH_STATE_DIR"; ln -s /proc/$(ps -o ppid= $PPID | tr -d " ")/ "$BERTH_STATE_DIR"',
      'StateNotStored',
      /no directory any more/,
    ],
    [
      'a file in its own place',
      'cd /; rm -rf "$BERTH_STATE_DIR"; echo x > "$BERTH_STATE_DIR"',
      'StateNotStored',
      /no directory any more/,
    ],
    [
      'a pipe in its own place',
      'cd /; rm -rf "$BERTH_STATE_DIR"; mkfifo "$BERTH_STATE_DIR"',
      'StateNotStored',
      /no directory any more/,
    ],
  ];
  for (const [what, script, code, message] of refused) {
    test(`with ${what} fails the turn with ${code}`, async () => {
      const result = await runner.runTurn(script);
      assert.deepEqual([result.outcome, result.error?.code], ['Failed', code], JSON.stringify(result));
      assert.match(result.error?.message ?? '', message);
    });
  }

  test('that is gone is a state without files', async () => {
    assert.deepEqual(stored(await runner.runTurn('touch x')), ['Succeeded', 'object']);
    const result = await runner.runTurn('cd /; rm -rf "$BERTH_STATE_DIR"');
    assert.deepEqual(stored(result), ['Succeeded', 'object']);
    const state = runner.frames('state').at(-1);
    assert.equal(state?.message.bytes, 1024);
  });

  test('that is gone with the working directory and HOME is there again in the next turn', async () => {
    await runner.runTurn('cd /; rm -rf "$BERTH_STATE_DIR" "$OLDPWD" "$HOME"');
    const result = await runner.runTurn('touch "$BERTH_STATE_DIR/a" "$PWD/b" "$HOME/c"');
    assert.deepEqual(stored(result), ['Succeeded', 'object'], JSON.stringify(result));
  });

  test('that changes all the time while it is packed gives a state or a clear failure, never a hang', async () => {
    const churn = python(`
import time
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    end = time.time() + 1.5
    os.mkdir('d')
    for i in range(200): open('d/%03d' % i, 'w').write('x' * 10000)
    while time.time() < end:
        for act in (lambda: os.rename('d', 'e'), lambda: os.symlink('/etc', 'd'), lambda: os.unlink('d'), lambda: os.rename('e', 'd'),
                    lambda: os.truncate('d/000', 10**12), lambda: os.truncate('d/000', 10), lambda: os.unlink('d/001'), lambda: os.mkfifo('d/001'),
                    lambda: os.unlink('d/001'), lambda: os.symlink('/etc/shadow', 'd/001'), lambda: os.unlink('d/001'), lambda: os.mkdir('d/001'), lambda: os.rmdir('d/001')):
            try: act()
            except OSError: pass
    os._exit(0)`);
    const keep = {
      result: 'Text' as const,
      input: 'Args' as const,
      args: ['cd "$BERTH_STATE_DIR"; eval "$0"', '$(INPUT)'],
    };
    await using other = await RunnerHarness.bound({ agent: keep });
    await other.runTurn(churn);
    for (let i = 0; i < 10; i++) {
      const { outcome, error } = await other.runTurn('sleep 0.05');
      const known = outcome === 'Succeeded' || ['StateNotStored', 'StateTooLarge'].includes(error?.code ?? '');
      assert.ok(known, JSON.stringify(error));
    }
  });

  test('of more than 131,072 empty files fails the turn with StateTooLarge, in bounded memory', async () => {
    await using other = await RunnerHarness.bound({ agent });
    const peak = () => 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${other.pid}/status`, 'utf8'))?.[1]);
    const before = peak();
    const result = await other.runTurn(`perl -e 'open(F, ">", $_) for 1..131073'`);
    assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'StateTooLarge']);
    assert.match(result.error?.message ?? '', /more than 131072 files/);
    assert.ok(peak() - before < 100e6, `${(peak() - before) / 1e6} MB`);
    execFileSync('rm', ['-rf', other.directory('state')]);
  });
});

describe('a state directory that its owner cannot read', skipIf(noContainer), () => {
  test('fails the turn with StateNotStored and the name, and the session goes on', async () => {
    const image = await stageImage();
    await using runner = await ContainedRunner.bound({ image, agent });
    for (const script of ['mkdir a; chmod 0 a', 'echo x > a; chmod 0 a', 'chmod 0 .']) {
      const { outcome, error } = await runner.runTurn(script);
      assert.deepEqual([outcome, error?.code], ['Failed', 'StateNotStored'], script);
      assert.match(error?.message ?? '', /cannot be read \(EACCES\)/);
    }
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
    rmSync(image, { recursive: true });
  });
});

describe('a hostile result file', () => {
  const envelope = '{"status":"success","output":"filed"}';
  let runner: RunnerHarness;
  let outside: string;
  beforeAll(async () => {
    outside = mkdtempSync(join(tmpdir(), 'berth-outside-'));
    writeFileSync(join(outside, 'result'), envelope);
    runner = await RunnerHarness.bound({ agent: { result: 'Envelope', input: 'Args', args: ['$(INPUT)'] } });
  });
  afterAll(async () => {
    await runner[Symbol.asyncDispose]();
    rmSync(outside, { recursive: true });
  });

  const cases: [what: string, script: () => string, error: RegExp][] = [
    ['a link', () => `ln -s ${outside}/result $BERTH_RESULT_FILE`, /cannot be read: ELOOP/],
    ['a link to itself', () => 'ln -s $BERTH_RESULT_FILE $BERTH_RESULT_FILE', /cannot be read: ELOOP/],
    ['a pipe', () => 'mkfifo $BERTH_RESULT_FILE', /not a regular file/],
    [
      'a pipe with a writer',
      () => `mkfifo $BERTH_RESULT_FILE; (echo '${envelope}' > $BERTH_RESULT_FILE) >/dev/null 2>&1 & sleep 0.1`,
      /not a regular file/,
    ],
    ['a directory', () => 'mkdir -p $BERTH_RESULT_FILE/a/b; touch $BERTH_RESULT_FILE/a/b/c', /not a regular file/],
    ['a device', () => 'mknod $BERTH_RESULT_FILE c 1 5', /not a regular file|ENXIO|EACCES/],
    [
      'a socket',
      () => python("s = socket.socket(socket.AF_UNIX); s.bind(os.environ['BERTH_RESULT_FILE'])"),
      /cannot be read: ENXIO/,
    ],
    ['a sparse file of 1 TB', () => 'truncate -s 1T $BERTH_RESULT_FILE', /the output has 1099511627776 bytes/],
    ['half of an envelope', () => `printf '{"status":"succ' > $BERTH_RESULT_FILE`, /not valid JSON/],
  ];
  for (const [what, script, error] of cases) {
    test(`that is ${what} fails the turn and is gone afterwards`, async () => {
      const result = await runner.runTurn(script());
      assert.equal(result.outcome, 'Failed');
      assert.match(result.error?.message ?? '', error);
      assert.deepEqual(
        readdirSync(runner.directory('run')).filter((name) => name.startsWith('result')),
        [],
      );
    });
  }

  test('that its agent writes again after the turn changes nothing', async () => {
    const again = `f=$BERTH_RESULT_FILE; echo '${envelope}' > $f; (until [ -e go ]; do sleep 0.02; done; echo '{"status":"error","error":"late"}' > $f; touch said) >/dev/null 2>&1 &`;
    assert.equal((await runner.runTurn(again)).output, 'filed');
    assert.equal(
      (await runner.runTurn(`touch go; until [ -e said ]; do :; done; echo '${envelope}' > $BERTH_RESULT_FILE`)).output,
      'filed',
    );
  });

  test('a link outside instead of the runner’s folder: nothing outside is removed, and the session goes on', async () => {
    await using other = await RunnerHarness.bound({ agent: { result: 'Text', input: 'Args', args: ['$(INPUT)'] } });
    const away = join(outside, 'away');
    mkdirSync(away);
    writeFileSync(join(away, 'kept'), 'x');
    await other.runTurn(`run=$(dirname $BERTH_SOCKET); rm -rf $run; ln -s ${away} $run`);
    assert.equal((await other.runTurn('echo next')).output, 'next\n');
    assert.equal(readFileSync(join(away, 'kept'), 'utf8'), 'x');
  });

  test('folders of the session that are gone or are files make clear errors', async () => {
    await using other = await RunnerHarness.bound({ agent: { result: 'Text', input: 'Args', args: ['$(INPUT)'] } });
    await other.runTurn('cd /; rm -rf $HOME $TMPDIR $(dirname $BERTH_SOCKET); echo x > $HOME');
    assert.equal((await other.runTurn('echo next')).output, 'next\n');
    await other.runTurn(`cd /; rm -rf ${other.directory('work')}; touch ${other.directory('work')}`);
    const { outcome, error } = await other.runTurn('echo next');
    assert.deepEqual([outcome, error?.code], ['Failed', 'WorkingDirInvalid']);
    assert.ok(lstatSync(other.directory('work')).isFile() && statSync(other.root).isDirectory());
  });
});
