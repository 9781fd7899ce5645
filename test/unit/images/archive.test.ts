import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { writeArchive } from '../../../images/archive.ts';
import { writeLayer } from '../../../images/layer.ts';

async function temporary(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-images-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A root folder whose files are written in the given order, with the given umask and date. */
async function makeRoot(root: string, names: string[], date: Date, loose: boolean): Promise<string> {
  await mkdir(join(root, 'bin'), { recursive: true });
  for (const name of names) {
    const path = join(root, 'bin', name);
    await writeFile(path, `content of ${name}`);
    await chmod(path, name.startsWith('x') ? (loose ? 0o775 : 0o700) : loose ? 0o664 : 0o600);
    await utimes(path, date, date);
  }
  await symlink('bin/a', join(root, 'link'));
  return root;
}

const listing = (tar: string) => execFileSync('tar', ['-tvf', tar, '--numeric-owner', '--utc'], { encoding: 'utf8' });

describe('an image', () => {
  test('has the same bytes whenever, by whom and in whatever order its files were made', async (t) => {
    const folder = await temporary(t);
    const one = await makeRoot(join(folder, 'one'), ['a', 'x', 'b'], new Date(1e12), true);
    const two = await makeRoot(join(folder, 'two'), ['b', 'a', 'x'], new Date(2e11), false);
    const results = [];
    for (const [index, root] of [one, two].entries()) {
      const image = { name: 'berth/test:1', layers: [{ folder: root }], config: { Entrypoint: ['/bin/x'] } };
      results.push(await writeArchive(image, join(folder, `${index}.tar`)));
    }
    assert.equal(results[0]?.id, results[1]?.id);
    assert.ok((await readFile(join(folder, '0.tar'))).equals(await readFile(join(folder, '1.tar'))));
  });

  test('belongs to root, and only a mode or group that is asked for is unusual', async (t) => {
    const folder = await temporary(t);
    const root = await makeRoot(join(folder, 'root'), ['a', 'x'], new Date(), true);
    await writeLayer(root, join(folder, 'layer.tar'), { '/bin/x': { mode: 0o751, gid: 65531 } });
    const lines = listing(join(folder, 'layer.tar')).trim().split('\n');
    assert.deepEqual(
      lines.map((line) => line.replace(/ +\d+ 1970-01-01 \d\d:\d\d /, ' ')),
      ['drwxr-xr-x 0/0 bin', '-rw-r--r-- 0/0 bin/a', '-rwxr-x--x 0/65531 bin/x', 'lrwxrwxrwx 0/0 link -> bin/a'],
    );
  });

  test('names its configuration and layers by their digests', async (t) => {
    const folder = await temporary(t);
    const root = await makeRoot(join(folder, 'root'), ['a'], new Date(), true);
    const config = { Entrypoint: ['/bin/a'], User: '65532:65532' };
    const { id, layers, file } = await writeArchive(
      { name: 'berth/test:2', layers: [{ folder: root }], config },
      join(folder, 'image.tar'),
    );
    execFileSync('tar', ['-xf', file, '-C', folder]);
    const digest = (path: string) =>
      execFileSync('sha256sum', [join(folder, path)], { encoding: 'utf8' }).split(' ')[0];
    const [manifest] = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    assert.deepEqual(manifest.RepoTags, ['berth/test:2']);
    assert.equal(`sha256:${digest(manifest.Config)}`, id);
    assert.deepEqual(
      manifest.Layers.map((name: string) => `sha256:${digest(name)}`),
      layers,
    );
    const written = JSON.parse(await readFile(join(folder, manifest.Config), 'utf8'));
    assert.deepEqual(written.config, config);
    assert.deepEqual(written.rootfs.diff_ids, layers);
  });

  test('cannot hold a pipe, and leaves no half-written archive behind', async (t) => {
    const folder = await temporary(t);
    const root = await makeRoot(join(folder, 'root'), ['a'], new Date(), true);
    execFileSync('mkfifo', [join(root, 'pipe')]);
    const image = { name: 'berth/test:3', layers: [{ folder: root }], config: { Entrypoint: ['/bin/a'] } };
    await assert.rejects(
      writeArchive(image, join(folder, 'image.tar')),
      /pipe is neither a file, a folder nor a symbolic/,
    );
    assert.deepEqual(execFileSync('ls', [folder], { encoding: 'utf8' }), 'root\n');
  });
});
