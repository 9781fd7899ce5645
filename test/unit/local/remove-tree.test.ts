import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { removeTree } from '../../../local/remove-tree.ts';
import { asUser } from '../../support/as-user.ts';

const MODULE = new URL('../../../local/remove-tree.ts', import.meta.url).href;

const scratch = mkdtempSync(join(tmpdir(), 'berth-remove-'));
chmodSync(scratch, 0o755);
afterAll(() => removeTree(scratch));

const removing = (folder: string, code: string) =>
  asUser(folder, `import fs from 'node:fs'; import { removeTree } from ${JSON.stringify(MODULE)}; ${code}`);

describe('a folder is removed', () => {
  test('with files in directories that their owner may not write to', () => {
    const folder = mkdtempSync(join(scratch, 'folder-'));
    chmodSync(folder, 0o777);
    removing(
      folder,
      `fs.mkdirSync('pod/agent/lib', { recursive: true });
      fs.writeFileSync('pod/agent/lib/a.py', '');
      for (const name of ['pod/agent/lib', 'pod/agent']) fs.chmodSync(name, 0o555);
      try { fs.rmSync('pod', { recursive: true }); process.exit(2); } catch {}
      removeTree('pod');`,
    );
    assert.equal(existsSync(join(folder, 'pod')), false);
  });

  test('without what its links lead to', () => {
    const folder = mkdtempSync(join(scratch, 'folder-'));
    chmodSync(folder, 0o777);
    removing(
      folder,
      `fs.mkdirSync('other'); fs.writeFileSync('other/a', ''); fs.chmodSync('other', 0o555);
      fs.mkdirSync('pod'); fs.symlinkSync('../other', 'pod/link'); fs.chmodSync('pod', 0o555);
      removeTree('pod');
      if ((fs.statSync('other').mode & 0o777) !== 0o555) process.exit(3);`,
    );
    assert.deepEqual([existsSync(join(folder, 'pod')), existsSync(join(folder, 'other/a'))], [false, true]);
  });

  test('that is not there', () => {
    removing(tmpdir(), "removeTree('berth-no-such-folder');");
  });
});
