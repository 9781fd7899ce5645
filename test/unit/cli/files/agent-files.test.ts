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
import { packFiles } from '../../../../cli/files/agent-files.ts';
import { unpackAgentFiles } from '../../../../runner/session/agent-files.ts';

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

  const LARGEST = 64 * 1024 * 1024;
  /** Bytes of the archive beside one file's content: its header, and the two blocks at the end. */
  const BESIDE = 3 * 512;
  test('one byte more than a runner unpacks, measured as the runner does: with headers and padding', async () => {
    const cwd = make({ most: Buffer.alloc(LARGEST - BESIDE), more: Buffer.alloc(LARGEST - BESIDE + 1) });
    const directory = join(folder, `unpacked-${++number}`);
    await unpackAgentFiles(directory, [await packFiles(['most'], { cwd, all: false })]);
    assert.equal(statSync(join(directory, 'most')).size, LARGEST - BESIDE);
    await assert.rejects(
      packFiles(['more'], { cwd, all: false }),
      /--with: the files have 67109376 bytes as a tar archive; at most 67108864 fit\. The largest are "more" \(67107329 bytes\)/,
    );
  });

  test('what fits by its contents but not with the headers of long names', async () => {
    const name = (index: number) => `${'ü'.repeat(60)}/${index}-${'ö'.repeat(110)}`;
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [name(index), '']));
    const content = Buffer.alloc(LARGEST - 32 * 512 - BESIDE);
    const cwd = make({ ...files, content });
    const found = await packFiles(['.'], { cwd, all: false }).then(() => '', String);
    assert.match(found, /--with: the files have \d+ bytes as a tar archive; at most 67108864 fit/);
  });

  test('a link that leads out of the files, which is named with its target', async () => {
    for (const [target, path] of [
      ['/etc/passwd', 'lib'],
      ['../../secret', 'lib'],
      ['../secret', 'lib/.'],
    ] as const) {
      const cwd = make({ 'lib/a.py': '', secret: '' });
      symlinkSync(target, join(cwd, 'lib/link'));
      const name = path === 'lib' ? 'lib/link' : 'link';
      await assert.rejects(packFiles([path], { cwd, all: false }), {
        message: `--with ${path}: the link "${name}" leads to "${target}", which is not among the files of a session; put a copy in its place, or leave it out with .berthignore`,
      });
    }
  });

  test('a name that is a folder in one path and a file in another', async () => {
    const message = await refusal({ 'lib/a.py': '', 'other/lib': '' }, 'lib', 'other/.');
    assert.match(message, /--with: "lib" is a folder in one of the paths and a file in another/);
  });

  test('a file whose name is not UTF-8', async () => {
    const cwd = make({ 'a.py': '' });
    writeFileSync(Buffer.concat([Buffer.from(`${cwd}/`), Buffer.from([0xff, 0x2e])]), '');
    await assert.rejects(
      packFiles(['.'], { cwd, all: false }),
      /--with \.: .*\/\ufffd\. cannot be read \(its name is not UTF-8; give it another\)/,
    );
  });
});
