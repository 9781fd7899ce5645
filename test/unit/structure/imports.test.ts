import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { targetsOf } from './imports.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Top folders, and the top folders that each may import beside itself. */
const ALLOWED: Record<string, readonly string[]> = {
  api: ['core'],
  cli: ['clients', 'core'],
  clients: [],
  controller: ['core'],
  core: [],
  local: ['core'],
  runner: ['core'],
};

describe('boundaries', () => {
  for (const [folder, allowed] of Object.entries(ALLOWED)) {
    test(`${folder}/ imports ${allowed.length > 0 ? allowed.join(', ') : 'no other folder'}${allowed.length > 0 ? ' and no program' : ''}`, () => {
      const files = globSync(`${folder}/**/*.ts`, { cwd: ROOT });
      assert.ok(files.length > 0);
      const crossings = files.flatMap((file) =>
        importsOf(file)
          .filter((target) => target !== folder && !allowed.includes(target))
          .map((target) => `${file} imports ${target}/`),
      );
      assert.deepEqual(crossings, []);
    });
  }
});

/** Top folders of the relative imports of a file. */
function importsOf(file: string): string[] {
  return targetsOf(file).map((target) => target.split('/')[0]!);
}
