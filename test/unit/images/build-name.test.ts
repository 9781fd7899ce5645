import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { buildName } from '../../../images/build-name.ts';

describe('the tag of the images', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-build-name-'));
    await writeFile(join(folder, 'package.json'), '{"version": "1.2.3"}');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: folder });
  const commit = async () => {
    await git('add', '-A');
    await git('commit', '--quiet', '--message', 'x');
  };

  test('has the version and the commit, and with changes a digest of these, so that no two builds share one', async () => {
    await git('init', '--quiet');
    await commit();
    const clean = await buildName(folder);
    assert.equal(clean.version, '1.2.3');
    assert.match(clean.revision, /^[0-9a-f]{40}$/);
    assert.equal(clean.tag, `1.2.3-g${clean.revision.slice(0, 8)}`);

    const tags = [clean.tag];
    const next = async () => {
      const { tag, revision } = await buildName(folder);
      assert.ok(!tags.includes(tag), `${tag} is one of ${tags}`);
      assert.match(tag, /^1\.2\.3-g[0-9a-f]{8}-dirty-[0-9a-f]{8}$/);
      assert.match(revision, /^[0-9a-f]{40}-dirty-[0-9a-f]{8}$/);
      tags.push(tag);
    };
    await writeFile(join(folder, 'package.json'), '{"version": "1.2.3", "a": 1}');
    await next();
    await git('add', '-A');
    assert.equal((await buildName(folder)).tag, tags.at(-1));
    await writeFile(join(folder, 'new'), 'one');
    await next();
    await writeFile(join(folder, 'new'), 'two');
    await next();
    await symlink('nowhere', join(folder, 'link'));
    await next();
    await git('reset', '--quiet', '--hard');
    await git('clean', '--quiet', '--force', '-d');
    assert.deepEqual(await buildName(folder), clean);
    await writeFile(join(folder, 'new'), 'one');
    await commit();
    const second = await buildName(folder);
    assert.match(second.tag, /^1\.2\.3-g[0-9a-f]{8}$/);
    assert.notEqual(second.tag, clean.tag);
  });

  test('is not made up where there is no repository', async () => {
    await assert.rejects(
      buildName(folder),
      /the commit of .* is unknown, and images are named after it: .*; build them in a clone of the repository/s,
    );
  });
});
