import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { tarEntries } from '../../../../api/inside/tar-entries.ts';

type Entry = Partial<Header> & { name: string; content?: string; pax?: Record<string, string> };

/** A tar with these entries, in pieces of some hundred bytes. */
async function* tar(entries: Entry[], leftOut = 0): AsyncGenerator<Buffer> {
  const packed = pack();
  for (const { content = '', ...header } of entries) packed.entry(header as Header, content);
  packed.finalize();
  const bytes = await buffer(packed);
  for (let at = 0; at < bytes.length - leftOut; at += 700) {
    yield bytes.subarray(at, Math.min(at + 700, bytes.length - leftOut));
  }
}

async function unpacked(bytes: AsyncIterable<Buffer>): Promise<object[]> {
  const found: object[] = [];
  for await (const { content, ...entry } of tarEntries(bytes)) {
    found.push({ ...entry, ...(content && { text: String(await buffer(content)) }) });
  }
  return found;
}

describe('a tar that is put into a folder', () => {
  test('has files, folders and links, with permissions, times to the ms and paths as tar -c . writes them', async () => {
    const mtime = new Date(1_000_000);
    const found = await unpacked(
      tar([
        { name: './', type: 'directory', mtime },
        { name: './ü/', type: 'directory', mode: 0o750, mtime },
        { name: './ü/a', content: 'one', mode: 0o4755, mtime, pax: { mtime: '1000.25' } },
        { name: './ü/link', type: 'symlink', linkname: 'a', mtime, mode: 0o777 },
      ]),
    );
    expect(found).toEqual([
      { type: 'folder', path: 'ü', mode: 0o750, modified: 1_000_000 },
      { type: 'file', path: 'ü/a', mode: 0o755, modified: 1_000_250, length: 3, text: 'one' },
      { type: 'link', path: 'ü/link', mode: 0o777, modified: 1_000_000, target: 'a' },
    ]);
  });

  const hostile: [string, Entry, string][] = [
    ['a name that leads out', { name: '../x', content: 'x' }, 'OutsideRoot'],
    ['a name that leads out later', { name: 'a/../../x', content: 'x' }, 'OutsideRoot'],
    ['an absolute name', { name: '/tmp/x', content: 'x' }, 'OutsideRoot'],
    ['a link that leads out', { name: 'a', type: 'symlink', linkname: '../x' }, 'OutsideRoot'],
    ['a hard link', { name: 'a', type: 'link', linkname: 'b' }, 'Invalid'],
    ['a device', { name: 'a', type: 'character-device', devmajor: 1, devminor: 3 }, 'Invalid'],
    ['a FIFO', { name: 'a', type: 'fifo' }, 'Invalid'],
  ];
  for (const [what, entry, code] of hostile) {
    test(`is refused where it has ${what}`, async () => {
      await expect(unpacked(tar([entry]))).rejects.toMatchObject({ code });
    });
  }

  test('is refused where it is cut or none at all, and a client that leaves is no tar that is cut', async () => {
    await expect(unpacked(tar([{ name: 'a', content: 'x'.repeat(5000) }], 4000))).rejects.toMatchObject({
      code: 'Invalid',
    });
    const none = (async function* () {
      yield Buffer.alloc(2000, 'no tar');
    })();
    await expect(unpacked(none)).rejects.toMatchObject({ code: 'Invalid' });
    const gone = (async function* () {
      yield* tar([{ name: 'a', content: 'x'.repeat(5000) }], 4000);
      throw new Error('the client has gone');
    })();
    await expect(unpacked(gone)).rejects.toThrow('the client has gone');
  });
});
