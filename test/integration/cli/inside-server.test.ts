import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { noHelper } from '../../support/helper-run.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { skipIf } from '../../support/requires.ts';
import { Wire } from '../../support/wire.ts';
import { ApiCluster, type ApiProgram } from '../api/support.ts';
import { ofSeq, printedBy } from './long-output.ts';
import { Caller, type Ended } from './support.ts';

const BERTH = join(import.meta.dirname, '../../../bin/berth');
const MiB = 2 ** 20;
const LINES = 6_000_000;

describe('inside a session through the HTTP API', skipIf(noHelper), () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-inside-cwd-'));
  const work = mkdtempSync(join(tmpdir(), 'berth-inside-work-'));
  const at = (...names: string[]) => join(cwd, ...names);
  const there = (...names: string[]) => join(work, ...names);
  let api: ApiCluster;
  let caller: Caller;
  let tokenFile: string;
  /** Flags of the server, and those of the kubeconfig. */
  let server: string[];
  let kubeconfig: string[];

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    caller = new Caller(cwd);
    const { token } = await api.user([
      { verbs: ['*'], resources: ['sessions', 'turns'] },
      { verbs: ['get', 'create'], resources: ['sessions/exec'] },
      { verbs: ['get', 'update', 'delete'], resources: ['sessions/files'] },
    ]);
    tokenFile = join(caller.root, 'token');
    writeFileSync(tokenFile, token);
    server = ['--server', api.url, '--token-file', tokenFile];
    kubeconfig = ['--kubeconfig', api.cluster.kubeconfig];
    const agent = { command: ['sh', '-c', 'eval "$(cat)"'], input: 'Text' as const, result: 'Text' as const };
    await api.cluster.create('notes', { agent: { ...agent, workingDir: work }, persistence: { maxState: '2Mi' } });
    await api.cluster.turn('notes', 'notes-1', 'printf old > "$BERTH_STATE_DIR/old"');
    assert.equal((await api.cluster.ended('notes-1')).status?.phase, 'Succeeded');
    await api.cluster.create('asleep', { agent, suspend: true });
  });
  afterAll(async () => {
    caller.remove();
    await api.close();
    for (const folder of [cwd, work]) rmSync(folder, { recursive: true, force: true });
  });

  /** Calls with the flags of a way in front. */
  const by = (way: string[], ...words: string[]): Promise<Ended> => caller.berth([...way, ...words]);
  const through = (...words: string[]) => by(server, ...words);
  const ok = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await through(...words);
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  /** Both ways end alike; resolves with what they print. */
  const same = async (...words: string[]): Promise<Ended> => {
    const [one, other] = [await by(kubeconfig, ...words), await through(...words)];
    assert.deepEqual(other, one, words.join(' '));
    return other;
  };

  test('commands print, get input, and end with their exit code as with a kubeconfig', async () => {
    const script = 'pwd; echo "$a" >&2; exit 7';
    const ran = await same('exec', '--cwd', '/', '--env', 'a=b', 'notes', '--', 'sh', '-c', script);
    assert.deepEqual(ran, { code: 7, stdout: '/\n', stderr: 'b\n' });
    const counted = await caller.berth([...server, 'exec', '-i', 'notes', '--', 'wc', '-c'], {
      stdin: 'x'.repeat(1_000_000),
    });
    assert.deepEqual([counted.code, counted.stdout.trim()], [0, '1000000'], counted.stderr);
    assert.equal((await same('exec', 'notes', '--', 'sh', '-c', 'kill -9 $$')).code, 137);
    const late = await through('exec', '--timeout', '1s', '--id', 'brief', 'notes', '--', 'sleep', '60');
    const why = 'berth: command brief: it ran longer than its timeout (--timeout) and was ended\n';
    assert.deepEqual([late.code, late.stderr], [143, why]);
  });

  test('commands are detached, listed, attached to and ended, and an id is that of one command', async () => {
    const id = (await ok('exec', '--detach', 'notes', '--', 'sh', '-c', 'echo hello; exec sleep 600')).trim();
    const row = new RegExp(`^${id} +Running, detached +\\S+ +sh -c echo hello; exec sleep 600$`, 'm');
    assert.match(await ok('exec', '--list', 'notes'), row);
    const again = ['--id', id, '--detach', 'notes', '--', 'sh', '-c', 'echo hello; exec sleep 600'];
    assert.equal((await same('exec', ...again)).stdout, `${id}\n`);
    const other = await same('exec', '--id', id, 'notes', '--', 'true');
    assert.equal(other.code, 255);
    assert.match(other.stderr, /was started with other words/);
    const attached = caller.start([...server, 'exec', '--attach', id, 'notes']);
    await ok('exec', '--kill', id, 'notes');
    const { code, stdout } = await attached.ended;
    assert.deepEqual([code, stdout], [143, 'hello\n']);
    // Whoever has the exit says so, and the command is kept no longer.
    assert.doesNotMatch(await ok('exec', '--list', 'notes'), new RegExp(id));
  });

  test('what cannot be is refused with the words of a kubeconfig, before anything is done', async () => {
    for (const words of [
      ['exec', 'notes', '--', 'no-such-program'],
      ['exec', 'nobody', '--', 'true'],
      ['exec', 'asleep', '--', 'true'],
      ['exec', '--attach', 'none', 'notes'],
      ['exec', '--kill', 'none', 'notes'],
      ['files', 'ls', 'notes', 'work/none'],
      ['files', 'cat', 'notes', 'work/../../x'],
      ['files', 'cat', 'notes', 'work'],
      ['files', 'cat', 'asleep', 'work/x'],
      ['files', 'rm', 'notes', 'work/none'],
      ['files', 'rm', '-r', 'notes', 'work'],
      ['cp', 'notes:work/none', 'x'],
      ['cp', 'notes:workspace/x', 'x'],
    ]) {
      const { code, stdout, stderr } = await same(...words);
      assert.ok(code !== 0 && stdout === '' && stderr !== '', words.join(' '));
    }
  });

  test('a shell has the terminal, with its size and its keys', async () => {
    const shell = new OnTerminal(`${BERTH} shell notes ${server.join(' ')}`, caller.env, cwd);
    await shell.says(/[$#] /);
    shell.types('stty size; echo "TERM=$TERM" && sleep 60\r');
    await shell.says('TERM=');
    shell.types('\u0003');
    shell.types('exit 9\r');
    assert.equal(await shell.ended, 9, shell.shown);
  });

  test(`a command that prints ${LINES} lines gives each byte once, also where the API is killed meanwhile`, async (t) => {
    let program: ApiProgram = await api.startProgram();
    const wire = new Wire(program.port);
    await wire.open();
    t.onTestFinished(() => {
      wire.close();
      program.child.kill('SIGKILL');
    });
    let left = 3_000_000;
    let faults = 0;
    wire.onBytes = (count) => {
      left -= count;
      if (left > 0) return;
      left = 6_000_000;
      faults += 1;
      if (faults % 3 === 2) {
        program.child.kill('SIGKILL');
        left = Number.POSITIVE_INFINITY;
        api.startProgram({ BERTH_API_PORT: String(program.port) }).then((next) => {
          program = next;
          left = 3_000_000;
        }, assert.fail);
      } else wire.cut();
    };
    const flags = ['--server', `http://127.0.0.1:${wire.port}`, '--token-file', tokenFile];
    const script = `echo started >>starts; seq 1 ${LINES}; exit 3`;
    const { child } = caller.start([...flags, 'exec', 'notes', '--', 'sh', '-c', script]);
    const { code, bytes, sha256, stderr } = await printedBy(child);
    wire.onBytes = () => {};
    assert.deepEqual([code, bytes, sha256], [3, ...ofSeq(LINES)], stderr);
    assert.equal(readFileSync(there('starts'), 'utf8'), 'started\n');
    assert.ok(faults >= 3, `${faults} faults`);
  });

  test('files are listed, printed and deleted as with a kubeconfig', async () => {
    mkdirSync(there('site', 'sub'), { recursive: true });
    writeFileSync(there('site', 'ü b'), 'one\n', { mode: 0o640 });
    symlinkSync('ü b', there('site', 'link'));
    writeFileSync(there('large'), randomBytes(20 * MiB));
    for (const words of [
      ['ls', 'notes', 'work/site'],
      ['ls', 'notes', 'work/site', '-o', 'json'],
      ['ls', 'notes', 'work/site/ü b', '-o', 'json'],
      ['cat', 'notes', 'work/site/ü b'],
      ['cat', 'notes', 'work/site/link'],
    ])
      assert.equal((await same('files', ...words)).code, 0, words.join(' '));
    await ok('cp', 'notes:work/large', 'large');
    assert.ok(readFileSync(at('large')).equals(readFileSync(there('large'))));
    const { code, stderr } = await through('files', 'rm', 'notes', 'work/large');
    assert.deepEqual([code, stderr], [0, 'work of this session is not kept: this is lost when its pod ends\n']);
    assert.ok(!existsSync(there('large')));
    assert.match((await through('files', 'rm', 'notes', 'work/site')).stderr, /is a folder.*files rm -r/);
    await ok('files', 'rm', '-r', 'notes', 'work/site');
    assert.ok(!existsSync(there('site')));
  });

  test('cp puts a file with its permissions and its time, says how long it is kept, and respects the limit of the state', async () => {
    writeFileSync(at('a'), 'one', { mode: 0o750 });
    const { code, stdout, stderr } = await through('cp', 'a', 'notes:work/new/deep/b');
    assert.deepEqual([code, stdout], [0, 'work/new/deep/b\n'], stderr);
    assert.match(stderr, /work of this session is not kept/);
    const [ours, theirs] = [statSync(at('a')), statSync(there('new/deep/b'))];
    assert.deepEqual([theirs.mode & 0o777, theirs.mtimeMs], [0o750, Math.floor(ours.mtimeMs)]);
    assert.match((await through('cp', 'a', 'notes:state/a')).stderr, /durable with the end of the next turn/);
    writeFileSync(at('big'), randomBytes(50 * MiB));
    await ok('cp', 'big', 'notes:work/');
    assert.ok(readFileSync(there('big')).equals(readFileSync(at('big'))));
    const late = await same('cp', 'big', 'notes:state/big');
    assert.match(late.stderr, /at most 2097152 can be stored/);
    assert.equal((await same('cp', 'a', 'notes:output/x')).code, 1);
    assert.equal((await same('cp', 'a', 'notes:work/new/deep/b/c')).code, 1);
  });

  test('files that are cut on the way go on, or begin anew, by either way: they come whole', async (t) => {
    writeFileSync(there('cut'), randomBytes(40 * MiB));
    writeFileSync(at('cut'), randomBytes(40 * MiB));
    const config = readFileSync(api.cluster.kubeconfig, 'utf8');
    const [, port = ''] = /https:\/\/127\.0\.0\.1:(\d+)/.exec(config) ?? assert.fail(config);
    for (const way of ['kubeconfig', 'server'] as const) {
      const wire = new Wire(Number(way === 'server' ? new URL(api.url).port : port));
      await wire.open();
      t.onTestFinished(() => wire.close());
      const path = at('cut-kubeconfig');
      writeFileSync(path, config.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${wire.port}`));
      const flags =
        way === 'server'
          ? ['--server', `http://127.0.0.1:${wire.port}`, '--token-file', tokenFile]
          : ['--kubeconfig', path];
      let passed = 0;
      let cuts = 0;
      /** Cuts after each of these numbers of bytes. */
      const cutAt = (...marks: number[]) => {
        passed = 0;
        cuts = 0;
        wire.onBytes = (count) => {
          passed += count;
          if (passed < (marks[cuts] ?? Number.POSITIVE_INFINITY)) return;
          cuts += 1;
          wire.cut();
        };
      };
      cutAt(10 * MiB, 20 * MiB, 30 * MiB);
      const down = await by(flags, 'cp', 'notes:work/cut', `from-${way}`);
      assert.deepEqual([down.code, cuts], [0, 3], down.stderr);
      assert.ok(readFileSync(at(`from-${way}`)).equals(readFileSync(there('cut'))));
      // What had come was not sent again.
      assert.ok(passed < 60 * MiB, `${passed} bytes`);
      cutAt(10 * MiB, 40 * MiB);
      const up = await by(flags, 'cp', 'cut', `notes:work/to-${way}`);
      assert.deepEqual([up.code, cuts], [0, 2], up.stderr);
      assert.ok(readFileSync(there(`to-${way}`)).equals(readFileSync(at('cut'))));
      // A file that is another one by then is copied anew, and what has been printed of it cannot be taken back.
      const change = () => {
        const done = wire.onBytes;
        wire.onBytes = (count) => {
          if (passed + count >= 10 * MiB && cuts === 0) writeFileSync(there('cut'), randomBytes(40 * MiB));
          done(count);
        };
      };
      cutAt(10 * MiB);
      change();
      const anew = await by(flags, 'cp', 'notes:work/cut', `anew-${way}`);
      assert.deepEqual([anew.code, cuts], [0, 1], anew.stderr);
      assert.ok(readFileSync(at(`anew-${way}`)).equals(readFileSync(there('cut'))));
      cutAt(10 * MiB);
      change();
      const printed = await by(flags, 'files', 'cat', 'notes', 'work/cut');
      assert.deepEqual(
        [printed.code, printed.stderr],
        [1, 'berth: work/cut was written to while it was read; try again\n'],
      );
    }
  });

  test('cp puts a folder and brings it back, with empty folders, links, permissions and times', async () => {
    mkdirSync(at('many', 'sub', 'empty'), { recursive: true });
    for (let n = 0; n < 300; n++) writeFileSync(at('many', n % 2 ? 'sub' : '.', `f${n}`), `content ${n}`);
    writeFileSync(at('many', 'ü'.repeat(100)), 'long');
    writeFileSync(at('many', 'nothing'), '');
    symlinkSync('sub/f1', at('many', 'inside'));
    symlinkSync('../../a', at('many', 'outside'));
    chmodSync(at('many', 'f0'), 0o700);
    const { code, stdout, stderr } = await through('cp', 'many', 'notes:work');
    assert.deepEqual([code, stdout], [0, 'work/many\n'], stderr);
    assert.match(stderr, /left out outside: a link that leads out of the folder/);
    assert.match(stderr, /302 files written/);
    rmSync(at('many', 'outside'));
    assert.deepEqual(
      readdirSync(there('many'), { recursive: true }).sort(),
      readdirSync(at('many'), { recursive: true }).sort(),
    );
    assert.equal(readlinkSync(there('many', 'inside')), 'sub/f1');
    assert.equal(statSync(there('many', 'f0')).mode & 0o777, 0o700);
    assert.equal(statSync(there('many', 'f0')).mtimeMs, Math.floor(statSync(at('many', 'f0')).mtimeMs));
    execFileSync('mkfifo', [there('many', 'pipe')]);
    const back = await through('cp', 'notes:work/many', 'back');
    assert.equal(back.code, 0, back.stderr);
    assert.match(back.stderr, /^pipe: left out: it is a FIFO$/m);
    execFileSync('diff', ['-r', at('many'), at('back')]);
    mkdirSync(at('bigs'));
    for (const name of ['a', 'b']) writeFileSync(at('bigs', name), randomBytes(1.2 * MiB));
    assert.match((await same('cp', 'bigs', 'notes:state/bigs')).stderr, /at most 2097152 can be stored/);
    await ok('cp', 'many/.', 'notes:work');
    assert.equal(readFileSync(there('f0'), 'utf8'), 'content 0');
  });
});
