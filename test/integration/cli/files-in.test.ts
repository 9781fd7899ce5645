import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
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
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noHelper } from '../../support/helper-run.ts';
import { skipIf } from '../../support/requires.ts';
import { Caller } from './support.ts';

const BERTH = join(import.meta.dirname, '../../../bin/berth');
const MiB = 2 ** 20;

describe('files into a running session', skipIf(noHelper), () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-files-in-cli-'));
  const caller = new Caller(cwd);
  const work = mkdtempSync(join(tmpdir(), 'berth-files-in-work-'));
  const at = (...names: string[]) => join(cwd, ...names);
  const there = (...names: string[]) => join(work, ...names);
  const outside = at('outside');
  const everything = () => readdirSync(work, { recursive: true }).map(String);
  const digestOf = (path: string) => String(execFileSync('sha256sum', [path])).split(' ')[0];

  beforeAll(async () => {
    await caller.ok('local', 'up', '--detach');
    const agent = { command: ['sh', '-c', 'eval "$(cat)"'], input: 'Text', result: 'Text', workingDir: work };
    const session = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Session',
      metadata: { name: 'notes' },
      spec: { agent, persistence: { maxState: '2Mi' } },
    };
    writeFileSync(at('session.json'), JSON.stringify(session));
    await caller.ok('create', '-f', 'session.json');
    mkdirSync(outside);
    await caller.ok('turn', 'notes', `printf old > "$BERTH_STATE_DIR/old"; ln -s ${outside} out; ln -s a link`);
    writeFileSync(at('a'), 'one', { mode: 0o750 });
  });
  afterAll(async () => {
    await caller.berth(['local', 'down']);
    caller.remove();
    for (const folder of [cwd, work]) rmSync(folder, { recursive: true, force: true });
  });

  test('cp puts a file under its name with its permissions and its time, and makes folders on the way', async () => {
    const { stdout, stderr, code } = await caller.berth(['cp', 'a', 'notes:work/new/deep/b']);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'work/new/deep/b\n');
    assert.match(stderr, /work of this session is not kept/);
    assert.equal(readFileSync(there('new/deep/b'), 'utf8'), 'one');
    assert.equal(statSync(there('new/deep/b')).mode & 0o777, 0o750);
    assert.equal(Math.floor(statSync(there('new/deep/b')).mtimeMs), Math.floor(statSync(at('a')).mtimeMs));
    assert.equal(await caller.ok('cp', 'a', 'notes:work/new'), 'work/new/a\n');
    writeFileSync(at('a'), 'two');
    await caller.ok('cp', 'a', 'notes:work/new/a');
    assert.equal(readFileSync(there('new/a'), 'utf8'), 'two');
    // A link at the place is replaced, what it leads to is not.
    await caller.ok('cp', 'a', 'notes:work/link');
    assert.ok(lstatSync(there('link')).isFile());
  });

  test('cp sends 100 MB as they are', async () => {
    writeFileSync(at('large'), randomBytes(100 * 1e6));
    await caller.ok('cp', 'large', 'notes:work/');
    assert.equal(digestOf(there('large')), digestOf(at('large')));
    rmSync(there('large'));
  });

  test('a transfer that is cut leaves nothing', async () => {
    const before = everything();
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      writeFileSync(at('endless'), '');
      truncateSync(at('endless'), 2 ** 36);
      const child: ChildProcess = spawn(BERTH, ['cp', 'endless', 'notes:work/cut/endless'], { cwd, env: caller.env });
      const opened = () => execFileSync('sh', ['-c', `ls -l /proc/*/fd 2>/dev/null | grep -c '${work}/#' || true`]);
      await expect.poll(() => Number(String(opened())), { timeout: 20_000 }).toBeGreaterThan(0);
      child.kill(signal);
      await once(child, 'exit');
      await expect.poll(() => Number(String(opened())), { timeout: 20_000 }).toBe(0);
      assert.deepEqual(everything(), before);
    }
  });

  test('cp puts a folder of 1,000 files, into one that is there and over files of it', async () => {
    mkdirSync(at('many', 'sub', 'empty'), { recursive: true });
    for (let n = 0; n < 1000; n++) writeFileSync(at('many', n % 2 ? 'sub' : '.', `f${n}`), `content ${n}`);
    symlinkSync('sub/f1', at('many', 'inside'));
    symlinkSync('../../a', at('many', 'outside'));
    execFileSync('mkfifo', [at('many', 'pipe')]);
    chmodSync(at('many', 'f0'), 0o700);
    const { code, stdout, stderr } = await caller.berth(['cp', 'many', 'notes:work']);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'work/many\n');
    assert.match(stderr, /left out outside: a link that leads out of the folder/);
    assert.match(stderr, /left out pipe: /);
    assert.match(stderr, /1000 files written/);
    assert.equal(readdirSync(there('many', 'sub')).length, 501);
    assert.equal(readlinkSync(there('many', 'inside')), 'sub/f1');
    assert.equal(statSync(there('many', 'f0')).mode & 0o777, 0o700);
    writeFileSync(at('many', 'f0'), 'changed');
    writeFileSync(there('many', 'own'), 'stays');
    await caller.ok('cp', 'many/.', 'notes:work/many');
    assert.equal(readFileSync(there('many', 'f0'), 'utf8'), 'changed');
    assert.equal(readFileSync(there('many', 'own'), 'utf8'), 'stays');
  });

  test('what cannot be written is refused, and leaves nothing', async () => {
    const before = everything();
    mkdirSync(there('taken', 'a'), { recursive: true });
    for (const path of ['../x', 'new/../../x', 'out/x']) {
      assert.match(await caller.fails('cp', 'a', `notes:work/${path}`), /^1 .*(leads? out of work|"\.\.")/, path);
    }
    assert.match(await caller.fails('cp', 'a', 'notes:work/taken'), /work\/taken\/a is a folder/);
    assert.match(await caller.fails('cp', 'a', 'notes:work/link/x'), /is a file in place of a folder/);
    assert.match(await caller.fails('cp', 'a', 'notes:output/x'), /nothing is written to output/);
    assert.match(await caller.fails('cp', 'a', 'notes:workspace/x'), /the session has no workspace/);
    assert.match(await caller.fails('cp', 'none', 'notes:work/x'), /^1 .*none/);
    assert.ok(!existsSync(join(outside, 'x')));
    rmSync(there('taken'), { recursive: true });
    assert.deepEqual(everything(), before);
  });

  test('what goes into the state is durable with the next turn, and never more than the class allows', async () => {
    writeFileSync(at('big'), randomBytes(3 * MiB));
    assert.match(await caller.fails('cp', 'big', 'notes:state/big'), /at most 2097152 can be stored/);
    mkdirSync(at('bigs'));
    for (const name of ['a', 'b']) writeFileSync(at('bigs', name), randomBytes(1.2 * MiB));
    assert.match(await caller.fails('cp', 'bigs', 'notes:state/bigs'), /at most 2097152 can be stored/);
    const { code, stderr } = await caller.berth(['cp', 'a', 'notes:state/new']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /durable with the end of the next turn, or with the suspension/);
    await caller.ok('suspend', 'notes');
    assert.match(await caller.fails('cp', 'a', 'notes:state/late'), /session notes is suspended/);
    const list = 'ls -A "$BERTH_STATE_DIR"; cat "$BERTH_STATE_DIR/new"';
    assert.equal(await caller.ok('turn', 'notes', list), 'new\nold\ntwo\n');
  });

  test('files rm deletes a file, a link but not what it leads to, and a folder only with -r', async () => {
    mkdirSync(there('gone', 'sub'), { recursive: true });
    writeFileSync(there('gone', 'sub', 'a'), '');
    chmodSync(there('gone', 'sub'), 0o500);
    symlinkSync('gone', there('alias'));
    await caller.ok('files', 'rm', 'notes', 'work/alias');
    assert.match(await caller.fails('files', 'rm', 'notes', 'work/gone'), /is a folder.*-r/);
    assert.match(await caller.fails('files', 'rm', 'notes', 'work/missing'), /there is no work\/missing/);
    assert.match(await caller.fails('files', 'rm', '-r', 'notes', 'work'), /path has to name something in work/);
    assert.match(await caller.fails('files', 'rm', '-r', 'notes', 'work/out/x'), /leads out of work/);
    await caller.ok('files', 'rm', '-r', 'notes', 'work/gone');
    assert.ok(!existsSync(there('gone')));
    await caller.ok('files', 'rm', 'notes', 'work/out');
    assert.ok(existsSync(outside));
    assert.ok(!everything().some((name) => name.includes('.berth-')));
  });
});
