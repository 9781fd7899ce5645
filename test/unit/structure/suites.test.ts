import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { test } from 'vitest';
import config from '../../../vitest.config.ts';

const ROOT = join(import.meta.dirname, '../../..');

test('every test file is in one suite, those of e2e in beside/ or alone/', () => {
  const patterns = (config.test?.projects ?? []).flatMap((project) => {
    return typeof project === 'object' && 'test' in project ? (project.test?.include ?? []) : [];
  });
  const files = globSync('test/**/*.test.ts', { cwd: ROOT });
  assert.ok(patterns.length > 0 && files.length > 0);
  const others = files.filter((file) => patterns.filter((pattern) => matchesGlob(file, pattern)).length !== 1);
  assert.deepEqual(others, []);
});

test('the unit tests of the controller stand in its folders', () => {
  const folders = globSync('test/unit/controller/**/', { cwd: ROOT }).map((folder) =>
    folder.slice('test/unit/'.length),
  );
  assert.ok(folders.length > 5);
  assert.deepEqual(
    folders.filter((folder) => !existsSync(join(ROOT, folder))),
    [],
  );
});
