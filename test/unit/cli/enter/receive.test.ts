import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { place, remotePlace } from '../../../../cli/enter/place.ts';
import { receiveFile } from '../../../../cli/enter/receive-file.ts';
import { receiveFolder } from '../../../../cli/enter/receive-folder.ts';
import type { FileEnd, FileEntry } from '../../../../core/enter/hello.ts';
import { seededRandom } from '../../../support/random.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-receive-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const END: FileEnd = { bytes: 0, sha256: '' };

async function* coming(chunks: Buffer[], end: FileEnd | Error = END): AsyncGenerator<Buffer, FileEnd> {
  yield* chunks;
  if (end instanceof Error) throw end;
  return end;
}

type Entry = Partial<Header> & { name: string; content?: string };

/** An archive with these entries, in pieces. */
async function archive(...entries: Entry[]): Promise<Buffer[]> {
  const tar = pack();
  for (const { content = '', ...header } of entries) tar.entry(header, content);
  tar.finalize();
  const bytes = await buffer(tar);
  const pieces = [];
  for (let at = 0; at < bytes.length; at += 700) pieces.push(bytes.subarray(at, at + 700));
  return pieces;
}

const entry = { name: 'a', mode: '0755', bytes: 6 } as FileEntry;
const options = () => ({ random: seededRandom(), signal: new AbortController().signal });

describe('a file', () => {
  test('appears with its mode once it is whole', async () => {
    const path = join(folder, 'a');
    await receiveFile(path, entry, coming([Buffer.from('one'), Buffer.from('two')]), options());
    expect(readFileSync(path, 'utf8')).toBe('onetwo');
    expect(statSync(path).mode & 0o700).toBe(0o700);
    expect(readdirSync(folder)).toEqual(['a']);
  });

  test('does not appear where it was cut or rewritten, and what was there stays', async () => {
    const path = join(folder, 'a');
    writeFileSync(path, 'mine');
    const lost = coming([Buffer.from('one')], new Error('lost'));
    await expect(receiveFile(path, entry, lost, options())).rejects.toThrow('lost');
    const rewritten = coming([Buffer.from('one')], { ...END, changed: 'Rewritten' });
    await expect(receiveFile(path, entry, rewritten, options())).rejects.toThrow('while it was read');
    expect(readFileSync(path, 'utf8')).toBe('mine');
    expect(readdirSync(folder)).toEqual(['a']);
  });
});

describe('a folder', () => {
  test('gets its files, empty folders, modes and links that stay inside', async () => {
    const path = join(folder, 'site');
    const received = await receiveFolder(
      path,
      coming(
        await archive(
          { name: 'closed/', type: 'directory', mode: 0o555 },
          { name: 'closed/a', content: 'one', mode: 0o644 },
          { name: 'link', type: 'symlink', linkname: 'closed/a' },
          { name: 'out', type: 'symlink', linkname: '../../etc/passwd' },
          { name: 'absolute', type: 'symlink', linkname: '/etc/passwd' },
          { name: 'ü'.repeat(120), content: 'long' },
        ),
      ),
    );
    expect(received).toMatchObject({ files: 2, leftOut: ['out', 'absolute'] });
    expect(readdirSync(path).sort()).toEqual(['closed', 'link', 'ü'.repeat(120)]);
    expect(readFileSync(join(path, 'link'), 'utf8')).toBe('one');
    expect(statSync(join(path, 'closed')).mode & 0o777).toBe(0o555 & ~process.umask());
    expect(readdirSync(folder)).toEqual(['site']);
  });

  const hostile: [string, Entry[]][] = [
    ['a name that leads out', [{ name: '../x', content: 'x' }]],
    ['a name that leads out later', [{ name: 'a/../../x', content: 'x' }]],
    ['an absolute name', [{ name: join(tmpdir(), 'berth-absolute'), content: 'x' }]],
    ['a device', [{ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }]],
    ['a hard link', [{ name: 'hard', type: 'link', linkname: '/etc/passwd' }]],
    ['a FIFO', [{ name: 'fifo', type: 'fifo' }]],
    [
      'a name twice',
      [
        { name: 'a', content: 'one' },
        { name: 'a', content: 'two' },
      ],
    ],
    [
      'a link in the place of a file',
      [
        { name: 'a', content: 'one' },
        { name: 'a', type: 'symlink', linkname: 'b' },
      ],
    ],
  ];
  for (const [what, entries] of hostile) {
    test(`with ${what} is refused, and nothing of it is left`, async () => {
      const target = join(folder, 'deep', 'site');
      mkdirSync(join(folder, 'deep'));
      const data = coming(await archive({ name: 'first', content: '1' }, ...entries, { name: 'last', content: '2' }));
      await expect(receiveFolder(target, data)).rejects.toMatchObject({ name: 'CliError' });
      expect(readdirSync(folder)).toEqual(['deep']);
      expect(readdirSync(join(folder, 'deep'))).toEqual([]);
      expect(existsSync(join(tmpdir(), 'berth-absolute'))).toBe(false);
    });
  }

  test('writes through no link, neither of the archive nor of the place', async () => {
    const target = join(folder, 'site');
    const through = await archive({ name: 'l', type: 'symlink', linkname: '.' }, { name: 'l/x', content: 'x' });
    await expect(receiveFolder(target, coming(through))).rejects.toMatchObject({ name: 'CliError' });
    expect(existsSync(target)).toBe(false);
  });

  test('that cannot be written is told by its reason', async () => {
    // A name of more than 255 bytes stands for what a file system refuses.
    const long = await archive({ name: 'a', content: 'x' }, { name: 'ü'.repeat(200), content: 'x'.repeat(50_000) });
    await expect(receiveFolder(join(folder, 'site'), coming(long))).rejects.toThrow('the name is too long');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that was cut leaves nothing', async () => {
    const pieces = await archive({ name: 'a', content: 'x'.repeat(5000) });
    const lost = coming(pieces.slice(0, 4), new Error('lost'));
    await expect(receiveFolder(join(folder, 'site'), lost)).rejects.toThrow('lost');
    const wrong = coming(pieces, new Error('not those that were sent'));
    await expect(receiveFolder(join(folder, 'site'), wrong)).rejects.toThrow('not those that were sent');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is put into one that is there: other files stay, and a link here is replaced, not followed', async () => {
    const target = join(folder, 'site');
    mkdirSync(join(target, 'sub'), { recursive: true });
    writeFileSync(join(target, 'own'), 'stays');
    writeFileSync(join(folder, 'elsewhere'), 'untouched');
    symlinkSync('../elsewhere', join(target, 'a'));
    await receiveFolder(
      target,
      coming(
        await archive(
          { name: 'a', content: 'new' },
          { name: 'sub/', type: 'directory' },
          { name: 'sub/b', content: 'b' },
        ),
      ),
    );
    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toBe('untouched');
    expect(lstatSync(join(target, 'a')).isFile()).toBe(true);
    expect(readdirSync(target).sort()).toEqual(['a', 'own', 'sub']);
  });
});

test('places in a session and on this machine are told apart by the colon before the first slash', () => {
  expect(place('work')).toEqual({ root: 'work', path: '' });
  expect(place('state/a/b')).toEqual({ root: 'state', path: 'a/b' });
  expect(() => place('etc/passwd')).toThrow('begins with no root');
  expect(remotePlace('notes:work/a:b')).toEqual({ session: 'notes', root: 'work', path: 'a:b' });
  for (const local of ['a', './notes:work', '/x:y', ':work', '..']) expect(remotePlace(local)).toBeUndefined();
  expect(() => remotePlace('notes:a')).toThrow('begins with no root');
  expect(() => remotePlace('Notes:work')).toThrow('DNS label');
});
