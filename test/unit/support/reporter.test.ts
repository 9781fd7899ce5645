import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';

const REPORTER = new URL('../../support/reporter.ts', import.meta.url).href;

/** Last line that the reporter writes for a test file with this text, and the exit code of its run. */
function reported(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-reporter-'));
  try {
    const file = join(folder, 'some.test.mjs');
    writeFileSync(file, `import { describe, test } from 'node:test';\n${text}`);
    // A test runner sets it for its files, and they then report to it.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const flags = ['--test', `--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout'];
    const { stdout, status } = spawnSync(process.execPath, [...flags, file], { env, encoding: 'utf8' });
    return { ...JSON.parse(stdout.trim().split('\n').at(-1) ?? ''), seconds: 0, status };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a skipped test and a skipped suite are counted as skipped, each with its reason, and not as failed', () => {
  const text = `
describe('suite', { skip: 'no root' }, () => { test('a', () => {}); test('b', () => {}); });
describe('other', () => { test('left out', { skip: 'no keeper' }, () => {}); test('runs', () => {}); });`;
  assert.deepEqual(reported(text), {
    passed: 1,
    failed: 0,
    skipped: 2,
    seconds: 0,
    skips: ['suite: no root', 'left out: no keeper'],
    status: 0,
  });
});

test('a test that fails and a file that fails before its first test are counted as failed', () => {
  const { passed, failed, skipped, status } = reported(`test('bad', () => { throw new Error('bad'); });`);
  assert.deepEqual([passed, failed, skipped, status], [0, 1, 0, 1]);
  const early = reported(`throw new Error('REQUIRE names it');`);
  assert.deepEqual([early.passed, early.failed, early.skipped, early.status], [0, 1, 0, 1]);
});
