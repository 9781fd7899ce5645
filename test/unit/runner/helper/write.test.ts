import { createHash } from 'node:crypto';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { encodeFrame, encodeJson, FrameDecoder, type FrameKind } from '../../../../core/enter/frames.ts';
import { putThere, takeAway } from '../../../../runner/enter/rename.ts';
import { FakeRunner, HELPER, HelperRun, noHelper } from '../../../support/helper-run.ts';
import { skipIf } from '../../../support/requires.ts';

const UPLOAD = '.berth-upload-0123456789abcdef';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

let root: string;
const at = (...names: string[]) => join(root, ...names);
const everything = () => readdirSync(root, { recursive: true }).map(String).sort();

interface Options {
  length?: number;
  option?: number;
  modified?: string;
  digest?: string;
  helper?: string;
  /** What the runner does when a place is to be had; default: it renames. */
  placed?: (socket: Socket, path: string) => void;
}

/** A runner that gives an order and renames what the helper asks it to. */
async function ordered(runner: FakeRunner, operation: string, path: string, options: Options): Promise<void> {
  const { length = -1, option = -1, modified = '', digest = '' } = options;
  const socket = await runner.order(operation, 'work', root, path, option, length, UPLOAD, 'Pod', modified, digest);
  const decoder = new FrameDecoder();
  let current = path;
  const rename = (socket: Socket, at: string) => {
    if (operation === 'delete') takeAway(root, at, UPLOAD);
    else putThere(root, at, UPLOAD);
    socket.write(encodeJson('ready', {}));
  };
  socket.on('data', (chunk: Buffer) => {
    for (const { kind, payload } of decoder.push(chunk)) {
      if (kind === 'entry') current = String(payload);
      else if (kind === 'place') (options.placed ?? rename)(socket, current);
    }
  });
}

/** The last frame of a helper that gets these frames, as `CODE field` of a refusal or as its kind. */
async function outcome(
  operation: string,
  path: string,
  frames: [FrameKind, string][],
  options: Options = {},
): Promise<string> {
  using runner = await FakeRunner.listening();
  const order = ordered(runner, operation, path, options);
  await using run = new HelperRun(runner.podUID, undefined, options.helper);
  run.hello();
  await order;
  for (const [kind, text] of frames) run.child.stdin?.write(encodeFrame(kind, Buffer.from(text)));
  const answer = (await run.all()).filter(({ kind }) => kind !== 'beat').at(-1);
  if (answer?.kind !== 'refused') return `${answer?.kind}`;
  const { code, field } = JSON.parse(String(answer.payload));
  return [code, field].filter(Boolean).join(' ');
}

const write = (path: string, content: string, options: Options = {}) =>
  outcome(
    'write',
    path,
    [
      ['data', content],
      ['end', ''],
    ],
    options,
  );

const entry = (type: string, path: string, rest: string | number): [FrameKind, string] => [
  'entry',
  `${[type, path, 0o640, 1000, rest].join('\0')}\0`,
];

describe('files that the helper writes', skipIf(noHelper), () => {
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'berth-write-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  test('get their name, permissions and time from the order, with the folders on the way', async () => {
    expect(await write('a/b/c', 'content', { option: 0o640, modified: '86400123' })).toBe('end');
    expect(readFileSync(at('a/b/c'), 'utf8')).toBe('content');
    expect(statSync(at('a/b/c')).mode & 0o777).toBe(0o640);
    expect(statSync(at('a/b/c')).mtimeMs).toBe(86_400_123);
    expect(everything()).toEqual(['a', 'a/b', 'a/b/c']);
  });

  test('have each byte once, wherever the frames are cut on their way', async () => {
    const pieces = [65_530, 4, 65_536, 0, 65_531, 1, 40_000, 65_536].map((length, at) => `${at}`.repeat(length));
    const frames = pieces.flatMap((piece): [FrameKind, string][] => [
      ['beat', ''],
      ['data', piece],
    ]);
    const content = pieces.join('');
    expect(await outcome('write', 'a', [...frames, ['end', sha256(content)]], { length: content.length })).toBe('end');
    expect(readFileSync(at('a'), 'utf8') === content).toBe(true);
  });

  test('are refused, and leave no file and no folder, where the content is not what was told', async () => {
    expect(await write('a/b', 'content', { length: 8 })).toBe('ContentMismatch length');
    expect(await write('a/b', 'content', { length: 6 })).toBe('ContentMismatch length');
    expect(await write('a/b', 'content', { digest: sha256('other') })).toBe('ContentMismatch sha256');
    const told: [FrameKind, string][] = [
      ['data', 'content'],
      ['end', sha256('other')],
    ];
    expect(await outcome('write', 'a/b', told)).toBe('ContentMismatch sha256');
    expect(await outcome('write', 'a/b', [['entry', 'x']])).toBe('Invalid');
    expect(everything()).toEqual([]);
    told[1] = ['end', sha256('content')];
    expect(await outcome('write', 'a/b', told, { length: 7, digest: sha256('content') })).toBe('end');
  });

  test('leave nothing where the runner refuses the place, or is gone', async () => {
    writeFileSync(at('there'), 'old');
    const refuses = (socket: Socket) => {
      expect(everything()).toEqual(['there', 'x', `x/${UPLOAD}`]);
      socket.write(encodeJson('refused', { code: 'Suspended', message: 'it is suspended' }));
    };
    expect(await write('x/y', 'new', { placed: refuses })).toBe('Suspended');
    expect(await write('there', 'new', { placed: (socket) => void socket.destroy() })).toBe('ready');
    expect(everything()).toEqual(['there']);
    expect(readFileSync(at('there'), 'utf8')).toBe('old');
  });

  test('are refused where there is no space, and leave nothing', async () => {
    // A limit of 512 bytes for each file stands for a disk with so much room.
    const helper = `${root}.sh`;
    writeFileSync(helper, `#!/bin/sh\nulimit -f 1\nexec ${HELPER}\n`, { mode: 0o755 });
    expect(await write('a/b', 'x'.repeat(2000), { helper })).toBe('NoSpace path');
    rmSync(helper);
    expect(everything()).toEqual([]);
  });

  test('leave nothing where the client is gone in the middle', async () => {
    using runner = await FakeRunner.listening();
    const order = ordered(runner, 'write', 'new/file', {});
    await using run = new HelperRun(runner.podUID);
    run.hello();
    await order;
    run.send('data', Buffer.from('the beginning'));
    run.child.stdin?.end();
    await run.exited;
    expect(everything()).toEqual([]);
  });

  test('are refused where something else is at the place or on the way', async () => {
    mkdirSync(at('folder'));
    writeFileSync(at('file'), '');
    symlinkSync('/tmp', at('out'));
    symlinkSync('../..', at('up'));
    symlinkSync('folder', at('in'));
    const before = readdirSync(root).sort();
    expect(await write('folder', 'x')).toBe('NotAFile path');
    expect(await write('file/x', 'x')).toBe('NotAFolder path');
    expect(await write('out/x', 'x')).toBe('OutsideRoot path');
    expect(await write('up/x/y', 'x')).toBe('OutsideRoot path');
    expect(await write(`${'n'.repeat(300)}`, 'x')).toBe('Invalid path');
    expect(readdirSync(root).sort()).toEqual(before);
    expect(await write('in/x', 'x')).toBe('end');
    expect(readFileSync(at('folder/x'), 'utf8')).toBe('x');
  });

  test('fill a folder one by one, over files that are there and never over a folder', async () => {
    mkdirSync(at('into/sub'), { recursive: true });
    writeFileSync(at('into/a'), 'old');
    const frames: [FrameKind, string][] = [
      entry('file', 'a', 3),
      ['data', 'ne'],
      ['data', 'w'],
      entry('folder', 'sub', 0),
      entry('folder', 'more', 0),
      entry('file', 'more/empty', 0),
      entry('link', 'more/link', '../a'),
      ['end', ''],
    ];
    expect(await outcome('fill', 'into', frames)).toBe('end');
    expect(everything()).toEqual(['into', 'into/a', 'into/more', 'into/more/empty', 'into/more/link', 'into/sub']);
    expect(readFileSync(at('into/more/link'), 'utf8')).toBe('new');
    expect(await outcome('fill', 'into', [entry('file', 'sub', 0)])).toBe('NotAFile path');
    expect(await outcome('fill', 'into', [entry('folder', 'a', 0)])).toBe('NotAFolder path');
    for (const path of ['../x', 'x/../../y', '/etc/x', 'x//y', '.', 'x/']) {
      expect(await outcome('fill', 'into', [entry('file', path, 0)]), path).toBe('OutsideRoot path');
    }
    const short: [FrameKind, string][] = [entry('file', 'short', 3), ['data', 'xx'], entry('file', 'next', 0)];
    expect(await outcome('fill', 'into', short)).toBe('ContentMismatch length');
    expect(everything()).not.toContain('into/short');
    expect(everything().some((name) => name.includes(UPLOAD))).toBe(false);
  });

  test('a link that was sent into a folder leads nothing out of the root', async () => {
    const frames: [FrameKind, string][] = [entry('link', 'out', '/tmp'), entry('file', 'out/x', 0)];
    expect(await outcome('fill', '', frames)).toBe('OutsideRoot path');
  });

  test('are deleted: a link itself, and a folder only where that is asked for', async () => {
    mkdirSync(at('folder/deep'), { recursive: true });
    writeFileSync(at('folder/deep/a'), '');
    symlinkSync('folder', at('link'));
    expect(await outcome('delete', 'folder', [], { option: 0 })).toBe('NotAFile path');
    expect(await outcome('delete', 'none', [], { option: 1 })).toBe('FileNotFound path');
    expect(await outcome('delete', 'link', [], { option: 0 })).toBe('end');
    expect(everything()).toEqual(['folder', 'folder/deep', 'folder/deep/a']);
    expect(await outcome('delete', 'folder', [], { option: 1 })).toBe('end');
    expect(everything()).toEqual([]);
  });
});
