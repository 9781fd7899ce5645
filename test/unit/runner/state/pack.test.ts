import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import fs, {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterAll, describe, test, vi } from 'vitest';
import { EMPTY_DIGEST } from '../../../../runner/state/archive.ts';
import { CHUNK_BYTES, MAX_PATH_BYTES } from '../../../../runner/state/limits.ts';
import { packDirectory } from '../../../../runner/state/pack.ts';
import { unpackDirectory } from '../../../../runner/state/unpack.ts';
import { walk } from '../../../../runner/state/walk.ts';
import { eventually } from '../../../support/eventually.ts';
import { skipIf, skipWithout } from '../../../support/requires.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-state-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let count = 0;
function directory(): string {
  count += 1;
  const path = join(root, `d${count}`);
  mkdirSync(path);
  return path;
}

function fill(path: string): string {
  mkdirSync(join(path, 'sub', 'deep'), { recursive: true });
  writeFileSync(join(path, 'a'), 'one');
  writeFileSync(join(path, 'sub', 'line\nfeed'), Buffer.from([0, 255, 10]));
  writeFileSync(join(path, 'sub', `${'long'.repeat(50)}é`), 'x'.repeat(700_000), { mode: 0o751 });
  writeFileSync(join(path, 'sub', 'deep', 'empty'), '');
  symlinkSync('/etc/passwd', join(path, 'link'));
  utimesSync(join(path, 'a'), 1000, 1000);
  utimesSync(join(path, 'sub'), 1000, 1000);
  return path;
}

async function tarOf(
  entries: (Parameters<ReturnType<typeof pack>['entry']>[0] & { pax?: Record<string, string> })[],
): Promise<{ packed: Buffer; digest: string }> {
  const archive = pack();
  for (const entry of entries) archive.entry(entry, 'x'.repeat(entry.size ?? 0));
  archive.finalize();
  const chunks = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  const plain = Buffer.concat(chunks);
  return { packed: zstdCompressSync(plain), digest: createHash('sha256').update(plain).digest('hex') };
}

describe('state', () => {
  test('a directory is restored with names, contents, modes, times and links', async () => {
    const from = fill(directory());
    const { packed, digest } = await packDirectory(from);
    const to = directory();
    writeFileSync(join(to, 'stale'), '');
    await unpackDirectory(to, packed, digest);
    assert.deepEqual(readdirSync(to, { recursive: true }).sort(), readdirSync(from, { recursive: true }).sort());
    assert.deepEqual(readFileSync(join(to, 'sub', 'line\nfeed')), Buffer.from([0, 255, 10]));
    assert.equal(statSync(join(to, 'sub', `${'long'.repeat(50)}é`)).mode & 0o777, 0o751);
    assert.equal(statSync(join(to, 'a')).mtimeMs, 1_000_000);
    assert.equal(readlinkSync(join(to, 'link')), '/etc/passwd');
    assert.ok(lstatSync(join(to, 'link')).isSymbolicLink());
  });

  test('the digest of a restored directory is that of the original, so nothing counts as changed', async () => {
    const { packed, digest } = await packDirectory(fill(directory()));
    const to = directory();
    await unpackDirectory(to, packed, digest);
    assert.equal((await packDirectory(to)).digest, digest);
  });

  test('files are restored byte by byte, small ones and those about as large as the pieces that are compressed', async () => {
    const from = directory();
    const sizes = [
      0,
      1,
      511,
      512,
      513,
      100_000,
      CHUNK_BYTES - 513,
      CHUNK_BYTES - 1,
      CHUNK_BYTES,
      CHUNK_BYTES + 1,
      2 * CHUNK_BYTES,
      700_001,
    ];
    const contents = [...sizes, ...Array.from({ length: 1500 }, (_, i) => i), ...sizes].map((size) =>
      randomBytes(size),
    );
    for (const [i, content] of contents.entries()) writeFileSync(join(from, `${i}`), content);
    const { packed, digest, bytes } = await packDirectory(from);
    const plain = zstdDecompressSync(packed);
    assert.equal(plain.length, bytes);
    assert.equal(createHash('sha256').update(plain).digest('hex'), digest);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    assert.equal(readdirSync(to).length, contents.length);
    for (const [i, content] of contents.entries()) assert.ok(content.equals(readFileSync(join(to, `${i}`))), `${i}`);
  });

  test('a changed byte changes the digest', async () => {
    const path = fill(directory());
    const before = await packDirectory(path);
    writeFileSync(join(path, 'a'), 'two');
    utimesSync(join(path, 'a'), 1000, 1000);
    assert.notEqual((await packDirectory(path)).digest, before.digest);
  });

  test('an empty directory has the empty digest and can be restored', async () => {
    const { packed, digest } = await packDirectory(directory());
    assert.equal(digest, EMPTY_DIGEST);
    const to = fill(directory());
    await unpackDirectory(to, packed, digest);
    assert.deepEqual(readdirSync(to), []);
  });

  test('a directory that its owner cannot write is restored with what is in it', async () => {
    const from = directory();
    mkdirSync(join(from, 'closed'));
    writeFileSync(join(from, 'closed', 'f'), 'x');
    chmodSync(join(from, 'closed'), 0o555);
    const { packed, digest } = await packDirectory(from);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    assert.equal(statSync(join(to, 'closed')).mode & 0o777, 0o555);
    assert.equal(readFileSync(join(to, 'closed', 'f'), 'utf8'), 'x');
  });

  test(
    'a file and a directory that nobody may read keep that mode',
    skipIf(skipWithout('root', process.getuid?.() === 0, 'only root can read them')),
    async () => {
      const from = directory();
      mkdirSync(join(from, 'closed'));
      for (const name of ['f', 'closed/f']) writeFileSync(join(from, name), 'x');
      for (const name of ['f', 'closed/f', 'closed']) chmodSync(join(from, name), 0);
      const { packed, digest } = await packDirectory(from);
      const to = directory();
      await unpackDirectory(to, packed, digest);
      for (const name of ['f', 'closed/f', 'closed']) assert.equal(statSync(join(to, name)).mode & 0o7777, 0, name);
      assert.equal(readFileSync(join(to, 'closed', 'f'), 'utf8'), 'x');
      assert.equal((await packDirectory(to)).digest, digest);
    },
  );

  test('sockets are left out by name', async () => {
    const path = directory();
    const server = createServer().listen(join(path, 'sock'));
    writeFileSync(join(path, 'f'), '');
    assert.deepEqual((await packDirectory(path)).skipped, ['"sock"']);
    server.close();
  });

  test('a file that its file system gives in small pieces is stored whole, one that shrank meanwhile with zeros', async (t) => {
    const path = directory();
    writeFileSync(join(path, 'file'), randomBytes(700_000));
    const whole = await packDirectory(path);
    const { readSync } = fs;
    let most = 1000;
    const short = vi
      .spyOn(fs, 'readSync')
      .mockImplementation(((fd: number, to: Buffer, at: number, length: number, from: number) =>
        readSync(fd, to, at, Math.max(0, Math.min(length, 1000, most - from)), from)) as typeof readSync);
    t.onTestFinished(() => {
      short.mockRestore();
      syncBuiltinESMExports();
    });
    syncBuiltinESMExports();
    most = Number.POSITIVE_INFINITY;
    assert.equal((await packDirectory(path)).digest, whole.digest);
    most = 300_500;
    const { packed, digest } = await packDirectory(path);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    const content = readFileSync(join(path, 'file'));
    assert.ok(readFileSync(join(to, 'file')).equals(content.fill(0, most)));
  });

  /** Packs the directory of a file, with a change made right before the file is opened, and restores it elsewhere. */
  async function packDuring(file: string, change: () => void, maxBytes?: number): Promise<string> {
    const { openSync } = fs;
    const spy = vi.spyOn(fs, 'openSync').mockImplementation(((path: string, flags: number) => {
      if (path !== file) return openSync(path, flags);
      restore();
      change();
      return openSync(path, flags);
    }) as typeof openSync);
    const restore = () => {
      spy.mockRestore();
      syncBuiltinESMExports();
    };
    syncBuiltinESMExports();
    const { packed, digest } = await packDirectory(dirname(file), maxBytes).finally(restore);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    return to;
  }

  test('a file that is replaced meanwhile is stored whole, with its own mode and time, one that grows as far as it was counted', async () => {
    const path = directory();
    const file = join(path, 'file');
    const long = 'new'.repeat(1000);
    const replace = () => {
      writeFileSync(join(path, '..', 'next'), long, { mode: 0o700 });
      utimesSync(join(path, '..', 'next'), 2000, 2000);
      renameSync(join(path, '..', 'next'), file);
    };
    const twice = () => {
      const { ino } = statSync(file, { bigint: true });
      replace();
      replace();
      // Many file systems give the number of the file that was removed last to the next one.
      const { fstatSync } = fs;
      vi.spyOn(fs, 'fstatSync').mockImplementation(((fd: number) =>
        Object.assign(fstatSync(fd, { bigint: true }), { ino })) as typeof fstatSync);
      syncBuiltinESMExports();
    };
    const probes = directory();
    let count = 0;
    const bornNow = () => {
      const probe = join(probes, `${count++}`);
      writeFileSync(probe, '');
      return statSync(probe).birthtimeMs;
    };
    for (const change of [replace, twice]) {
      rmSync(file, { force: true });
      writeFileSync(file, 'old', { mode: 0o600 });
      // The kernel's clock for files ticks every few milliseconds.
      await eventually(() => bornNow() > statSync(file).birthtimeMs, { what: 'a tick of it' });
      const to = await packDuring(file, change).finally(() => {
        vi.restoreAllMocks();
        syncBuiltinESMExports();
      });
      assert.equal(readFileSync(join(to, 'file'), 'utf8'), long, change.name);
      const { mode, mtimeMs } = statSync(join(to, 'file'));
      assert.deepEqual([mode & 0o777, mtimeMs], [0o700, 2_000_000], change.name);
    }

    writeFileSync(file, 'old');
    const cut = await packDuring(file, () => appendFileSync(file, long));
    assert.equal(readFileSync(join(cut, 'file'), 'utf8'), 'old');
  });

  test('a file that is replaced by one above the limit meanwhile is refused with the numbers', async () => {
    const path = directory();
    const file = join(path, 'file');
    const next = join(path, '..', 'next');
    const put = (bytes: number) => () => {
      writeFileSync(next, 'x'.repeat(bytes));
      renameSync(next, file);
    };
    put(1)();
    await assert.rejects(packDuring(file, put(2000), 3000), {
      code: 'StateTooLarge',
      message: /has 3584 bytes as an archive; at most 3000 \(persistence.maxState\) can be stored/,
    });
    put(1)();
    const to = await packDuring(file, put(2000), 3584);
    assert.equal(statSync(join(to, 'file')).size, 2000);
  });

  test('a file in whose place something else is put meanwhile counts as gone', async (t) => {
    const path = directory();
    const file = join(path, 'file');
    writeFileSync(join(path, 'other'), 'kept');
    const server = createServer();
    t.onTestFinished(() => void server.close());
    for (const put of [
      () => symlinkSync('other', file),
      () => mkdirSync(file),
      () => execFileSync('mkfifo', [file]),
      () => void server.listen(file),
    ]) {
      rmSync(file, { recursive: true, force: true });
      writeFileSync(file, 'content');
      const to = await packDuring(file, () => {
        rmSync(file);
        put();
      });
      assert.deepEqual(readdirSync(to), ['other'], `${put}`);
    }
  });

  test('no more names are read than may be stored, in one directory or in many', () => {
    const path = directory();
    for (const folder of ['a', 'b', 'c']) {
      mkdirSync(join(path, folder));
      for (let i = 0; i < 60; i++) writeFileSync(join(path, folder, `${i}`), '');
    }
    for (const [where, most] of [
      [join(path, 'a'), 20],
      [path, 100],
    ] as const) {
      const room = { names: most };
      assert.throws(() => [...walk(where, '', room)], { code: 'StateTooLarge', message: /more than 131072 files/ });
      assert.equal(room.names, -1, 'the first that is too many was the last that was read');
    }
    assert.equal([...walk(path, '', { names: 183 })].length, 183);
  });

  test('a state over 32 MiB packed is refused with the numbers', async () => {
    const path = directory();
    writeFileSync(join(path, 'noise'), randomBytes(32 * 1024 * 1024));
    await assert.rejects(packDirectory(path), { code: 'StateTooLarge', message: /at most 33554432 can be stored/ });
    rmSync(path, { recursive: true });
  });

  test('an archive with another digest leaves the directory as it was', async () => {
    const { packed } = await packDirectory(fill(directory()));
    const to = directory();
    writeFileSync(join(to, 'kept'), '');
    await assert.rejects(unpackDirectory(to, packed, '0'.repeat(64)), /digest/);
    assert.deepEqual(readdirSync(to), ['kept']);
    assert.deepEqual(
      readdirSync(dirname(to)).filter((name) => name.endsWith('~')),
      [],
    );
  });

  test('a truncated or alien archive leaves the directory as it was', async () => {
    const { packed, digest } = await packDirectory(fill(directory()));
    for (const bad of [packed.subarray(0, packed.length / 2), Buffer.from('no archive'), Buffer.alloc(0)]) {
      const to = directory();
      writeFileSync(join(to, 'kept'), '');
      await assert.rejects(unpackDirectory(to, bad, digest));
      assert.deepEqual(readdirSync(to), ['kept']);
    }
  });

  test('a path that is longer than what may be stored is refused with the path, in a directory of any length', async () => {
    const path = directory();
    let name = 'a';
    while (name.length < MAX_PATH_BYTES - 201) name += `/${'d'.repeat(200)}`;
    mkdirSync(join(path, name), { recursive: true });
    const fill = MAX_PATH_BYTES - name.length - 1;
    writeFileSync(join(path, name, 'f'.repeat(fill)), 'x');
    const { packed, digest } = await packDirectory(path);
    // The restored tree is below a directory as long as the limit leaves room for.
    const to = join(directory(), 'd'.repeat(200), 'd'.repeat(200), 'd'.repeat(200));
    mkdirSync(to, { recursive: true });
    await unpackDirectory(to, packed, digest);
    assert.equal((await packDirectory(to)).digest, digest);
    renameSync(join(path, name, 'f'.repeat(fill)), join(path, name, 'f'.repeat(fill + 1)));
    await assert.rejects(packDirectory(path), {
      code: 'StateNotStored',
      message: /^BERTH_STATE_DIR: the path "a\/d{200}.* has 3073 bytes; at most 3072 can be stored$/,
    });
  });

  test('a path as long as the kernel takes in the directory, which an earlier release stored, is restored', async () => {
    const to = directory();
    const names: string[] = [];
    let name = 'd';
    while (Buffer.byteLength(join(to, name)) < 4095 - 202) {
      names.push(name);
      name += `/${'d'.repeat(200)}`;
    }
    const last = `${name}/${'f'.repeat(4095 - Buffer.byteLength(join(to, name)) - 1)}`;
    const entries = [...names, name].map((each) => ({ name: each, type: 'directory' as const }));
    const { packed, digest } = await tarOf([...entries, { name: last, size: 1 }]);
    await unpackDirectory(to, packed, digest);
    assert.equal(readFileSync(join(to, last), 'utf8'), 'x');
  });

  test('an archive whose names make it larger than what is packed today, which an earlier release stored, is restored', async () => {
    const [name, comment] = ['f000', 'x'.repeat(3 * 1024 * 1024)];
    const { packed: one } = await tarOf([{ name, pax: { comment } }]);
    const entry = zstdDecompressSync(one).subarray(0, -1024);
    const at = entry.indexOf(name);
    const plain = Buffer.alloc(90 * entry.length + 1024);
    for (let i = 0; i < 90; i++) {
      entry.copy(plain, i * entry.length);
      plain.write(`f${100 + i}`, i * entry.length + at);
    }
    const to = directory();
    await unpackDirectory(to, zstdCompressSync(plain), createHash('sha256').update(plain).digest('hex'));
    assert.equal(readdirSync(to).length, 90);
  });

  test('a hard link is restored as one, and as a file with its content by what does not know its record', async () => {
    const from = directory();
    mkdirSync(join(from, 'z'));
    writeFileSync(join(from, 'a'), 'both');
    linkSync(join(from, 'a'), join(from, 'z', 'b'));
    const { packed, digest } = await packDirectory(from);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    appendFileSync(join(to, 'a'), ' changed');
    assert.equal(readFileSync(join(to, 'z', 'b'), 'utf8'), 'both changed');
    const alien = Buffer.from(
      zstdDecompressSync(packed).toString('latin1').replace('BERTH.same', 'OTHER.same'),
      'latin1',
    );
    const other = directory();
    await unpackDirectory(other, zstdCompressSync(alien), createHash('sha256').update(alien).digest('hex'));
    assert.equal(readFileSync(join(other, 'z', 'b'), 'utf8'), 'both');
    assert.equal(statSync(join(other, 'z', 'b')).nlink, 1);
  });

  test('a hard link to what is no file of the archive is restored as a file', async () => {
    const outside = join(root, 'outside');
    writeFileSync(outside, 'secret');
    const record = (same: string) => ({ pax: { 'BERTH.same': same } });
    const { packed, digest } = await tarOf([
      { name: 'd', type: 'directory' },
      { name: 'l', type: 'symlink', linkname: outside },
      ...['../outside', outside, 'd', 'l', 'later'].map((same, i) => ({ name: `${i}`, size: 1, ...record(same) })),
      { name: 'later', size: 1 },
    ]);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    for (const i of [0, 1, 2, 3, 4]) {
      assert.equal(readFileSync(join(to, `${i}`), 'utf8'), 'x');
      assert.equal(statSync(join(to, `${i}`)).nlink, 1);
    }
  });

  test('a time before 1970 or after 2038 becomes the nearest one that can be stored', async () => {
    const from = directory();
    for (const [name, time] of [
      ['early', new Date(-5000)],
      ['late', new Date(2 ** 31 * 1000 + 500)],
    ] as const) {
      writeFileSync(join(from, name), '');
      utimesSync(join(from, name), time, time);
    }
    const { packed, digest } = await packDirectory(from);
    const to = directory();
    await unpackDirectory(to, packed, digest);
    const us = ['early', 'late'].map((name) => statSync(join(to, name), { bigint: true }).mtimeNs / 1000n);
    assert.deepEqual(us, [0n, 2_147_483_647_999_999n]);
    assert.equal((await packDirectory(to)).digest, digest);
  });

  const escapes: [sentence: string, entries: Parameters<typeof tarOf>[0]][] = [
    ['an absolute path', [{ name: `${root}/escape`, size: 1 }]],
    ['a path with ..', [{ name: '../escape', size: 1 }]],
    [
      'a path through a link',
      [
        { name: 'l', type: 'symlink', linkname: root },
        { name: 'l/escape', size: 1 },
      ],
    ],
    [
      'a file in place of another',
      [
        { name: 'f', size: 1 },
        { name: 'f', size: 1 },
      ],
    ],
    ['a device', [{ name: 'd', type: 'character-device' }]],
    ['a hard link', [{ name: 'h', type: 'link', linkname: '/etc/passwd' }]],
  ];
  for (const [sentence, entries] of escapes) {
    test(`${sentence} is refused`, async () => {
      const { packed, digest } = await tarOf(entries);
      const to = directory();
      await assert.rejects(unpackDirectory(to, packed, digest));
      assert.deepEqual(readdirSync(to), []);
      assert.ok(!existsSync(join(root, 'escape')));
    });
  }
});
