import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parse } from 'yaml';
import { frameText } from '../../../core/frames/encode.ts';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { systemRandom } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const EXAMPLES = join(import.meta.dirname, '..', '..', '..', 'examples');
const NODE = process.execPath;
const caller = new Caller(EXAMPLES);
/** A program that prints what the JavaScript expression gives. */
const js = (expression: string) => ['--', NODE, '-e', `process.stdout.write(${expression})`];

let kubeconfig: string;
beforeAll(async () => {
  kubeconfig = await caller.ok('local', 'up', '--detach');
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
});

describe('berth local', () => {
  test('up --detach prints one line, the path of the kubeconfig, and so does kubeconfig', async () => {
    assert.equal(kubeconfig, `${join(caller.home, 'kubeconfig')}\n`);
    assert.equal(await caller.ok('local', 'kubeconfig'), kubeconfig);
  });
  test('up --detach says so where KUBECONFIG hides the cluster from later commands', async () => {
    const own = kubeconfig.trim();
    const other = join(caller.root, 'other');
    writeFileSync(other, '{}');
    for (const KUBECONFIG of ['/elsewhere', other, `${other}:${own}`]) {
      const { code, stderr } = await caller.berth(['local', 'up', '--detach'], { env: { KUBECONFIG } });
      assert.equal(code, 0);
      assert.match(
        stderr,
        /KUBECONFIG names another file: berth goes on using it\. To use this cluster: unset KUBECONFIG/,
      );
    }
  });
  test('up --detach does not say so where KUBECONFIG names the cluster’s own file first', async () => {
    const own = kubeconfig.trim();
    const link = join(caller.root, 'link');
    symlinkSync(own, link);
    for (const KUBECONFIG of [own, link, `${own}:/elsewhere`, `/nowhere:${own}`, `:${own}`]) {
      const { code, stderr } = await caller.berth(['local', 'up', '--detach'], { env: { KUBECONFIG } });
      assert.deepEqual([code, stderr], [0, ''], KUBECONFIG);
    }
  });
});

describe('berth version', () => {
  test('prints the versions of client, controller and Kubernetes', async () => {
    assert.match(
      await caller.ok('version'),
      /^client +\d+\.\d+\.\d+\ncontroller +\d+\.\d+\.\d+\nkubernetes +v1\.\d+\.\d+\+berth-embedded\n$/,
    );
    const { client, server } = JSON.parse(await caller.ok('version', '-o', 'json'));
    assert.deepEqual(server.installations, [{ version: client }]);
    assert.equal(parse(await caller.ok('version', '-o', 'yaml')).client, client);
  });
  test('prints the client’s alone with --client, and where no cluster answers, which ends with 3', async () => {
    const env = { KUBECONFIG: '/nowhere' };
    const alone = await caller.berth(['version', '--client'], { env });
    assert.deepEqual([alone.code, alone.stderr], [0, '']);
    const { code, stdout, stderr } = await caller.berth(['version'], { env });
    assert.deepEqual([code, stdout], [3, alone.stdout]);
    assert.match(stderr, /no file named in KUBECONFIG exists/);
  });
});

describe('berth logs -', () => {
  test('prints what kubectl logs prints of a session’s pod without the frames, and needs no cluster', async () => {
    const channel = { session: 's', incarnation: 1, boot: 'b', key: randomBytes(32), random: systemRandom };
    const frame = [...frameText(channel, 1, 'log', randomBytes(30_000))].join('');
    const env = { KUBECONFIG: '/nowhere' };
    const { code, stdout } = await caller.berth(['logs', '-'], { stdin: `one\n${frame}two\nthree`, env });
    assert.deepEqual([code, stdout], [0, 'one\ntwo\nthree']);
  });
  test('refuses what only a session has', async () => {
    for (const flag of [['--turn', 'x'], ['-f']]) {
      const { code, stderr } = await caller.berth(['logs', '-', ...flag]);
      assert.equal(code, 2);
      assert.match(stderr, /--turn and --follow need a session’s name instead of -/);
    }
  });
  test('ends by a signal while it waits for more', async () => {
    const { child, ended } = caller.start(['logs', '-'], { stdin: null });
    child.stdin?.write('first\n');
    await once(child.stdout as Readable, 'data');
    child.kill('SIGINT');
    assert.equal((await ended).code, 130);
  });
});

describe('berth run', () => {
  test('prints the answer between the markers as JSON, and nothing else on stdout', async () => {
    const { code, stdout } = await caller.berth(['run', '--input', '{"n": 3}', '--', 'python3', 'agent.py']);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: '{"n":3,"square":9}\n' });
  });
  test('takes all of stdout as JSON with --result json', async () => {
    assert.equal(await caller.ok('run', '--result', 'json', ...js(`'{"a": [1, "é"]}'`)), '{"a":[1,"é"]}\n');
  });
  test('prints a string as it is', async () => {
    assert.equal(await caller.ok('run', '--result', 'text', ...js(`'two\\nlines'`)), 'two\nlines\n');
  });
  test('prints null where an agent has no output', async () => {
    assert.equal(await caller.ok('run', '--result', 'json', ...js(`'null'`)), 'null\n');
  });
  test('prints an output beyond 16 KiB whole', async () => {
    const printed = await caller.ok('run', '--result', 'text', ...js(`'é'.repeat(400_000)`));
    assert.ok(printed === `${'é'.repeat(400_000)}\n`, `${printed.length} characters were printed`);
  });
  test('-o json prints the whole Turn, with an output from the store in it', async () => {
    const small = JSON.parse(
      await caller.ok('run', '-o', 'json', '--input', '{"n": 2}', '--', './agent.py'),
    ) as StoredTurn;
    assert.equal(small.kind, 'Turn');
    assert.equal(small.status?.phase, 'Succeeded');
    assert.deepEqual([small.spec.input, small.status?.output], [{ n: 2 }, { n: 2, square: 4 }]);
    const large = JSON.parse(await caller.ok('run', '-o', 'json', '--result', 'text', ...js(`'x'.repeat(50_000)`)));
    assert.equal(large.status.output, 'x'.repeat(50_000));
  });
  test('reads the input from a file and from stdin', async () => {
    const { stdout } = await caller.berth(['run', '--input-file', '-', '--', './agent.py'], { stdin: '{"n": 5}' });
    assert.equal(stdout, '{"n":5,"square":25}\n');
  });
  test('takes a string by --text and --text-file, unchanged', async () => {
    const given = async (flags: string[], stdin = '') => {
      const args = ['run', '--result', 'json', '--input-as', 'text', ...flags];
      const { stdout, stderr } = await caller.berth([...args, ...js(`JSON.stringify([fs.readFileSync(0, 'utf8')])`)], {
        stdin,
      });
      return JSON.parse(stdout || stderr)[0];
    };
    assert.equal(await given(['--text', 'it\'s "so"\n']), 'it\'s "so"\n');
    assert.equal(await given(['--text-file', '-'], '{"n": 5}\n'), '{"n": 5}\n');
    const text = readFileSync(join(EXAMPLES, 'agent.sh'), 'utf8');
    assert.equal(await given(['--text-file', 'agent.sh']), text);
  });
  test('reads the input from a pipe or a file on stdin, which may be empty, and from nothing else', async () => {
    const pipe = join(caller.root, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const file = join(caller.root, 'input.json');
    const input = async (content: string, flags: string[] = []) => {
      const args = [
        'run',
        '--result',
        'json',
        ...flags,
        ...js(`JSON.stringify(JSON.parse(require('fs').readFileSync(0)).input)`),
      ];
      writeFileSync(file, content);
      const fromFile = await withOpen(file, 'r', (stdin) => caller.berth(args, { stdin }));
      // Opening a pipe for reading waits for its writer unless it is told not to.
      const fromPipe = await withOpen(pipe, constants.O_RDONLY | constants.O_NONBLOCK, (stdin) => {
        const writer = openSync(pipe, 'w');
        const { ended } = caller.start(args, { stdin });
        writeSync(writer, content);
        closeSync(writer);
        return ended;
      });
      assert.deepEqual([fromPipe.code, fromPipe.stdout], [fromFile.code, fromFile.stdout]);
      return fromFile.stdout || fromFile.stderr;
    };
    assert.equal(await input('{"n": 5}\n'), '{"n":5}\n');
    assert.equal(await input(''), 'null\n');
    assert.equal(await input('{"n": 5}', ['--text', 'flag']), 'flag\n');
    assert.match(await input('hello'), /stdin is not JSON: line 1, column 1: .*\nTo give it as text: --text-file -/);
    const socket = await caller.berth(['run', '--result', 'text', '--', 'echo', 'ran'], { stdin: 'hello' });
    assert.equal(socket.stdout, 'ran\n');
  });
  test('says that it waits for a pipe that stays open, and Ctrl-C ends it with 130', async () => {
    const pipe = join(caller.root, 'open');
    execFileSync('mkfifo', [pipe]);
    // The command itself can write to the pipe then, so that the pipe stays open.
    await withOpen(pipe, 'r+', async (stdin) => {
      const { child, ended } = caller.start(['run', '--name', 'unbegun', '--', 'true'], { stdin });
      let told = '';
      child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
        told += chunk;
      });
      await eventually(() => told.includes('waiting for the end of stdin'), {
        what: 'the command says what it waits for',
      });
      child.kill('SIGINT');
      assert.equal((await ended).code, 130);
      assert.equal((await caller.berth(['get', 'unbegun'])).code, 2);
    });
  });
  test('hands the input over as text, as a file and in the arguments', async () => {
    const as = (kind: string, input: string, ...words: string[]) =>
      caller.ok('run', '--result', 'text', '--input-as', kind, '--input', input, '--', ...words);
    assert.equal(await as('text', '"a\\"b"', 'cat'), 'a"b\n');
    assert.match(await as('file', '[1]', 'sh', '-c', 'cat "$BERTH_INPUT_FILE"'), /"input":\[1\]/);
    assert.equal(await as('args', '{"who": "Ann; ls"}', 'echo', 'hello', '$(INPUT.who)'), 'hello Ann; ls\n');
  });
  test('takes program and variables from the caller’s environment and runs in the caller’s directory', async () => {
    const args = [
      'run',
      '--result',
      'text',
      '--env',
      'FOO',
      '--env',
      'BAR=1=2',
      '--',
      'sh',
      '-c',
      'echo "$FOO $BAR $PWD"',
    ];
    const { stdout } = await caller.berth(args, { env: { FOO: 'from me' } });
    assert.equal(stdout, `from me 1=2 ${EXAMPLES}\n`);
    assert.equal(
      await caller.ok('run', '--result', 'text', '--workdir', '..', '--', 'pwd'),
      `${join(EXAMPLES, '..')}\n`,
    );
  });
  test('ends with 1 when the agent fails, the error on stderr', async () => {
    const { code, stdout, stderr } = await caller.berth(['run', '--', 'sh', '-c', 'echo it broke >&2; exit 3']);
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
    assert.match(stderr, /AgentFailed: exit code 3.*it broke/s);
  });
  test('ends with 124 when the turn times out', async () => {
    const { code, stderr } = await caller.berth(['run', '--timeout', '200ms', '--', 'sleep', '60']);
    assert.equal(code, 124);
    assert.match(stderr, /TurnTimedOut: the turn ran longer than its timeout of 200ms and was stopped/);
  });
  test('ends with 130 on Ctrl-C, and the turn is cancelled', async () => {
    const { child, ended } = caller.start(['run', '--name', 'interrupted', '--', 'sleep', '600']);
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await eventually(() => told.includes('session interrupted\n'), { what: 'the command waits' });
    await eventually(async () => (await turnNamed('interrupted'))?.status?.phase === 'Running', {
      what: 'the turn runs',
    });
    child.kill('SIGINT');
    assert.equal((await ended).code, 130);
    assert.equal((await turnNamed('interrupted'))?.status?.phase, 'Cancelled');
    const finished = async () =>
      (await sessionNamed('interrupted')).status?.conditions?.find(({ type }) => type === 'Finished')?.reason;
    await eventually(async () => (await finished()) === 'Cancelled', { what: 'the session has the turn’s code' });
  });
  test('runs what its flags ask for under the name they give, and the finished session refuses to be suspended or restarted', async () => {
    await caller.ok('run', '--name', 'named', '--result', 'text', '--', 'true');
    const got = async () => JSON.parse(await caller.ok('get', 'named', '-o', 'json')) as StoredSession;
    assert.equal((await got()).spec.turns, 'One');
    // A run ends with its turn, and the session's status is written after that.
    await eventually(async () => (await got()).status?.phase === 'Finished', { what: 'the session is finished' });
    for (const args of [['suspend'], ['suspend', '--hold'], ['suspend', '--no-wait'], ['restart']]) {
      const late = await caller.berth([...args, 'named']);
      assert.deepEqual([late.code, late.stdout], [2, '']);
      assert.match(late.stderr, /session named is finished: it has no pod, and takes no turn/);
    }
    const again = await caller.berth(['run', '--name', 'named', '--', 'true']);
    assert.equal(again.code, 2);
    assert.match(again.stderr, /"named" already exists/);
  });
});

describe('a session', () => {
  test('remembers over turns, a suspension and a hold', async () => {
    assert.match(
      await caller.ok('create', 'notes', '--class', 'default', '--', 'python3', 'notes.py'),
      /notes created/,
    );
    assert.equal(await caller.ok('turn', 'notes', '--input', '"hello"'), '{"notes":["hello"]}\n');
    await caller.ok('suspend', 'notes');
    assert.equal((await sessionNamed('notes')).status?.podName, undefined);
    assert.equal(await caller.ok('turn', 'notes', '--input', '"again"'), '{"notes":["hello","again"]}\n');
    assert.equal((await sessionNamed('notes')).status?.incarnation, 2);

    await caller.ok('suspend', 'notes', '--hold');
    const queued = (await caller.ok('turn', 'notes', '--no-wait', '--input', '"held"')).trim();
    await eventually(async () => (await turnNamed(queued))?.status?.phase === 'Queued', { what: 'the turn is held' });
    await caller.ok('resume', 'notes');
    await eventually(async () => (await turnNamed(queued))?.status?.phase === 'Succeeded', { what: 'the turn ran' });
  });
  test('takes a text that stands alone on the command line, as --text', async () => {
    await caller.ok('create', 'upper', '--input-as', 'text', '--result', 'text', '--', 'tr', 'a-z', 'A-Z');
    assert.equal(await caller.ok('turn', 'upper', 'it is "so"'), 'IT IS "SO"\n');
    assert.equal(await caller.ok('turn', 'upper', '--', '-n'), '-N\n');
  });
  test('is restarted between two turns: the next one has a new pod, and its state', async () => {
    await caller.ok('create', 'renewed', '--', 'python3', 'notes.py');
    await caller.ok('turn', 'renewed', '--input', '"before"');
    const { code, stdout, stderr } = await caller.berth(['restart', 'renewed']);
    assert.deepEqual([code, stdout], [0, 'session.berth.dev/renewed restarted\n'], stderr);
    assert.match(stderr, /its next turn starts a new pod/);
    assert.equal(await caller.ok('turn', 'renewed', '--input', '"after"'), '{"notes":["before","after"]}\n');
    assert.equal((await sessionNamed('renewed')).status?.incarnation, 2);
    await caller.ok('suspend', 'renewed');
    assert.equal(await caller.ok('restart', 'renewed'), 'session.berth.dev/renewed has no pod\n');
  });
  test('restarts once its running turn has ended, also when nobody waits for it any more', async () => {
    const script = 'read -r go; until [ -e "$go" ]; do sleep 0.05; done; echo done';
    const released = join(caller.root, 'released');
    await caller.ok('create', 'slow', '--input-as', 'text', '--result', 'text', '--', 'sh', '-c', script);
    const turn = (await caller.ok('turn', 'slow', '--no-wait', '--input', JSON.stringify(released))).trim();
    await eventually(async () => (await sessionNamed('slow')).status?.currentTurn === turn, { what: 'the turn runs' });
    const late = await caller.berth(['restart', 'slow', '--timeout', '300ms']);
    assert.deepEqual([late.code, late.stdout], [124, '']);
    assert.match(late.stderr, new RegExp(`waiting: turn ${turn} ends first`));
    assert.match(late.stderr, /still restarts once its turn has ended\n.*has not restarted within 300ms/);
    const { child, ended } = caller.start(['restart', 'slow']);
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await eventually(() => told.includes('ends first'), { what: 'the command waits' });
    child.kill('SIGINT');
    assert.equal((await ended).code, 130);
    assert.equal(await caller.ok('restart', 'slow', '--no-wait'), 'session.berth.dev/slow asked to restart\n');
    writeFileSync(released, '');
    await eventually(async () => (await turnNamed(turn))?.status?.phase === 'Succeeded', { what: 'the turn ends' });
    await eventually(async () => !(await sessionNamed('slow')).status?.podName, { what: 'its pod is given up' });
  });
  test('whose turn waits for an approval is suspended, and that is waited for', async () => {
    const script = `printf '%s {"status":"approval","prompt":"Go on?"} %s' "$BERTH_RESULT_START_MARKER" "$BERTH_RESULT_END_MARKER"`;
    await caller.ok('create', 'asker', '--', 'sh', '-c', script);
    const turn = (await caller.ok('turn', 'asker', '--no-wait')).trim();
    const asks = async () => {
      const { status } = (await turnNamed(turn)) ?? {};
      assert.equal(status?.phase, 'AwaitingApproval', JSON.stringify(status));
      return true;
    };
    await eventually(asks, { what: 'the turn asks' });
    assert.match(await caller.ok('suspend', 'asker'), /asker suspended/);
    assert.equal((await sessionNamed('asker')).status?.podName, undefined);
  });
  test('takes a turn that comes at once after a suspension that was not waited for', async () => {
    await caller.ok('suspend', 'notes', '--no-wait');
    assert.match(await caller.ok('turn', 'notes', '--input', '"quick"'), /"quick"\]/);
  });
  test('is shown with its conditions and turns, and as kubectl does', async () => {
    const text = await caller.ok('get', 'notes');
    assert.match(text, /program +.*python3 notes\.py\n/);
    assert.match(text, /StatePersisted +True +StateStored/);
    assert.match(text, /\n1 +notes-\w{13} +Succeeded +\S+ +\{"notes":\["hello"\]\}\n2 /);
    assert.equal(parse(await caller.ok('get', 'session', 'notes', '-o', 'yaml')).metadata.name, 'notes');
    assert.equal(await caller.ok('get', 'session/notes', '-o', 'name'), 'session.berth.dev/notes\n');
  });
  test('is listed with the columns that kubectl shows, its turns in the order in which they were given', async () => {
    assert.match(await caller.ok('list', '-A'), /^NAMESPACE +NAME +PHASE +.*\ndefault +\S+ /);
    assert.match(await caller.ok('ls', '-A'), /^NAMESPACE +NAME /);
    const turns = await caller.ok('list', 'turns', '--session', 'notes');
    assert.match(turns, /^NAME +SESSION +INDEX +PHASE/);
    const [, ...rows] = turns.trim().split('\n');
    const indexes = rows.map((row) => Number(/^\S+ +notes +(\d+) /.exec(row)?.[1]));
    assert.deepEqual(indexes, [1, 2, 3, 4]);
    assert.match((await caller.berth(['list', '-l', 'no=such'])).stderr, /no sessions in namespace default/);
  });
  test('is recorded as the parent of a session that is made for it, and lists it', async () => {
    await caller.ok('create', 'aside', '--parent', 'notes', '--', 'true');
    const { uid } = (await sessionNamed('notes')).metadata;
    assert.deepEqual((await sessionNamed('aside')).spec.parent, { name: 'notes', uid });
    assert.match(await caller.ok('get', 'aside'), /^ +parent +notes$/m);
    assert.equal(await caller.ok('list', '--parent', 'notes', '-o', 'name'), 'session.berth.dev/aside\n');
    assert.match(await caller.ok('list', '--parent', 'notes', '-o', 'wide'), /PARENT.*\naside .* notes /);
    await caller.ok('run', '--name', 'one-off', '--parent', 'aside', '--result', 'text', '--', 'true');
    await caller.ok('delete', 'aside');
    assert.equal((await sessionNamed('one-off')).spec.parent?.name, 'aside');
  });
  test('has its turns’ logs: of the newest, of one by name, and one of 100 KiB whole', async () => {
    assert.match(await caller.ok('logs', 'notes'), /^turn 4 in incarnation \d+\n$/);
    const [first] = JSON.parse(await caller.ok('list', 'turns', '--session', 'notes', '-o', 'json')).items.filter(
      (turn: StoredTurn) => turn.status?.index === 1,
    );
    assert.equal(await caller.ok('logs', 'notes', '--turn', first.metadata.name), 'turn 1 in incarnation 1\n');
    for (const named of [first.metadata.name, `turn.berth.dev/${first.metadata.name}`])
      assert.equal(await caller.ok('logs', named), 'turn 1 in incarnation 1\n');
    assert.match(await caller.ok('logs', 'session.berth.dev/notes'), /^turn 4 /);
    assert.match((await caller.berth(['logs', 'turn.berth.dev/notes'])).stderr, /there is no turn "notes"/);
    const two = await caller.berth(['logs', first.metadata.name, '--turn', 'notes']);
    assert.deepEqual([two.code, two.stdout], [2, '']);
    assert.match(two.stderr, /name two turns/);
    assert.match(await caller.ok('get', 'turn', first.metadata.name), /LOG\n {2}turn 1 in incarnation 1\n/);
    const noisy = `console.log('n'.repeat(100_000)); process.exitCode = 1`;
    await caller.berth(['run', '--name', 'noisy', '--', NODE, '-e', noisy]);
    assert.ok((await caller.ok('logs', 'noisy')) === `${'n'.repeat(100_000)}\n`);
  });
  test('has its log followed live, and the follow of a turn ends with it', async () => {
    // The agent goes on only when its first line has been seen.
    const go = join(caller.root, 'go');
    await caller.ok(
      'create',
      'live',
      '--result',
      'text',
      '--env',
      `GO=${go}`,
      '--',
      'sh',
      '-c',
      'echo begin >&2; until [ -e "$GO" ]; do sleep 0.05; done; echo end >&2',
    );
    const turn = (await caller.ok('turn', 'live', '--no-wait')).trim();
    const { child, ended } = caller.start(['logs', '-f', 'live', '--turn', turn]);
    const { stdout } = child;
    assert.ok(stdout);
    let seen = '';
    stdout.setEncoding('utf8').on('data', (chunk: string) => {
      seen += chunk;
    });
    await eventually(() => seen === 'begin\n', { what: 'the first line is printed while the turn runs' });
    await caller.ok('run', '--result', 'text', '--', 'touch', go);
    assert.deepEqual([(await ended).code, seen], [0, 'begin\nend\n']);
  });
  test('has its turns cancelled', async () => {
    await caller.ok('create', 'sleepy', '--', 'sleep', '60');
    const [first, second] = [
      await caller.ok('turn', 'sleepy', '--no-wait'),
      await caller.ok('turn', 'sleepy', '--no-wait'),
    ];
    assert.deepEqual(
      (await caller.ok('cancel', 'sleepy')).split('\n').sort(),
      ['', `turn.berth.dev/${first.trim()} Cancelled`, `turn.berth.dev/${second.trim()} Cancelled`].sort(),
    );
  });
  test('is deleted with its turns', async () => {
    assert.equal(
      await caller.ok('delete', 'sleepy', 'live', 'sleepy'),
      'session.berth.dev/sleepy deleted\nsession.berth.dev/live deleted\n',
    );
    for (const session of ['sleepy', 'live']) {
      await eventually(async () => (await caller.ok('list', 'turns', '--session', session, '-o', 'name')) === '', {
        what: 'its turns go',
      });
    }
  });
});

describe('a wrong command line ends with 2 and leaves nothing behind:', () => {
  const cases: [what: string, args: string[], message: RegExp][] = [
    ['an unknown flag', ['run', '--nope', '--', 'true'], /unknown option '--nope'[\s\S]*berth run --help/],
    ['an unknown kind of result', ['run', '--result', 'xml', '--', 'true'], /envelope, json, text/],
    [
      'a class that does not exist',
      ['run', '--class', 'none', '--', 'true'],
      /no SessionClass "none"; there is default/,
    ],
    ['a name that is no DNS label', ['create', 'My_Notes', '--', 'true'], /a DNS label/],
    ['a program that does not exist', ['run', '--', './none'], /none does not exist/],
    ['a program that is not executable', ['run', '--', './run.yaml'], /is not executable.*chmod \+x/],
    ['no program at all', ['run'], /no program to run/],
    ['a working directory that is a file', ['run', '--workdir', 'run.yaml', '--', 'true'], /is not a directory/],
    [
      'a turn without the input that its program needs',
      ['turn', 'echo'],
      /no input, and agent.input Args needs.*--text/,
    ],
    ['a run without the input that its program needs', ['run', '--input-as', 'text', '--', 'cat'], /needs a string/],
    ['a text that is not in quotes', ['turn', 'echo', 'hello', 'there'], /too many arguments[\s\S]*in quotes/],
    ['a text that stands beside a flag', ['turn', 'echo', 'a', '--text', 'b'], /TEXT and --text are both given/],
    ['the log of something that does not exist', ['logs', 'none'], /there is no session or turn "none"/],
    ['a version of an unknown form', ['version', '-o', 'xml'], /json, yaml/],
    ['an input that is given twice', ['turn', 'echo', '--text', 'a', '--input', '1'], /are both given/],
    ['an input that is a bare word', ['turn', 'echo', '--input', 'hello'], /To give it as text: --text hello/],
    ['an input that is no JSON', ['run', '--input', '{n: 1}', '--', 'true'], /line 1, column 2/],
    ['an input file that does not exist', ['run', '--input-file', 'none.json', '--', 'true'], /there is no file/],
    ['a timeout that is none', ['run', '--timeout', '5', '--', 'true'], /"5" is not a duration/],
    ['a namespace that does not exist', ['-n', 'none', 'run', '--', 'true'], /"none" not found/],
    ['a turn of a session that does not exist', ['turn', 'none'], /there is no session "none"/],
    ['a parent that does not exist', ['run', '--parent', 'none', '--', 'true'], /--parent: there is no session "none"/],
    ['turns by a parent', ['list', 'turns', '--parent', 'notes'], /--parent selects sessions/],
    ['sessions by a session', ['list', '--session', 'notes'], /--session selects turns; write: list turns/],
    ['a second turn of a run', ['turn', 'named'], /takes one turn only/],
    ['labels that cannot be read', ['list', '-l', 'a b'], /-l a b: unable to parse .*; write it as for kubectl/],
    ['files that are none', ['run', '--with', '--', 'cat'], /--with.* needs a file or folder before the --/],
    ['an image with a space', ['run', '--image', 'a b', '--', 'true'], /spec\.image.*/],
  ];
  let existing: string;
  beforeAll(async () => {
    await caller.ok('create', 'echo', '--input-as', 'args', '--result', 'text', '--', 'echo', '$(INPUT)');
    existing = await everything();
  });
  for (const [what, args, message] of cases) {
    test(what, async () => {
      const { code, stdout, stderr } = await caller.berth(args);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr, message);
    });
  }
  test('and nothing is there that was not before', async () => {
    assert.equal(await everything(), existing);
  });
  test('a turn whose name is taken leaves no session', async () => {
    await caller.ok('create', 'taken', '--', 'true');
    await caller.ok('turn', 'taken', '--name', 'free', '--no-wait');
    const before = await everything();
    const { code, stderr } = await caller.berth(['run', '--name', 'free', '--', 'true']);
    assert.equal(code, 2);
    assert.match(stderr, /"free" already exists/);
    assert.equal(await everything(), before);
  });
});

async function withOpen<T>(path: string, flags: string | number, use: (descriptor: number) => Promise<T>): Promise<T> {
  const descriptor = openSync(path, flags);
  try {
    return await use(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

async function sessionNamed(name: string): Promise<StoredSession> {
  return JSON.parse(await caller.ok('get', 'session', name, '-o', 'json'));
}

async function turnNamed(name: string): Promise<StoredTurn | undefined> {
  const { code, stdout } = await caller.berth(['get', 'turn', name, '-o', 'json']);
  return code === 0 ? JSON.parse(stdout) : undefined;
}

async function everything(): Promise<string> {
  return (await caller.ok('list', '-A', '-o', 'name')) + (await caller.ok('list', 'turns', '-A', '-o', 'name'));
}
