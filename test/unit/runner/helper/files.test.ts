import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeRunner, HELPER, HelperRun, noHelper } from '../../../support/helper-run.ts';
import { skipIf } from '../../../support/requires.ts';

interface Answer {
  ready?: Record<string, unknown>;
  refused?: { code: string; message: string; field?: string };
  data: Buffer;
  end?: { bytes: number; sha256: string; changed?: string; problemCount?: number; problems?: object[] };
}

const folder = mkdtempSync(join(tmpdir(), 'berth-helper-'));
const root = join(folder, 'work');
/** A helper without calls and instructions that not every machine has. */
const plain = join(folder, 'plain');
const MiB = 2 ** 20;

/** Has a helper carry out an order and resolves with its frames. `started`: called once it has answered `ready`. */
async function carryOut(
  operation: string,
  path: string,
  { offset = 0, length = -1, helper = HELPER, from = root, hold = false, during = () => {} } = {},
): Promise<Answer> {
  using runner = await FakeRunner.listening();
  const ordered = runner.order(operation, 'work', from, path, offset, length);
  await using run = new HelperRun(runner.podUID, undefined, helper);
  if (hold) run.child.stdout?.pause();
  run.hello();
  await ordered;
  if (hold) {
    // The pipe is full, so the helper is in the middle of what it reads.
    await expect.poll(() => run.child.stdout?.readableLength ?? 0).toBeGreaterThan(0);
    during();
    run.child.stdout?.resume();
  }
  const answer: Answer = { data: Buffer.alloc(0) };
  const pieces = [];
  for (const { kind, payload } of await run.all()) {
    if (kind === 'data') pieces.push(payload);
    else if (kind !== 'beat') Object.assign(answer, { [kind]: JSON.parse(String(payload)) });
  }
  answer.data = Buffer.concat(pieces);
  if (answer.end) {
    expect(answer.end.bytes).toBe(answer.data.length);
    expect(answer.end.sha256).toBe(createHash('sha256').update(answer.data).digest('hex'));
  }
  return answer;
}

const rows = ({ data }: Answer) =>
  String(data)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const code = async (operation: string, path: string, options = {}) =>
  (await carryOut(operation, path, options)).refused?.code;

/** Unpacks an archive with the machine's tar into a new folder. */
function unpack(archive: Buffer): string {
  const place = mkdtempSync(join(folder, 'unpacked-'));
  const { status, stderr } = spawnSync('tar', ['-x', '-C', place], { input: archive, maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(String(stderr));
  return place;
}

describe('files by the helper', skipIf(noHelper), () => {
  beforeAll(() => {
    mkdirSync(join(root, 'sub', 'deep'), { recursive: true });
    writeFileSync(join(root, 'a'), 'one\n', { mode: 0o640 });
    writeFileSync(join(root, 'sub', 'b'), 'two');
    writeFileSync(join(root, 'empty'), '');
    writeFileSync(join(folder, 'secret'), 'outside');
    symlinkSync('sub/b', join(root, 'inside'));
    symlinkSync('../a', join(root, 'sub', 'up'));
    symlinkSync('../secret', join(root, 'out'));
    symlinkSync('/etc/passwd', join(root, 'absolute'));
    symlinkSync('loop', join(root, 'loop'));
    symlinkSync('..', join(root, 'sub', 'parent'));
    execFileSync('mkfifo', [join(root, 'fifo')]);
    const args = ['-C', join(import.meta.dirname, '../../../../runner/helper'), `OUT=${plain}`];
    execFileSync('make', ['-s', ...args, 'CFLAGS=-O1 -DWITHOUT_OPENAT2 -DWITHOUT_SHA_NI']);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('a file comes with its description, its length and its digest', async () => {
    const { ready, data, end } = await carryOut('read', 'a');
    expect(ready).toMatchObject({ name: 'a', type: 'file', bytes: 4, mode: '0640' });
    expect(ready?.modified).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(String(data)).toBe('one\n');
    expect(end?.changed).toBeUndefined();
    expect((await carryOut('read', 'empty')).data.length).toBe(0);
  });

  test('a part of a file is what offset and length say, and no more than there is', async () => {
    expect(String((await carryOut('read', 'a', { offset: 1, length: 2 })).data)).toBe('ne');
    expect(String((await carryOut('read', 'a', { offset: 2, length: 99 })).data)).toBe('e\n');
    expect((await carryOut('read', 'a', { offset: 99 })).data.length).toBe(0);
  });

  test('stat and list tell name, type, size and target, of the folder itself, too', async () => {
    expect((await carryOut('stat', 'sub/b')).ready).toMatchObject({ name: 'b', type: 'file', bytes: 3 });
    expect((await carryOut('stat', '')).ready).toMatchObject({ name: 'work', type: 'folder' });
    const answer = await carryOut('list', '');
    expect(answer.ready).toMatchObject({ name: 'work', type: 'folder' });
    const told = rows(answer).map(({ name, type, target }) => [name, type, target].join(' ').trim());
    expect(told.sort()).toEqual(
      [
        'a file',
        'absolute link /etc/passwd',
        'empty file',
        'fifo other',
        'inside link sub/b',
        'loop link loop',
        'out link ../secret',
        'sub folder',
      ].sort(),
    );
  });

  for (const [how, helper] of [
    ['by the processor’s instructions where it has them', HELPER],
    ['without them', plain],
  ] as const) {
    test(`the digest is right whatever the length is, ${how}`, async () => {
      writeFileSync(join(root, 'digest'), Buffer.from(Array.from({ length: 70_000 }, (_, at) => at * at)));
      for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 70_000]) {
        const { data } = await carryOut('read', 'digest', { length, helper });
        expect(data).toHaveLength(length);
      }
    });
  }

  for (const [how, helper] of [
    ['by openat2', HELPER],
    ['by the walk', plain],
  ] as const) {
    test(`nothing outside of the root is opened, and links inside are followed, ${how}`, async () => {
      for (const path of [
        '../secret',
        'sub/../../secret',
        'out',
        'absolute',
        '/etc/passwd',
        'sub/parent/../secret',
        '..',
      ])
        expect([path, await code('read', path, { helper })]).toEqual([path, 'OutsideRoot']);
      for (const path of ['inside', 'sub/b', './sub//b', 'sub/parent/sub/b', 'sub/../sub/b'])
        expect([path, String((await carryOut('read', path, { helper })).data)]).toEqual([path, 'two']);
      expect(String((await carryOut('read', 'sub/up', { helper })).data)).toBe('one\n');
      expect((await carryOut('stat', 'sub/parent', { helper })).ready).toMatchObject({ type: 'folder' });
      expect(await code('read', 'none', { helper })).toBe('FileNotFound');
      expect(await code('read', 'a/b', { helper })).toBe('FileNotFound');
      expect(await code('read', 'loop', { helper })).toBe('FileFailed');
      expect(await code('read', `${'x'.repeat(300)}`, { helper })).toBe('Invalid');
    });
  }

  test('a FIFO does not block, a folder is no file and a file no folder', async () => {
    expect(await code('read', 'fifo')).toBe('NotAFile');
    expect(await code('read', 'sub')).toBe('NotAFile');
    expect(await code('list', 'a')).toBe('NotAFolder');
    expect(await code('archive', 'a')).toBe('NotAFolder');
  });

  test('a root that is a link or is not there is refused', async () => {
    symlinkSync('/', join(folder, 'moved'));
    expect(await code('list', '', { from: join(folder, 'moved') })).toBe('FileFailed');
    expect(await code('list', '', { from: join(folder, 'none') })).toBe('FileNotFound');
  });

  test('nothing of proc, sys and dev is opened where the root is /', async () => {
    for (const path of ['proc/self/environ', 'proc', 'sys/kernel', 'dev/null', 'dev']) {
      expect([path, await code('stat', path, { from: '/' })]).toEqual([path, 'OutsideRoot']);
    }
    expect(await code('stat', 'proc/self/root/etc/passwd', { from: '/' })).toBe('FileFailed');
    expect((await carryOut('read', 'etc/hostname', { from: '/' })).refused).toBeUndefined();
  });

  test('a file that shrinks is refused in the middle, and one that grows or is rewritten is told', async () => {
    const path = join(root, 'moving');
    const content = Buffer.alloc(8 * MiB, 'x');
    const read = (during: () => void) => {
      writeFileSync(path, content);
      return carryOut('read', 'moving', { hold: true, during });
    };
    const shrunk = await read(() => truncateSync(path, 1000));
    expect(shrunk.refused).toMatchObject({ code: 'FileChanged' });
    const grown = await read(() => appendFileSync(path, 'more'));
    expect([grown.data.length, grown.end?.changed]).toEqual([content.length, 'Grew']);
    const other = Buffer.alloc(content.length, 'y');
    expect((await read(() => writeFileSync(path, other, { flag: 'r+' }))).end?.changed).toBe('Rewritten');
    rmSync(path);
  });

  test('a folder is one archive with all that tar can keep, and what it cannot is told', async () => {
    const tree = join(root, 'tree');
    const long = join(...Array(6).fill('n'.repeat(60)));
    const raw = Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0x66, 0xff, 0x0a])]);
    mkdirSync(join(tree, long), { recursive: true });
    mkdirSync(join(tree, 'none'));
    writeFileSync(join(tree, long, 'ü'), 'deep');
    writeFileSync(join(tree, 'run'), '#!/bin/sh', { mode: 0o755 });
    writeFileSync(raw, 'raw');
    const rawLong = Buffer.concat([Buffer.from(`${tree}/${long}/`), Buffer.from([0xff]), Buffer.from('r'.repeat(200))]);
    writeFileSync(rawLong, 'raw and long');
    symlinkSync('x'.repeat(150), join(tree, 'link'));
    symlinkSync('/etc/passwd', join(tree, 'absolute'));
    execFileSync('mkfifo', [join(tree, 'pipe')]);
    const server = createServer().listen(join(tree, 'socket'));
    const { data, end, ready } = await carryOut('archive', 'tree');
    expect(ready).toMatchObject({ name: 'tree', type: 'folder' });
    expect(end?.problemCount).toBe(2);
    expect(end?.problems).toEqual(
      expect.arrayContaining([
        { name: 'pipe', reason: 'Pipe' },
        { name: 'socket', reason: 'Socket' },
      ]),
    );
    const place = unpack(data);
    server.close();
    rmSync(join(tree, 'pipe'));
    rmSync(join(tree, 'socket'), { force: true });
    execFileSync('diff', ['-r', '--no-dereference', tree, place]);
    expect(execFileSync('stat', ['-c', '%a', join(place, 'run')], { encoding: 'utf8' }).trim()).toBe('755');
    const listed = rows(await carryOut('list', 'tree'));
    const odd = listed.find(({ nameBytes }) => nameBytes);
    expect(odd).toMatchObject({ name: 'f\ufffd\n', nameBytes: Buffer.from([0x66, 0xff, 0x0a]).toString('base64') });
    rmSync(tree, { recursive: true });
  });

  test('an archive tells of files that change while they are read', async () => {
    const tree = join(root, 'live');
    mkdirSync(tree);
    writeFileSync(join(tree, 'file'), Buffer.alloc(8 * MiB, 'x'));
    const archive = (during: () => void) => carryOut('archive', 'live', { hold: true, during });
    expect((await archive(() => appendFileSync(join(tree, 'file'), 'x'))).end?.problems).toEqual([
      { name: 'file', reason: 'Grew' },
    ]);
    const shrunk = await archive(() => truncateSync(join(tree, 'file'), 10));
    expect(shrunk.end?.problems).toEqual([{ name: 'file', reason: 'Shrank' }]);
    // The archive is whole all the same.
    expect(existsSync(join(unpack(shrunk.data), 'file'))).toBe(true);
    rmSync(tree, { recursive: true });
  });

  test('a folder of 20,000 files is listed and archived as it is read', async () => {
    const tree = join(root, 'many');
    mkdirSync(tree);
    for (let count = 0; count < 20_000; count += 1) writeFileSync(join(tree, `file-${count}`), '');
    expect(rows(await carryOut('list', 'many'))).toHaveLength(20_000);
    const { data, end } = await carryOut('archive', 'many');
    expect([data.length, end?.problemCount]).toEqual([20_000 * 512 + 1024, undefined]);
    rmSync(tree, { recursive: true });
  });

  test('the helper ends when the client or the runner goes in the middle of a file', async () => {
    writeFileSync(join(root, 'large'), Buffer.alloc(16 * MiB));
    for (const goes of ['client', 'runner']) {
      using runner = await FakeRunner.listening();
      const ordered = runner.order('read', 'work', root, 'large', 0, -1);
      await using run = new HelperRun(runner.podUID);
      run.child.stdout?.pause();
      run.hello();
      const socket = await ordered;
      await expect.poll(() => run.child.stdout?.readableLength ?? 0).toBeGreaterThan(0);
      if (goes === 'client') run.child.stdin?.end();
      else socket.destroy();
      await run.exited;
      run.child.stdout?.resume();
      expect((await run.all()).some(({ kind }) => kind === 'end')).toBe(false);
    }
  });
});
