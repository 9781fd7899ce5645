import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { asUser } from '../../support/as-user.ts';

const MODULE = join(import.meta.dirname, '..', '..', '..', 'local', 'kubelet', 'projected.ts');

test('files of Secrets, which nobody may write to, can be written once more', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-projected-'));
  chmodSync(folder, 0o777);
  t.onTestFinished(() => rmSync(folder, { recursive: true }));
  const printed = asUser(
    folder,
    `import fs from 'node:fs';
    import { writeProjected } from '${MODULE}';
    const sources = [{ secret: { name: 'secret', items: [{ key: 'word', path: 'file' }] } }];
    const containers = [{ volumeMounts: [{ name: 'files', mountPath: '/files' }] }];
    const pod = { metadata: { namespace: 'default' }, spec: { containers, volumes: [{ name: 'files', projected: { sources } }] } };
    for (const word of ['one', 'two']) {
      await writeProjected({ get: async () => ({ data: { word: btoa(word) } }) }, pod, 'root');
      console.log(fs.readFileSync('root/files/file', 'utf8'), (fs.statSync('root/files/file').mode & 0o777).toString(8));
    }`,
  );
  assert.equal(printed, 'one 400\ntwo 400\n');
});
