import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
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
import { dirname, join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { packFiles } from '../../../cli/files.ts';
import { unpackAgentFiles } from '../../../runner/agent-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-pack-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let number = 0;

/** A folder with these files. */
function make(files: Record<string, string | Buffer>): string {
  const cwd = join(folder, `project-${++number}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), content);
  }
  return cwd;
}

/** Paths of the files that a runner gets. */
async function given(cwd: string, paths: string[], all = false): Promise<string[]> {
  const directory = join(folder, `unpacked-${++number}`);
  await unpackAgentFiles(directory, [await packFiles(paths, { cwd, all })]);
  const found = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return found.filter((name) => !statSync(join(directory, name)).isDirectory()).sort();
}

describe('packed are', () => {
  test('files by their names and folders with theirs', async () => {
    const cwd = make({ 'agent.py': '', 'lib/a.py': '', 'lib/deep/b.py': '', 'other.py': '' });
    assert.deepEqual(await given(cwd, ['agent.py', 'lib']), ['agent.py', 'lib/a.py', 'lib/deep/b.py']);
  });

  test('the content of the folder where the path is "." or ends with "/."', async () => {
    const cwd = make({ 'agent.py': '', 'lib/a.py': '' });
    assert.deepEqual(await given(cwd, ['.']), ['agent.py', 'lib/a.py']);
    assert.deepEqual(await given(cwd, ['lib/.']), ['a.py']);
  });

  test('executable files as such, and links that stay inside', async () => {
    const cwd = make({ run: '#!/bin/sh\necho hello\n' });
    chmodSync(join(cwd, 'run'), 0o700);
    symlinkSync('run', join(cwd, 'link'));
    const directory = join(folder, `unpacked-${++number}`);
    await unpackAgentFiles(directory, [await packFiles(['.'], { cwd, all: false })]);
    assert.equal(statSync(join(directory, 'run')).mode & 0o777, 0o555);
    assert.equal(readFileSync(join(directory, 'link'), 'utf8'), '#!/bin/sh\necho hello\n');
  });
});

describe('left out are', () => {
  const secrets = { '.env': 'KEY=1', '.env.local': '', '.git/config': '', '.venv/x': '', 'node_modules/x/y': '' };
  test('version control, environments, caches and .env files, at every depth, unless all is asked for', async () => {
    const cwd = make({ ...secrets, 'sub/.env': '', 'sub/__pycache__/a.pyc': '', 'sub/a.py': '' });
    assert.deepEqual(await given(cwd, ['.']), ['sub/a.py']);
    assert.equal((await given(cwd, ['.'], true)).length, 8);
  });

  test('files that .gitignore and .berthignore name, those of folders below included', async () => {
    const cwd = make({
      '.gitignore': '*.log\n/build/\n!keep.log\n',
      '.berthignore': 'data\n',
      'a.log': '',
      'keep.log': '',
      'build/x': '',
      'sub/build/x': '',
      'data/x': '',
      'sub/.gitignore': 'own.txt\n!b.log\n',
      'sub/own.txt': '',
      'sub/b.log': '',
    });
    assert.deepEqual(await given(cwd, ['.']), [
      '.berthignore',
      '.gitignore',
      'keep.log',
      'sub/.gitignore',
      'sub/b.log',
      'sub/build/x',
    ]);
  });

  test('no files whose names differ from the rule in case, but every .env', async () => {
    const cwd = make({
      '.gitignore': 'build\nmodels/\n*.log\n',
      ...{
        BUILD: '',
        'sub/build': '',
        'Models/a': '',
        'models/a': '',
        'a.LOG': '',
        'a.log': '',
        '.ENV': 'KEY=1',
        '.Env.local': '',
      },
    });
    assert.deepEqual(await given(cwd, ['.']), ['.gitignore', 'BUILD', 'Models/a', 'a.LOG']);
  });

  test('not a file that is named itself', async () => {
    const cwd = make({ '.env': 'KEY=1' });
    assert.deepEqual(await given(cwd, ['.env']), ['.env']);
  });
});

describe('refused is', () => {
  const refusal = async (files: Record<string, string | Buffer>, ...paths: string[]) => {
    const cwd = make(files);
    return packFiles(paths, { cwd, all: false }).then(
      () => assert.fail('it was packed'),
      (error: Error) => error.message,
    );
  };
  test('a path that does not exist', async () => {
    assert.match(await refusal({ a: '' }, 'b'), /--with b: .*\/b cannot be read \(ENOENT\)/);
  });

  test('a folder of which nothing is left', async () => {
    assert.match(await refusal({ '.env': '' }, '.'), /no file is left to pack/);
  });

  test('files that do not fit into a ConfigMap; the largest files are named', async () => {
    const files = { 'big.bin': randomBytes(900_000), 'second.bin': randomBytes(300_000), 'small.txt': 'x' };
    const message = await refusal(files, '.');
    assert.match(
      message,
      /bytes compressed; at most 1048576 fit\. The largest are "big\.bin" \(900000 bytes\), "second\.bin"/,
    );
  });
});
