import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { programsOn } from '../../../runner/shell/programs.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-programs-'));
afterAll(() => rmSync(root, { recursive: true }));
for (const folder of ['first', 'second', 'second/folder']) mkdirSync(join(root, folder));
const write = (path: string, text: string, mode = 0o755) => writeFileSync(join(root, path), text, { mode });
write('first/script', '#!/bin/sh\n');
write('first/bare', 'echo\n');
write('first/plain', '#!/bin/sh\n', 0o644);
write('second/plain', '#!/bin/sh\n');
write('second/bare', '#!/bin/sh\n');
copyFileSync('/bin/true', join(root, 'second/elf'));
chmodSync(join(root, 'second/elf'), 0o755);

test('a program is what bash would find first on the PATH and the kernel can start', () => {
  const isProgram = programsOn(`${root}/first:${root}/none:${root}/second`, '/');
  assert.deepEqual(['script', 'plain', 'elf', 'bare', 'folder', 'nothing', ''].map(isProgram), [
    true,
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});

test('a path names a program where it is absolute, or relative to one that is no script', () => {
  const isProgram = programsOn('', root);
  assert.ok(isProgram(join(root, 'first/script')) && isProgram(join(root, 'second/elf')) && isProgram('second/elf'));
  assert.deepEqual(
    ['first/script', 'first/plain', 'second', 'second/folder', 'x/y'].map(isProgram),
    Array(5).fill(false),
  );
  assert.ok(!isProgram(join(root, 'first/bare')));
});

test('a folder of the PATH that is relative or empty makes what follows it uncertain', () => {
  for (const path of [`second:${root}/second`, `:${root}/second`, '', `.:${root}/second`]) {
    assert.ok(!programsOn(path, root)('elf'), path);
  }
  assert.ok(programsOn(`${root}/second:second`, root)('elf'));
});
