import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { targetsOf } from './imports.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Folders of controller/ in the order of their table in docs/architecture.md. */
function folders(): string[] {
  const [, rest = ''] = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').split('| folder of `controller/` |');
  const [table = ''] = rest.split('\n\n');
  return [...table.matchAll(/^\| `(\w+)\/` \|/gm)].map(([, folder = '']) => folder);
}

/** The first folders of the table. So they import each other only, from left to right. */
const FIRST = ['observed', 'settings', 'status', 'decide'];

/** Folder of controller/ that has the file; undefined: the file is in the root. */
const folderOf = (file: string) => (file.split('/').length > 2 ? file.split('/')[1] : undefined);

test('a folder of controller/ imports only folders above it in the table of docs/architecture.md, and no file of the root', () => {
  const order = folders();
  const present = globSync('controller/*/', { cwd: ROOT }).map((folder) => folder.split('/')[1]);
  assert.deepEqual(order.toSorted(), present.toSorted(), 'the table has each folder');
  assert.deepEqual(order.slice(0, FIRST.length), FIRST, 'the table begins with these folders');
  const crossings = globSync('controller/*/**/*.ts', { cwd: ROOT }).flatMap((file) => {
    const above = order.slice(0, order.indexOf(folderOf(file) ?? '') + 1);
    const targets = targetsOf(file).filter((target) => target.startsWith('controller/'));
    return targets.filter((target) => !above.includes(folderOf(target) ?? '')).map((to) => `${file} imports ${to}`);
  });
  assert.deepEqual(crossings, []);
});
