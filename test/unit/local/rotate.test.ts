import assert from 'node:assert/strict';
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { silentLogger } from '../../../core/system.ts';
import { keepRotated } from '../../../local/rotate.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-rotate-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the log of a program that runs on never grows far beyond its limit, and the newest lines are kept', async () => {
  const [path, none] = [join(folder, 'api.log'), join(folder, 'none.log')];
  const clock = new VirtualClock();
  const log = openSync(path, 'a', 0o600);
  const stop = keepRotated([none, path], { clock, logger: silentLogger }, 100);
  const line = (n: number) => `line ${String(n).padStart(3, '0')}\n`;
  for (let n = 0; n < 100; n++) {
    writeSync(log, line(n));
    if (n % 10 === 0) await clock.advance(10_000);
    assert.ok(statSync(path).size <= 200, `${statSync(path).size} bytes`);
  }
  const kept = readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8');
  assert.ok(kept.endsWith(Array.from({ length: 15 }, (_, n) => line(85 + n)).join('')), kept);
  assert.equal(statSync(`${path}.1`).mode & 0o777, 0o600);
  stop();
  const { size } = statSync(path);
  appendFileSync(path, 'x'.repeat(500));
  await clock.advance(60_000);
  assert.equal(statSync(path).size, size + 500);
  closeSync(log);
});

test('a log that cannot be rotated stays whole, and is tried again', async () => {
  const path = join(folder, 'api.log');
  const clock = new VirtualClock();
  appendFileSync(path, 'x'.repeat(500));
  mkdirSync(`${path}.1`);
  const stop = keepRotated([path], { clock, logger: silentLogger }, 100);
  assert.equal(statSync(path).size, 500);
  rmdirSync(`${path}.1`);
  await clock.advance(10_000);
  assert.deepEqual([statSync(path).size, statSync(`${path}.1`).size], [0, 500]);
  stop();
});
