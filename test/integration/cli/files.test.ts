import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
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
import { enterSession } from '../../../core/enter/client.ts';
import { KubeClient } from '../../../core/kube/client.ts';
import { loadConnection } from '../../../core/kube/config.ts';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { noHelper } from '../../support/helper-run.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { skipIf } from '../../support/requires.ts';
import { Caller } from './support.ts';

const MAKE = 'eval "$(cat)"';
const BERTH = join(import.meta.dirname, '../../../bin/berth');
const TREE = `
  printf 'one\\n' > a; mkdir -p site/sub site/none; printf two > site/sub/b; printf '#!/bin/sh' > site/run; chmod 755 site/run
  ln -s sub/b site/inside; ln -s ../../a site/out; ln -s /etc/passwd absolute; mkfifo site/pipe; ln -s ../../secret out
  head -c 3000000 /dev/urandom > large; sha256sum large | cut -d ' ' -f 1 > sum; printf 'x\\033[2J' > escape
  mkdir many; cd many; seq 20000 | xargs touch; cd ..; printf raw > "$(printf 'n\\377')"`;

describe('files of a running session', skipIf(noHelper), () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-files-cli-'));
  const caller = new Caller(cwd);
  const work = mkdtempSync(join(tmpdir(), 'berth-files-work-'));
  const everything = (path: string) => readdirSync(join(cwd, path), { recursive: true }).map(String).sort();
  const at = (...names: string[]) => join(cwd, ...names);

  beforeAll(async () => {
    await caller.ok('local', 'up', '--detach');
    await caller.ok(
      'create',
      'notes',
      '--input-as',
      'text',
      '--result',
      'text',
      '--workdir',
      work,
      '--',
      'sh',
      '-c',
      MAKE,
    );
    await caller.ok('turn', 'notes', TREE);
  });
  afterAll(async () => {
    await caller.berth(['local', 'down']);
    caller.remove();
    for (const folder of [cwd, work]) rmSync(folder, { recursive: true, force: true });
  });

  test('ls shows a folder, a file, and all of a large folder', async () => {
    const rows = (await caller.ok('files', 'ls', 'notes', 'work/site')).trimEnd().split('\n');
    const cells = rows.map((row) => row.split(/ {2,}/)).map(([mode, bytes, , name]) => [mode, bytes, name].join(' '));
    assert.deepEqual(cells.slice(0, 1), ['MODE BYTES NAME']);
    assert.deepEqual(
      cells.slice(1).map((row) => row.replace(/^\d+ /, '')),
      ['- inside -> sub/b', '- none/', '- out -> ../../a', '- pipe', '9 run', '- sub/'],
    );
    assert.equal(await caller.ok('files', 'ls', 'notes', 'work/a', '-o', 'name'), 'a\n');
    const many = JSON.parse(await caller.ok('files', 'ls', 'notes', 'work/many', '-o', 'json'));
    assert.equal(many.items.length, 20_000);
    assert.equal(many.items[0].type, 'file');
  });

  test('cat writes the bytes of a file, and makes them safe on a terminal', async () => {
    assert.equal(await caller.ok('files', 'cat', 'notes', 'work/a'), 'one\n');
    const sum = (await caller.ok('files', 'cat', 'notes', 'work/sum')).trim();
    const args = ['files', 'cat', 'notes', 'work/large'];
    const printed = execFileSync('sh', ['-c', '"$@" | sha256sum', 'sh', BERTH, ...args], { env: caller.env, cwd });
    assert.equal(String(printed).split(' ')[0], sum);
    const terminal = new OnTerminal(`${BERTH} files cat notes work/escape`, caller.env, cwd);
    assert.equal(await terminal.ended, 0);
    assert.match(terminal.shown, /x\\x1b\[2J/);
  });

  test('cp brings a file whole, into a folder or under another name', async () => {
    assert.equal(await caller.ok('cp', 'notes:work/a', '.'), `${at('a')}\n`);
    assert.equal(readFileSync(at('a'), 'utf8'), 'one\n');
    await caller.ok('cp', 'notes:work/large', 'copy');
    const sum = (await caller.ok('files', 'cat', 'notes', 'work/sum')).trim();
    assert.equal(String(execFileSync('sha256sum', [at('copy')])).split(' ')[0], sum);
    writeFileSync(at('a'), 'mine');
    symlinkSync('a', at('link'));
    await caller.ok('cp', 'notes:work/a', 'link');
    assert.equal(readFileSync(at('a'), 'utf8'), 'one\n');
    assert.ok(lstatSync(at('link')).isSymbolicLink());
    await caller.ok('cp', 'notes:work/site/run', 'run');
    assert.equal(statSync(at('run')).mode & 0o100, 0o100);
  });

  test('cp brings a folder, leaves out what a folder here cannot have, and says so', async () => {
    const { code, stderr } = await caller.berth(['cp', 'notes:work/site', 'copied']);
    assert.equal(code, 0, stderr);
    assert.deepEqual(everything('copied'), ['inside', 'none', 'run', 'sub', 'sub/b']);
    assert.equal(readlinkSync(at('copied', 'inside')), 'sub/b');
    assert.match(stderr, /^left out out: a link that leads out of the folder$/m);
    assert.match(stderr, /^pipe: left out: it is a FIFO$/m);
    // Into a folder that is there, and over one.
    mkdirSync(at('into', 'site', 'sub'), { recursive: true });
    writeFileSync(at('into', 'site', 'own'), 'stays');
    await caller.ok('cp', 'notes:work/site', 'into');
    assert.deepEqual(everything('into/site'), ['inside', 'none', 'own', 'run', 'sub', 'sub/b']);
    mkdirSync(at('content'));
    await caller.ok('cp', 'notes:work/site/.', 'content');
    assert.deepEqual(everything('content'), ['inside', 'none', 'run', 'sub', 'sub/b']);
    await caller.ok('cp', 'notes:work/many', 'many');
    assert.equal(readdirSync(at('many')).length, 20_000);
  });

  test('names are bytes', async () => {
    mkdirSync(at('bytes'));
    await caller.ok('cp', 'notes:work/.', 'bytes');
    const names = readdirSync(at('bytes'), { encoding: 'buffer' });
    assert.ok(names.some((name) => name.equals(Buffer.from([0x6e, 0xff]))));
  });

  test('what leads out of a root is refused, a FIFO does not block', async () => {
    for (const path of ['../../x', 'out', 'absolute', '/etc/passwd', 'site/../../home']) {
      assert.match(await caller.fails('files', 'cat', 'notes', `work/${path}`), /^1 .* leads out of work/);
    }
    assert.match(await caller.fails('files', 'cat', 'notes', 'work/site/pipe'), /is neither a file nor a folder/);
    assert.match(await caller.fails('files', 'cat', 'notes', 'work/none'), /^1 .*there is no work\/none/);
    assert.match(await caller.fails('files', 'ls', 'notes', 'workspace'), /the session has no workspace/);
    assert.match(await caller.fails('files', 'ls', 'notes', 'etc/passwd'), /^2 .*begins with no root/s);
  });

  test('what cannot be put where it should leaves nothing behind', async () => {
    mkdirSync(at('taken', 'a'), { recursive: true });
    writeFileSync(at('taken', 'site'), 'a file');
    const before = everything('taken');
    assert.match(await caller.fails('cp', 'notes:work/a', 'taken'), /is a folder here and a file in the session/);
    assert.match(await caller.fails('cp', 'notes:work/site', 'taken'), /is a file here and a folder in the session/);
    mkdirSync(at('taken', 'deep', 'run'), { recursive: true });
    assert.match(
      await caller.fails('cp', 'notes:work/site/.', 'taken/deep'),
      /is a folder here and a file in the session/,
    );
    rmSync(at('taken', 'deep'), { recursive: true });
    assert.match(await caller.fails('cp', 'notes:work/a', 'nowhere/a'), /there is no folder/);
    assert.match(await caller.fails('cp', 'notes:work/a', 'nowhere/'), /there is no folder/);
    assert.match(await caller.fails('cp', 'notes:work/a', '/dev/null'), /is neither a file nor a folder/);
    assert.match(
      await caller.fails('cp', 'notes:work/a', 'notes:work/b'),
      /nothing is copied from one session to another/,
    );
    assert.match(await caller.fails('cp', 'a', 'b'), /neither "a" nor "b" is in a session/);
    assert.deepEqual(everything('taken'), before);
    assert.ok(!readdirSync(cwd).some((name) => name.startsWith('.berth-')));
  });

  test('a file that an agent goes on writing is read as it was', async () => {
    const grower = 'head -c 100000000 /dev/zero > grows; (while :; do echo more; sleep 0.01; done >> grows) &';
    await caller.ok('turn', 'notes', `${grower} true`);
    const { code, stderr } = await caller.berth(['cp', 'notes:work/grows', 'grown']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /grew while it was read; these are its first \d+ bytes/);
    const [, bytes] = /first (\d+) bytes/.exec(stderr) ?? [];
    assert.equal(statSync(at('grown')).size, Number(bytes));
  });

  test('a full disk leaves no half of a file or a folder', async () => {
    for (const from of ['notes:work/large', 'notes:work/.']) {
      // A limit of 1 MB for each file stands for a disk with so much room.
      const script = `ulimit -f 1024; trap '' XFSZ; exec "$@"`;
      assert.throws(
        () =>
          execFileSync('bash', ['-c', script, 'bash', BERTH, 'cp', from, 'full'], {
            env: caller.env,
            cwd,
            stdio: 'pipe',
          }),
        ({ status, stderr }: { status: number; stderr: Buffer }) =>
          status === 1 && /cannot be written/.test(String(stderr)),
      );
      assert.ok(!existsSync(at('full')));
      assert.ok(!readdirSync(cwd).some((name) => name.startsWith('.berth-')));
    }
  });

  test('a connection to a pod that was replaced is refused: what was asked for is not there any more', async () => {
    const get = async () => JSON.parse(await caller.ok('get', 'notes', '-o', 'json')) as StoredSession;
    const before = await get();
    await caller.ok('restart', 'notes');
    await caller.ok('turn', 'notes', 'true');
    const now = await get();
    const connection = await loadConnection({ env: caller.env, path: (await caller.ok('local', 'kubeconfig')).trim() });
    const api = new KubeClient({
      connection,
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'x',
    });
    const list = (session: StoredSession) =>
      enterSession(
        api,
        session,
        { want: 'list', root: 'work', path: '' },
        { clock: systemClock, signal: AbortSignal.timeout(30_000) },
      );
    try {
      await assert.rejects(list(before), { name: 'EnterError', code: 'PodReplaced' });
      const mixed = { ...now, status: { ...now.status, incarnation: before.status?.incarnation } } as StoredSession;
      await assert.rejects(list(mixed), { name: 'EnterError', code: 'PodReplaced' });
      (await list(now)).close();
    } finally {
      await api.close();
    }
  });

  test('a suspended session says so, and one that is gone, too', async () => {
    await caller.ok('suspend', 'notes');
    assert.match(await caller.fails('files', 'ls', 'notes', 'work'), /^1 .*session notes is suspended/);
    assert.match(await caller.fails('files', 'ls', 'nothing', 'state'), /there is no session "nothing"/);
    await caller.ok('turn', 'notes', 'true');
    assert.equal(await caller.ok('files', 'cat', 'notes', 'work/a'), 'one\n');
  });
});
