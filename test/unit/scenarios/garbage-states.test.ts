import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { CountedStates } from '../../../controller/garbage/counted-states.ts';
import { blobs } from '../../../core/resources/kinds.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

const SECOND = 1_000;
const stored = (seq: number, incarnation = 1) => ({
  state: { incarnation, seq, digest: 'a'.repeat(64), keyId: 'k', bytes: 1, ref: `u/${incarnation}/${seq}` },
});

describe('a state that was counted', () => {
  test('settles a minute later, and not before', () => {
    const states = new CountedStates();
    states.saw('team/s', 'u', stored(5), 0);
    states.saw('team/s', 'u', stored(9), 20 * SECOND);
    assert.equal(states.settled('team/s', 59 * SECOND), undefined);
    assert.deepEqual(states.settled('team/s', 79 * SECOND), { incarnation: 1, seq: 5 });
    assert.deepEqual(states.settled('team/s', 80 * SECOND), { incarnation: 1, seq: 9 });
    assert.deepEqual(states.settled('team/s', 800 * SECOND), { incarnation: 1, seq: 9 });
  });
  test('of a session that never rests settles within seconds of its minute', () => {
    const states = new CountedStates();
    for (let second = 0; second < 1_000; second++) states.saw('team/s', 'u', stored(second), second * SECOND);
    const { seq = 0 } = states.settled('team/s', 1_000 * SECOND) ?? {};
    assert.ok(seq > 925 && seq <= 940, `${seq}`);
  });
  test('asks for a sweep only where it superseded one that is stored', () => {
    const states = new CountedStates();
    const inline = { state: { ...stored(3).state, ref: undefined, inline: 'YQ==' } };
    states.saw('team/s', 'u', inline as never, 0);
    states.saw('team/s', 'u', stored(5), 1);
    assert.equal(states.dueIn('team/s', 1), undefined);
    states.saw('team/s', 'u', stored(9), 20 * SECOND);
    assert.equal(states.dueIn('team/s', 61 * SECOND), 19 * SECOND);
    states.removed('team/s', { incarnation: 1, seq: 5 });
    assert.equal(states.dueIn('team/s', 80 * SECOND), 0);
    states.removed('team/s', { incarnation: 1, seq: 9 });
    assert.equal(states.dueIn('team/s', 80 * SECOND), undefined);
  });
  test('of another session of the name, or before one that was seen, counts for nothing', () => {
    const states = new CountedStates();
    states.saw('team/s', 'u', stored(9, 2), 0);
    states.saw('team/s', 'u', stored(12, 1), 0);
    assert.deepEqual(states.settled('team/s', 60 * SECOND), { incarnation: 2, seq: 9 });
    states.saw('team/s', 'v', stored(1), 60 * SECOND);
    assert.equal(states.settled('team/s', 60 * SECOND), undefined);
  });
});

test('a superseded state goes a minute after the later one is counted, without its turns being read for it', async () => {
  const world = new QuietWorld({ garbageSeconds: 10 });
  await world.start();
  const session = await world.session('busy', { timeouts: { idle: '24h' } });
  const states = () =>
    world.server.list(blobs).filter(({ spec }) => (spec as { kind?: string }).kind === 'State').length;
  await world.turn(session, 'first', { ms: 10, output: 1, state: 20_000 });
  await world.pass(10 * 60 * SECOND);
  const reads = () => world.calls.filter((call) => call === 'list turns').length;
  const before = reads();
  let most = 0;
  for (let number = 1; number <= 60; number++) {
    await world.turn(session, `t-${number}`, { ms: 10, output: 1, state: 20_000 });
    if (number === 1) {
      await world.pass(50 * SECOND);
      assert.equal(states(), 2);
      await world.pass(30 * SECOND);
      assert.equal(states(), 1);
    }
    await world.pass(10 * SECOND);
    most = Math.max(most, states());
  }
  // A minute, ten seconds of a mark, and the time between two sweeps.
  assert.ok(most <= 10, `${most} states were stored`);
  await world.pass(90 * SECOND);
  assert.equal(states(), 1);
  assert.equal(reads(), before);
});
