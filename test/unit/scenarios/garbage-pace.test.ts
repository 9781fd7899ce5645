import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { dueIn, type HistorySize } from '../../../controller/garbage/pace.ts';
import { blobs, turns } from '../../../core/resources/kinds.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

const HOUR = 3_600_000;
const limits = { turns: 100, bytes: 1_000_000, stored: 1_000_000 };

describe('a history', () => {
  const over = (left: HistorySize, counted: number, of = limits) => dueIn(left, 0, counted, of) === 0;
  test('is read again when it must be a tenth over its number of turns', () => {
    const left = { turns: 100, bytes: 10_000, stored: 0, counted: 500 };
    assert.equal(over(left, 510), false);
    assert.equal(over(left, 511), true);
  });
  test('is read again when it must be a tenth over its bytes, taking new turns to be like the others', () => {
    const left = { turns: 10, bytes: 900_000, stored: 0, counted: 10 };
    assert.equal(over(left, 12), false);
    assert.equal(over(left, 13), true);
  });
  test('is read again when what was stored since must be a tenth over its limit', () => {
    const left = { turns: 10, bytes: 1_000, counted: 10 };
    assert.equal(over({ ...left, stored: 1_090_000 }, 12), false);
    assert.equal(over({ ...left, stored: 1_110_000 }, 12), true);
  });
  test('with a small limit is read again with the first turn over it', () => {
    assert.equal(over({ turns: 2, bytes: 10, stored: 0, counted: 7 }, 8, { ...limits, turns: 2 }), true);
  });
  test('is read again at once when a limit was lowered', () => {
    const left = { turns: 100, bytes: 10_000, stored: 0, counted: 500 };
    assert.equal(over(left, 500, { ...limits, turns: 99 }), true);
    assert.equal(over(left, 500, { ...limits, bytes: 9_999 }), true);
  });
  test('of one turn that is larger than the limit is as short as it gets', () => {
    assert.equal(over({ turns: 1, bytes: 2_000_000, stored: 0, counted: 1 }, 1), false);
  });
  test('that is within its limits is read for stored objects when these can be old enough', () => {
    const left = { turns: 5, bytes: 10, stored: 0, counted: 5 };
    assert.equal(dueIn(left, 10_000, 6, limits), HOUR - 10_000);
    assert.equal(dueIn(left, 2 * HOUR, 6, limits), 0);
    assert.equal(dueIn(left, 10_000, 206, limits), 0);
  });
});

test('a busy session has its turns read a few times, not once for each, and its history comes to its limit', async () => {
  const world = new QuietWorld({ garbageSeconds: 10 });
  await world.start();
  const session = await world.session('busy', { timeouts: { idle: '24h' } });
  const kept = () => world.server.list(turns).length;
  for (let number = 1; number <= 120; number++) {
    await world.turn(session, `t-${number}`, { ms: 10, output: 1 });
    await world.pass(20_000);
    assert.ok(kept() <= 111, `${kept()} turns are kept after ${number}`);
  }
  await world.pass(1.5 * HOUR);
  assert.equal(kept(), 100);
  const reads = world.calls.filter((call) => call === 'list turns').length;
  assert.ok(reads <= 20, `they were listed ${reads} times`);
});

test('turns that a session of one turn has refused are history too, though nothing counts them', async () => {
  const world = new QuietWorld({ garbageSeconds: 10 });
  await world.start();
  const session = await world.session('once', { turns: 'One', input: { ms: 10, output: 1 } }, 'Finished');
  // A session that an earlier sweep has read.
  await world.pass(5 * 60_000);
  for (let number = 1; number <= 120; number++) {
    const refused = await world.turn(session, `t-${number}`, { ms: 10, output: 1 });
    assert.equal(refused.status?.error?.code, 'SessionFinished');
  }
  assert.equal(world.server.list(turns).length, 121);
  await world.pass(1.5 * HOUR);
  const kept = world.server.list(turns).map(({ metadata }) => metadata.name);
  assert.equal(kept.length, 100);
  assert.ok(kept.includes('once') && kept.includes('t-120') && !kept.includes('t-1'), 'the newest stay, and the run');
});

test('what a turn has stored goes within seven hours after somebody deletes the turn, and a session without any is left alone', async () => {
  const world = new QuietWorld({ garbageSeconds: 10 });
  await world.start();
  const session = await world.session('notes', { timeouts: { idle: '720h' } });
  const large = 20_000;
  for (const name of ['first', 'second', 'last']) await world.turn(session, name, { ms: 10, output: large });
  await world.pass(2 * HOUR);
  const outputs = () => world.server.list(blobs).filter(({ spec }) => (spec as { kind?: string }).kind === 'Output');
  assert.equal(outputs().length, 3);
  for (const name of ['first', 'last']) await world.server.admin.delete(turns, { namespace: 'team', name });
  await world.pass(7 * HOUR);
  assert.equal(outputs().length, 1);
  await world.server.admin.delete(turns, { namespace: 'team', name: 'second' });
  await world.pass(7 * HOUR);
  assert.equal(outputs().length, 0);
  const reads = () => world.calls.filter((call) => call === 'list turns').length;
  const before = reads();
  await world.pass(13 * HOUR);
  assert.equal(reads(), before);
});

test('what turns store beyond history.stored goes with the oldest turns within minutes, and is at no time much more', async () => {
  const world = new QuietWorld({ garbageSeconds: 10 });
  await world.start();
  const history = { stored: '100000' };
  const session = await world.session('busy', { timeouts: { idle: '24h' }, history });
  const outputs = () => world.server.list(blobs).length;
  for (let number = 1; number <= 40; number++) {
    await world.turn(session, `t-${number}`, { ms: 10, output: 20_000 });
    await world.pass(10_000);
    assert.ok(outputs() <= 8, `${outputs()} outputs are stored after ${number}`);
  }
  await world.pass(120_000);
  assert.ok(outputs() <= 5, `${outputs()} outputs are left`);
  assert.equal(world.server.list(turns).length, outputs());
});
