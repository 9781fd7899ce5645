import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { type FileTimes, keepTimes, lastTimes, longestFirst } from '../../times/report.ts';
import { conclusions, table } from '../../times/table.ts';

const took = (wallMs: number, change: Partial<FileTimes> = {}): FileTimes => ({
  tests: 2,
  wallMs,
  cpuMs: 500,
  waits: [],
  slowest: { name: 'it works', ms: wallMs / 2 },
  ...change,
});

const cache = mkdtempSync(join(tmpdir(), 'berth-times-'));
const { BERTH_CACHE } = process.env;
beforeAll(() => {
  process.env.BERTH_CACHE = cache;
});
afterAll(() => {
  if (BERTH_CACHE === undefined) delete process.env.BERTH_CACHE;
  else process.env.BERTH_CACHE = BERTH_CACHE;
  rmSync(cache, { recursive: true });
});

test('what a suite took is read again as it was kept', () => {
  const times = { wallMs: 9_000, workers: 2, files: { 'a.test.ts': took(4_000) } };
  keepTimes('unit', times);
  assert.deepEqual(lastTimes('unit'), times);
});

test('a suite without a report, or with one that cannot be read, has no times', () => {
  writeFileSync(join(cache, 'times', 'sim.json'), '{');
  for (const suite of ['sim', 'never']) assert.deepEqual(lastTimes(suite), { files: {} });
});

test('files that never ran come first, then those that took longest', () => {
  const times = { files: { b: took(10), c: took(30), d: took(20) } };
  assert.deepEqual(
    longestFirst(['a', 'b', 'c', 'd', 'e'], (file) => file, times),
    ['a', 'e', 'c', 'd', 'b'],
  );
});

test('the end of a run names the slowest files and tests', () => {
  const lines = conclusions({ 'a.test.ts': took(4_000), 'b.test.ts': took(6_000) }, {});
  assert.deepEqual(lines, [
    'slowest files: b.test.ts 6.0 s, a.test.ts 4.0 s',
    'slowest tests, one a file:',
    '  3.0 s  b.test.ts: it works',
    '  2.0 s  a.test.ts: it works',
  ]);
});

test('the end of a run names a file that has become slower by more than half, and by seconds', () => {
  const before = { slow: took(4_000), same: took(4_000), short: took(100) };
  const lines = conclusions({ slow: took(6_100), same: took(5_900), short: took(2_000), new: took(9_000) }, before);
  assert.deepEqual(
    lines.filter((line) => line.startsWith('slower')),
    ['slower than in the last run on this machine: slow 4.0 s → 6.1 s'],
  );
});

test('the table shows wall, CPU and what is waited for of each file, the longest first', () => {
  const files = { a: took(1_000), b: took(65_000, { waits: [{ what: 'the pod is gone', ms: 40_000 }] }) };
  assert.deepEqual(table('e2e', { wallMs: 70_000, workers: 2, files }), [
    'e2e: 70.0 s on 2 workers; 4 tests, 1.0 s CPU, 66.0 s of files',
    '      wall      CPU tests  file',
    '    65.0 s    0.5 s     2  b; waits for: the pod is gone 40.0 s',
    '     1.0 s    0.5 s     2  a',
  ]);
  assert.match(table('e2e', { files })[0]!, /^e2e: never ran whole;/);
});
