import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { DownloadFolder } from '../../../../cli/files/download-folder.ts';
import { digestOf } from '../../../../core/artifacts/packed.ts';
import { systemRandom } from '../../../../core/system.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const root = mkdtempSync(join(tmpdir(), 'berth-target-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function folder(overwrite = false) {
  count += 1;
  const path = join(root, `d${count}`, 'out');
  const target = new DownloadFolder({ folder: path, overwrite, random: systemRandom });
  return { path, target };
}
const never = new AbortController().signal;
const wanted = (name: string, text = 'content') => ({
  name,
  bytes: Buffer.byteLength(text),
  digest: digestOf(Buffer.from(text)),
});
const everything = (path: string) => readdirSync(path, { recursive: true }).map(String).sort();

describe('a folder that files are downloaded into', () => {
  test('is made with the folders in it, and files may be executed where they were', async () => {
    const { path, target } = folder();
    const files = [{ ...wanted('sub/deep/run'), executable: true }, wanted('line\nfeed')];
    assert.deepEqual(await target.missing(files), files);
    for (const file of files) await target.write(file, Buffer.from('content'), never);
    assert.deepEqual(everything(path), ['line\nfeed', 'sub', 'sub/deep', 'sub/deep/run']);
    assert.equal(readFileSync(join(path, 'line\nfeed'), 'utf8'), 'content');
    const mode = (name: string) => statSync(join(path, name)).mode & 0o111;
    assert.deepEqual([mode('sub/deep/run') & 0o100, mode('line\nfeed')], [0o100, 0]);
  });

  for (const name of ['../x', 'a/../../x', '/x', 'a//x', './x', '', 'a\0', 'x'.repeat(600)]) {
    test(`takes nothing where a name is no path in it, such as ${JSON.stringify(name).slice(0, 20)}`, async () => {
      const { path, target } = folder();
      await assert.rejects(target.missing([wanted('good'), wanted(name)]), /is no path in a folder; nothing was/);
      assert.throws(() => readdirSync(path));
    });
  }

  test('has no link on the way that a file could leave it by', async () => {
    const { path, target } = folder(true);
    const outside = join(root, 'outside');
    mkdirSync(outside, { recursive: true });
    mkdirSync(path, { recursive: true });
    symlinkSync(outside, join(path, 'sub'));
    writeFileSync(join(path, 'file'), '');
    await assert.rejects(
      target.missing([wanted('sub/x')]),
      /sub is no folder; remove it, or name another folder with -D/,
    );
    await assert.rejects(target.missing([wanted('file/x')]), /file is no folder/);
    await assert.rejects(target.write(wanted('sub/x'), Buffer.from('x'), never), /sub is no folder/);
    assert.deepEqual(readdirSync(outside), []);
  });

  test('may itself be reached by a link', async () => {
    const { path, target } = folder();
    mkdirSync(join(path, '..', 'real'), { recursive: true });
    symlinkSync('real', path);
    await target.write(wanted('x'), Buffer.from('content'), never);
    assert.deepEqual(readdirSync(join(path, '..', 'real')), ['x']);
  });

  test('keeps a file with other content, unless it may be replaced; one with the same is there already', async () => {
    const { path, target } = folder();
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'same'), 'content');
    writeFileSync(join(path, 'other'), 'mine');
    mkdirSync(join(path, 'folder'));
    assert.deepEqual(await target.missing([wanted('same')]), []);
    await assert.rejects(target.missing([wanted('other')]), /other exists with other content; --overwrite replaces it/);
    await assert.rejects(target.missing([wanted('folder')]), /folder is a folder; remove it/);
    // It has appeared since the check.
    await assert.rejects(target.write(wanted('other'), Buffer.from('content'), never), /exists with other content/);
    assert.equal(readFileSync(join(path, 'other'), 'utf8'), 'mine');
    const replacing = new DownloadFolder({ folder: path, overwrite: true, random: systemRandom });
    assert.equal((await replacing.missing([wanted('other')])).length, 1);
    await replacing.write(wanted('other'), Buffer.from('content'), never);
    assert.equal(readFileSync(join(path, 'other'), 'utf8'), 'content');
    assert.deepEqual(everything(path), ['folder', 'other', 'same']);
  });

  test('replaces a link and not what it leads to', async () => {
    const { path, target } = folder(true);
    mkdirSync(path, { recursive: true });
    writeFileSync(join(root, 'target'), 'mine');
    symlinkSync(join(root, 'target'), join(path, 'x'));
    assert.equal((await target.missing([wanted('x')])).length, 1);
    await target.write(wanted('x'), Buffer.from('content'), never);
    assert.equal(readFileSync(join(root, 'target'), 'utf8'), 'mine');
    assert.equal(readFileSync(join(path, 'x'), 'utf8'), 'content');
  });

  test('has no part of a file for which the disk has no room', () => {
    const { path } = folder();
    const code = `
      import { DownloadFolder } from '${ROOT}/cli/files/download-folder.ts';
      import { systemRandom } from '${ROOT}/core/system.ts';
      const target = new DownloadFolder({ folder: ${JSON.stringify(path)}, overwrite: false, random: systemRandom });
      const write = (name, bytes) =>
        target.write({ name, bytes, digest: '' }, Buffer.alloc(bytes), new AbortController().signal);
      await write('small', 100);
      await write('large', 10_000_000).catch(({ message }) => console.log(message));`;
    // A limit on the size of files does to a write what a full disk does: it takes a part, and refuses the rest.
    const limited = ['-c', 'ulimit -f 64 && exec "$0" "$@"', process.execPath, '--input-type=module', '-e', code];
    const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
    assert.match(stdout, /^.*\/large cannot be written: .*\(EFBIG\)\n$/, stderr);
    assert.deepEqual(everything(path), ['small']);
  });

  test('says in words why a file cannot be written', async () => {
    const { target } = folder();
    const name = 'x'.repeat(300);
    await assert.rejects(
      target.write(wanted(name), Buffer.from(''), never),
      /cannot be written: the name is too long for the file system \(ENAMETOOLONG\)/,
    );
  });

  test('has the whole of a file or nothing, whenever Ctrl-C comes', async () => {
    const { path, target } = folder();
    const content = Buffer.alloc(4_000_000, 'x');
    const outcomes = new Set<string>();
    for (let after = 0; after < 24; after++) {
      const interrupted = new AbortController();
      const name = `f${after}`;
      const file = { name, bytes: content.length, digest: digestOf(content) };
      const writing = target.write(file, content, interrupted.signal).then(
        () => 'whole',
        (error) => error,
      );
      for (let turns = 0; turns < after; turns++) await new Promise(setImmediate);
      interrupted.abort('Ctrl-C');
      const outcome = await writing;
      outcomes.add(outcome);
      assert.deepEqual(
        readdirSync(path).filter((one) => one === name || one.endsWith('.part')),
        outcome === 'whole' ? [name] : [],
      );
      if (outcome === 'whole') assert.equal(statSync(join(path, name)).size, content.length);
    }
    assert.ok(outcomes.has('Ctrl-C'));
  });
});
