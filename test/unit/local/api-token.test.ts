import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { silentLogger } from '../../../core/system.ts';
import { keepApiToken, TOKEN_SECONDS } from '../../../local/api-token.ts';
import { Home } from '../../../local/home.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let home: Home;
beforeEach(() => {
  home = new Home(mkdtempSync(join(tmpdir(), 'berth-token-')));
});
afterEach(() => rmSync(home.path, { recursive: true, force: true }));

const read = () => readFileSync(home.apiToken, 'utf8');

/** Mints tokens that tell when they were made. */
const minter = (clock: VirtualClock) => () => `made-at-${clock.now()}`;

function age(clock: VirtualClock): number {
  return clock.now() - Number(read().replace('made-at-', ''));
}

test('the token in the file is valid for at least half of its time at any moment, and only its user can read it', async () => {
  const clock = new VirtualClock();
  const stop = keepApiToken({ home, mint: minter(clock) }, { clock, logger: silentLogger });
  for (let minute = 0; minute < 180; minute++) {
    await clock.advance(60_000);
    assert.ok(age(clock) <= (TOKEN_SECONDS * 1000) / 2, `${age(clock)} ms after ${minute} minutes`);
    assert.equal(statSync(home.apiToken).mode & 0o777, 0o600);
  }
  stop();
  assert.equal(clock.pending, 0);
});

test('a token is replaced soon after the machine has slept, or its clock was set back', async () => {
  const clock = new VirtualClock();
  const stop = keepApiToken({ home, mint: minter(clock) }, { clock, logger: silentLogger });
  for (const jump of [10 * 3_600_000, -20 * 3_600_000]) {
    clock.jump(jump);
    await clock.advance(10_000);
    assert.ok(age(clock) >= 0 && age(clock) <= 10_000, `${age(clock)} ms after a jump of ${jump} ms`);
  }
  stop();
});

test('a renewal that fails is tried again, and the token stays until then', async () => {
  const clock = new VirtualClock();
  let fails = false;
  const mint = () => {
    if (fails) throw new Error('no account');
    return minter(clock)();
  };
  const stop = keepApiToken({ home, mint }, { clock, logger: silentLogger });
  const first = read();
  fails = true;
  await clock.advance((TOKEN_SECONDS * 1000) / 2);
  assert.equal(read(), first);
  fails = false;
  await clock.advance(10_000);
  assert.notEqual(read(), first);
  stop();
});

test('the file goes with its cluster, and another cluster’s stays', () => {
  const clock = new VirtualClock();
  const deps = { clock, logger: silentLogger };
  keepApiToken({ home, mint: minter(clock) }, deps)();
  assert.throws(read, /ENOENT/);
  const stop = keepApiToken({ home, mint: minter(clock) }, deps);
  writeFileSync(home.apiToken, 'of another\n');
  stop();
  assert.equal(read(), 'of another\n');
});
