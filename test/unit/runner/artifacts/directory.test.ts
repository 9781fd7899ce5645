import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test, vi } from 'vitest';
import { digestOf, packContents, unpackContents } from '../../../../core/artifacts/packed.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { outputDirectory } from '../../../../runner/artifacts/directory.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-artifacts-'));
afterAll(() => {
  execFileSync('chmod', ['-R', 'u+rwx', root]);
  rmSync(root, { recursive: true, force: true });
});
const outside = join(root, 'outside');
writeFileSync(outside, 'not yours');

const limits = { maxBytes: 1000, maxFiles: 4 };
const secret = 'correct-horse-battery';
const secrets = hiddenBy({ values: [secret, 'schlüssel-mit-ü'] }).outputs;

let count = 0;
function folder() {
  count += 1;
  const path = join(root, `d${count}`);
  mkdirSync(path);
  return { path, output: outputDirectory(path, limits, secrets) };
}

const leftOut = (name: string, reason: string) => ({ count: 1, entries: [{ name, reason }] });

describe('the artifacts of a turn', () => {
  test('are the files of the folder and its subfolders, by name, size, digest and mode', async () => {
    const { path, output } = folder();
    mkdirSync(join(path, 'sub', 'empty'), { recursive: true });
    writeFileSync(join(path, 'sub', 'run.sh'), 'echo 1', { mode: 0o755 });
    writeFileSync(join(path, 'b "é\n'), '');
    writeFileSync(join(path, 'a.bin'), Buffer.from([0, 255, 10]));
    writeFileSync(join(path, '.berth-upload-0123456789abcdef'), 'half of a file that is written from outside');
    const { files, contents, leftOut } = await output.collect();
    assert.deepEqual(files, [
      { name: 'a.bin', bytes: 3, digest: digestOf(Buffer.from([0, 255, 10])) },
      { name: 'b "é\n', bytes: 0, digest: digestOf(Buffer.alloc(0)) },
      { name: 'sub/run.sh', bytes: 6, digest: digestOf(Buffer.from('echo 1')), executable: true },
    ]);
    assert.deepEqual(leftOut, { count: 0, entries: [] });
    assert.deepEqual(Buffer.concat(contents), await unpackContents(files, await packContents(contents)));
  });

  test('of a folder that the agent has removed are none', async () => {
    const { path, output } = folder();
    rmSync(path, { recursive: true });
    assert.deepEqual((await output.collect()).files, []);
  });

  test('cannot be had of a link in the place of the folder', async () => {
    const { path, output } = folder();
    rmSync(path, { recursive: true });
    symlinkSync('/etc', path);
    await assert.rejects(output.collect(), { code: 'ArtifactsNotStored', message: /is no directory any more/ });
    output.empty();
    assert.deepEqual((await output.collect()).files, []);
    assert.ok(existsSync('/etc/passwd'));
  });

  test('are too large above the limits, which the error names with the largest files', async () => {
    const { path, output } = folder();
    writeFileSync(join(path, 'small'), 'x');
    writeFileSync(join(path, 'big'), 'x'.repeat(1000));
    const code = 'ArtifactsTooLarge';
    const message =
      'BERTH_OUTPUT_DIR has 1001 bytes; 1000 can be kept (artifacts.maxBytes); the largest are "big" (1000 bytes), "small" (1 bytes)';
    await assert.rejects(output.collect(), { code, message });
    rmSync(join(path, 'small'));
    assert.equal((await output.collect()).files.length, 1, 'exactly the limit fits');
    rmSync(join(path, 'big'));
    for (const name of ['1', '2', '3', '4']) writeFileSync(join(path, name), '');
    assert.equal((await output.collect()).files.length, 4, 'exactly the limit fits');
    writeFileSync(join(path, '5'), '');
    await assert.rejects(output.collect(), {
      code,
      message: /^BERTH_OUTPUT_DIR has more than 4 files; no more .*maxFiles/,
    });
  });

  test('of a folder with any number of empty files are counted up to the limit only', async () => {
    const { output } = folder();
    const endless = { readSync: vi.fn(() => ({ name: Buffer.from('x') })), closeSync: vi.fn() };
    const opendir = vi.spyOn(fs, 'opendirSync').mockReturnValue(endless as unknown as fs.Dir);
    syncBuiltinESMExports();
    try {
      await assert.rejects(output.collect(), {
        code: 'ArtifactsTooLarge',
        message: /more than 10000 files and folders/,
      });
      assert.equal(endless.readSync.mock.calls.length, 10_001);
      assert.equal(endless.closeSync.mock.calls.length, 1);
    } finally {
      opendir.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('include what a link inside the folder leads to, and no other link', async () => {
    const { path, output } = folder();
    mkdirSync(join(path, 'sub'));
    writeFileSync(join(path, 'sub', 'file'), 'here');
    symlinkSync('sub/file', join(path, 'inside'));
    symlinkSync(outside, join(path, 'l1-out'));
    symlinkSync('../outside', join(path, 'l2-up'));
    symlinkSync('l3-loop', join(path, 'l3-loop'));
    symlinkSync('sub', join(path, 'l4-folder'));
    symlinkSync('nothing', join(path, 'l5-nothing'));
    const { files, contents, leftOut } = await output.collect();
    assert.deepEqual(
      files.map(({ name }, i) => [name, String(contents[i])]),
      [
        ['inside', 'here'],
        ['sub/file', 'here'],
      ],
    );
    const reason = 'Symlink';
    const names = ['l1-out', 'l2-up', 'l3-loop', 'l4-folder', 'l5-nothing'];
    assert.deepEqual(leftOut, { count: 5, entries: names.map((name) => ({ name, reason })) });
  });

  test('are read from no other place when a folder becomes a link meanwhile', async () => {
    const { path, output } = folder();
    mkdirSync(join(path, 'sub'));
    writeFileSync(join(path, 'sub', 'outside'), 'mine');
    const open = fs.openSync;
    const swapped = vi.spyOn(fs, 'openSync').mockImplementationOnce((...args) => {
      rmSync(join(path, 'sub'), { recursive: true });
      symlinkSync(root, join(path, 'sub'));
      return open(...args);
    });
    syncBuiltinESMExports();
    try {
      assert.deepEqual((await output.collect()).files, []);
    } finally {
      swapped.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('are no FIFOs, sockets and unreadable names, and wait for nobody', async () => {
    const { path, output } = folder();
    execFileSync('mkfifo', [join(path, 'fifo')]);
    const server = createServer().listen(join(path, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    writeFileSync(Buffer.concat([Buffer.from(`${path}/`), Buffer.from([0x78, 0xff])]), '');
    let deep = path;
    for (let i = 0; i < 3; i++) {
      deep = join(deep, 'd'.repeat(200));
      mkdirSync(deep);
    }
    const { files, leftOut } = await output.collect();
    server.close();
    assert.deepEqual(files, []);
    assert.equal(leftOut.count, 4);
    assert.deepEqual(
      leftOut.entries.map(({ name, reason }) => [name.slice(0, 8), reason]),
      [
        ['dddddddd', 'NameTooLong'],
        ['fifo', 'Special'],
        ['socket', 'Special'],
        ['x\ufffd', 'NotUTF8'],
      ],
    );
  });

  test('are no files and folders that may not be read', async () => {
    const { path, output } = folder();
    writeFileSync(join(path, 'file'), '');
    mkdirSync(join(path, 'sub'));
    const [open, opendir] = [fs.openSync, fs.opendirSync];
    const refused = () => {
      throw Object.assign(new Error('EACCES'), { code: 'EACCES' });
    };
    const spies = [
      vi
        .spyOn(fs, 'openSync')
        .mockImplementation((...args) => (args[0] === join(path, 'file') ? refused() : open(...args))),
      vi
        .spyOn(fs, 'opendirSync')
        .mockImplementation((...args) => (args[0] === join(path, 'sub') ? refused() : opendir(...args))),
    ];
    syncBuiltinESMExports();
    try {
      const { files, leftOut } = await output.collect();
      assert.deepEqual(files, []);
      assert.deepEqual(leftOut.entries.map(({ name, reason }) => `${name} ${reason}`).sort(), [
        'file Unreadable',
        'sub Unreadable',
      ]);
    } finally {
      for (const spy of spies) spy.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('of which many are left out name the first ten', async () => {
    const { path, output } = folder();
    for (let i = 10; i < 30; i++) symlinkSync('/', join(path, `${i}`));
    const { leftOut } = await output.collect();
    assert.equal(leftOut.count, 20);
    assert.deepEqual(
      leftOut.entries.map(({ name }) => name),
      Array.from({ length: 10 }, (_, i) => `${i + 10}`),
    );
  });

  test('of a file that grows while it is read have the size that was counted, and of one that shrinks what is left', async () => {
    const { path, output } = folder();
    writeFileSync(join(path, 'grows'), 'ab');
    writeFileSync(join(path, 'shrinks'), 'abcd');
    const open = fs.openSync;
    const grown = vi.spyOn(fs, 'openSync').mockImplementationOnce((...args) => {
      writeFileSync(join(path, 'grows'), 'abc'.repeat(100_000), { flag: 'r+' });
      writeFileSync(join(path, 'shrinks'), 'a');
      return open(...args);
    });
    syncBuiltinESMExports();
    try {
      const { files, contents } = await output.collect();
      assert.deepEqual(contents.map(String), ['ab', 'a']);
      assert.deepEqual(
        files.map(({ bytes }) => bytes),
        [2, 1],
      );
    } finally {
      grown.mockRestore();
      syncBuiltinESMExports();
    }
  });

  test('hide the values of secrets in text, in other bytes and in names, and nothing that only looks like one', async () => {
    const { path, output } = folder();
    const binary = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('x schlüssel-mit-ü y')]);
    writeFileSync(join(path, 'binary'), binary);
    writeFileSync(join(path, 'text'), `é ${secret}, password=hunter2hunter2`);
    writeFileSync(join(path, `of-${secret}`), '');
    const { files, contents, leftOut: out, redactions } = await output.collect();
    assert.deepEqual(
      files.map(({ name }) => name),
      ['binary', 'text'],
    );
    assert.deepEqual(contents[0], Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('x [REDACTED] y')]));
    assert.equal(String(contents[1]), 'é [REDACTED], password=hunter2hunter2');
    assert.equal(redactions, 2);
    assert.deepEqual(out, leftOut('of-[REDACTED]', 'Secret'));
  });

  test('begin with an empty folder, whatever stood in its place', async () => {
    const { path, output } = folder();
    mkdirSync(join(path, 'sub'));
    writeFileSync(join(path, 'sub', 'file'), '');
    chmodSync(join(path, 'sub'), 0);
    output.empty();
    assert.deepEqual(readdirSync(path), []);
    rmSync(path, { recursive: true });
    writeFileSync(path, 'a file');
    output.empty();
    assert.deepEqual(readdirSync(path), []);
    rmSync(path, { recursive: true });
    output.empty();
    assert.deepEqual(readdirSync(path), []);
  });
});

describe('packed contents', () => {
  const content = Buffer.from('one two');
  const files = [
    { name: 'a', bytes: 4, digest: digestOf(content.subarray(0, 4)) },
    { name: 'b', bytes: 3, digest: digestOf(content.subarray(4)) },
  ];
  test('that are not what the sizes and digests say are refused', async () => {
    assert.deepEqual(await unpackContents(files, await packContents([content])), content);
    assert.equal(await unpackContents(files, await packContents([Buffer.from('one twx')])), undefined);
    assert.equal(await unpackContents(files, await packContents([Buffer.from('one tw')])), undefined);
    assert.equal(await unpackContents(files, await packContents([Buffer.alloc(100_000)])), undefined, 'a bomb');
    assert.equal(await unpackContents(files, content), undefined, 'not compressed');
  });
});
