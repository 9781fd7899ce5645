import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

/** An account that modes apply to; root may do what it likes. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Runs a module as that account, with `folder` as its working directory; returns what it prints. */
export function asUser(folder: string, program: string): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    ...account,
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stdout;
}
