import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { sessionpools, sessions } from '../../../core/resources/kinds.ts';
import { create } from '../../sim/users/writes.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

describe('a turn of a ready session costs the API server', () => {
  test('three writes and no reads, when it is short', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('short');
    for (const name of ['a', 'b']) {
      await world.pass(5_000);
      world.calls = [];
      assert.equal((await world.turn(session, name, { ms: 100, output: 1, state: 100 })).status?.phase, 'Succeeded');
      await world.pass(5_000);
      assert.deepEqual(world.calls, ['replace turns', 'replace turns', 'replace sessions']);
    }
  });

  test('two, when turns follow each other at once and leave the state as it was: one write a second counts them', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('burst');
    await world.turn(session, 'first', { ms: 10, output: 1, state: 100 });
    await world.pass(5_000);
    world.calls = [];
    for (let i = 0; i < 8; i++) await world.turn(session, `t-${i}`, { ms: 10, output: 1 });
    await world.pass(1_000);
    assert.equal(world.server.get(sessions, 'team', 'burst')?.status?.turns?.total, 9);
    const calls = (name: string) => world.calls.filter((call) => call === name).length;
    assert.equal(calls('replace turns'), 16);
    assert.equal(calls('replace sessions'), 2, world.calls.join());
    assert.equal(world.calls.length, 18, world.calls.join());
  });

  test('three, when each of them leaves another state', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('states');
    await world.pass(5_000);
    world.calls = [];
    for (let i = 0; i < 4; i++) await world.turn(session, `t-${i}`, { ms: 10, output: 1, state: 100 });
    await world.sessionUntil('states', ({ status }) => status?.turns?.total === 4);
    assert.equal(world.calls.filter((call) => call === 'replace sessions').length, 4, world.calls.join());
  });

  test('one more at ten seconds, and every 30 seconds, to show what it has used, when it runs so long', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('longer');
    const show = ['replace turns'];
    for (const [ms, shown] of [
      [8_900, []],
      [12_000, show],
      [45_000, [...show, ...show]],
    ] as const) {
      await world.pass(5_000);
      world.calls = [];
      const { status } = await world.turn(session, `t-${ms}`, { ms, output: 1, talksMs: 5_000 });
      assert.equal(status?.phase, 'Succeeded');
      await world.pass(35_000);
      const begins = ['replace turns', 'replace sessions'];
      assert.deepEqual(world.calls, [...begins, ...shown, 'replace turns', 'replace sessions']);
    }
  });

  test('one more to be shown in its session, when it runs longer than a second', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('long');
    await world.pass(5_000);
    world.calls = [];
    await world.turn(session, 'a', { ms: 3_000, output: 1 });
    await world.pass(5_000);
    assert.deepEqual(world.calls, ['replace turns', 'replace sessions', 'replace turns', 'replace sessions']);
  });
});

describe('a session that runs one short turn costs the API server', () => {
  const ended = (world: QuietWorld) => world.sessionUntil('notes', ({ status }) => status?.turns?.total === 1);
  const INPUT = { input: { ms: 10, output: 1 } };
  /** A world with a pool whose only pod is ready. */
  const aFullPool = async () => {
    const world = new QuietWorld({ sessionPools: () => true });
    await world.start();
    await create(world.server, sessionpools, 'team', 'default', { class: 'default', replicas: 1 });
    await world.until('a ready pod', () => world.server.list(sessionpools)[0]?.status?.ready === 1);
    await world.pass(5_000);
    world.calls = [];
    return world;
  };

  test('six writes before its end on the pod of a pool, none of them between the claim and the turn', async () => {
    const world = await aFullPool();
    await world.session('notes', INPUT);
    await ended(world);
    const [claim, turn] = [
      ['create turns', 'replace sessions', 'patch pods'],
      ['replace turns', 'replace turns', 'replace sessions'],
    ];
    assert.deepEqual(
      world.calls.filter((call) => call !== 'replace sessionpools'),
      [...claim, ...turn],
    );
  });

  test('no write between the claim and the turn with turns: One either', async () => {
    const world = await aFullPool();
    await world.session('once', { ...INPUT, turns: 'One' }, 'Finished');
    assert.deepEqual(world.calls.filter((call) => call !== 'replace sessionpools').slice(0, 5), [
      'create turns',
      'replace sessions',
      'patch pods',
      'replace turns',
      'replace turns',
    ]);
  });

  test('seven on a pod of its own: the pod’s uid is written while the pod starts', async () => {
    const world = new QuietWorld();
    await world.start();
    await world.session('first');
    world.calls = [];
    await world.session('notes', INPUT);
    await ended(world);
    const [start, turn] = [
      ['create turns', 'replace sessions', 'create pods', 'replace sessions'],
      ['replace turns', 'replace turns', 'replace sessions'],
    ];
    assert.deepEqual(world.calls, [...start, ...turn]);
  });
});
