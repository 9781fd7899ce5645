import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { Groups } from '../../../../controller/capacity/groups.ts';
import { Unconfirmed } from '../../../../controller/capacity/unconfirmed.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function setUp(limits: Record<string, number> = {}) {
  const told: string[] = [];
  const groups = new Groups(
    (key) => told.push(key),
    () => 7,
    new Unconfirmed(new VirtualClock(), new SeenCluster()),
  );
  for (const [session, limit] of Object.entries(limits))
    groups.update(session, { group: 'team/g', limit, running: [] });
  groups.open();
  return { groups, told };
}
const runs = (groups: Groups, session: string, limit: number | undefined, running: string[]) =>
  groups.update(session, { group: 'team/g', limit, running });

describe('a concurrency group', () => {
  test('lets no more turns begin than its limit, also before they are seen to run', () => {
    const { groups } = setUp({ a: 2, b: 2, c: 2 });
    for (const session of ['a', 'b']) {
      assert.deepEqual(groups.view(session, 0), { free: true });
      groups.reserve(session);
    }
    assert.deepEqual(groups.view('c', 0), { free: false, group: 'team/g', limit: 2, running: [], unknown: undefined });
  });
  test('counts a turn once that is reserved and seen to run', () => {
    const { groups } = setUp({ a: 2, b: 2 });
    groups.reserve('a');
    runs(groups, 'a', 2, ['a-1']);
    assert.equal(groups.view('b', 0).free, true);
  });
  test('obeys the lowest limit of its sessions that are members at the time', () => {
    const { groups } = setUp({ a: 4, b: 1, c: 4 });
    runs(groups, 'a', 4, ['a-1']);
    assert.deepEqual(groups.view('c', 0), {
      free: false,
      group: 'team/g',
      limit: 1,
      running: ['a-1 of a'],
      unknown: undefined,
    });
    runs(groups, 'b', undefined, []);
    assert.equal(groups.view('c', 0).free, true);
  });
  test('serves waiting turns by age, and tells as many as there is room for', () => {
    const { groups, told } = setUp({ a: 1, young: 1, old: 1 });
    runs(groups, 'a', 1, ['a-1']);
    groups.wait('young', 20);
    groups.wait('old', 10);
    runs(groups, 'a', 1, []);
    assert.deepEqual(told, ['old']);
    assert.equal(groups.view('young', 20).free, false);
    assert.equal(groups.view('old', 10).free, true);
  });
  test('is not held up by a turn that no longer waits', () => {
    const { groups, told } = setUp({ a: 1, young: 1, old: 1 });
    runs(groups, 'a', 1, ['a-1']);
    groups.wait('old', 10);
    groups.wait('young', 20);
    runs(groups, 'a', 1, []);
    told.length = 0;
    groups.leave('old');
    assert.deepEqual(told, ['young']);
    assert.equal(groups.view('young', 20).free, true);
  });
  test('tells the next one when a turn that may begin moves back behind it', () => {
    const { groups, told } = setUp({ a: 1, first: 1, second: 1 });
    runs(groups, 'a', 1, ['a-1']);
    groups.wait('first', 10);
    groups.wait('second', 20);
    runs(groups, 'a', 1, []);
    assert.deepEqual(told, ['first']);
    assert.equal(groups.view('first', 30).free, false);
    groups.wait('first', 30);
    groups.wait('first', 30);
    assert.deepEqual(told, ['first', 'second']);
    assert.equal(groups.view('second', 20).free, true);
  });
  test('counts a turn that began in it while its session is in another or gone, and there counts it not', () => {
    const { groups } = setUp({ a: 1, b: 1 });
    groups.update('c', { group: 'team/h', limit: 1, running: [] });
    for (const group of ['team/h', undefined]) {
      groups.update('a', { group, limit: 1, running: [], others: [{ group: 'team/g', running: ['a-1'] }] });
      assert.equal(groups.view('b', 0).free, false);
      assert.equal(groups.view('c', 0).free, true);
    }
    groups.update('a', undefined);
    assert.equal(groups.view('b', 0).free, true);
  });
  test('keeps a reservation under way while its session is moved, until the turn is seen or its session asks elsewhere', () => {
    const { groups, told } = setUp({ a: 1, b: 1 });
    groups.reserve('a');
    groups.update('a', { group: 'team/h', limit: 1, running: [] });
    assert.equal(groups.view('b', 0).free, false);
    groups.update('a', { group: 'team/h', limit: 1, running: [], others: [{ group: 'team/g', running: ['a-1'] }] });
    groups.leave('a');
    assert.equal(groups.view('b', 0).free, false);
    groups.update('a', { group: 'team/h', limit: 1, running: [] });
    assert.equal(groups.view('b', 0).free, true);
    groups.update('a', { group: 'team/g', limit: 1, running: [] });
    groups.reserve('a');
    groups.update('a', { group: 'team/h', limit: 1, running: [] });
    groups.wait('b', 5);
    told.length = 0;
    groups.reserve('a');
    assert.deepEqual(told, ['b']);
  });
  test('keeps a reservation of unknown outcome beside the one that its session makes elsewhere', () => {
    const { groups } = setUp({ a: 1, b: 1 });
    groups.reserve('a');
    groups.confirmLater('a');
    groups.update('a', undefined);
    groups.update('a', { group: 'team/h', limit: 1, running: [] });
    groups.reserve('a');
    groups.leave('a');
    assert.equal(groups.view('b', 0).free, false);
    groups.confirm('a');
    groups.reserve('a');
    assert.equal(groups.view('b', 0).free, true);
  });
  test('lets nothing begin before the leader may, and tells the waiting turns when it may', () => {
    const told: string[] = [];
    const groups = new Groups(
      (key) => told.push(key),
      () => 7,
      new Unconfirmed(new VirtualClock(), new SeenCluster()),
    );
    runs(groups, 'a', 4, []);
    assert.equal(groups.view('a', 0).free, false);
    groups.wait('a', 0);
    groups.open();
    assert.deepEqual(told, ['a']);
    assert.equal(groups.view('a', 0).free, true);
  });
  test('keeps a reservation of unknown outcome until it is known', () => {
    const { groups } = setUp({ a: 1, b: 1 });
    groups.reserve('a');
    groups.confirmLater('a');
    groups.leave('a');
    assert.equal(groups.view('b', 0).free, false);
    groups.confirm('a');
    groups.leave('a');
    assert.equal(groups.view('b', 0).free, true);
  });
  test('takes nothing from running turns when its limit is lowered', () => {
    const { groups } = setUp({ a: 3, b: 3, c: 3 });
    runs(groups, 'a', 3, ['a-1']);
    runs(groups, 'b', 3, ['b-1']);
    runs(groups, 'c', 1, []);
    assert.equal(groups.view('c', 0).free, false);
    runs(groups, 'a', 3, []);
    assert.equal(groups.view('c', 0).free, false);
    runs(groups, 'b', 3, []);
    assert.equal(groups.view('c', 0).free, true);
  });
});

test('a group never runs more turns than its limit, and never stands still, in any order of events', () => {
  const step = fc.record({
    session: fc.integer({ min: 0, max: 7 }).map((n) => `s${n}`),
    what: fc.constantFrom('look', 'begin', 'end', 'lose'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
      const { groups } = setUp(Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`s${n}`, limit])));
      const promised = new Set<string>();
      const running = new Set<string>();
      const waiting = new Set<string>();
      const look = (session: string) => {
        if (running.has(session)) return;
        if (groups.view(session, 0).free) {
          groups.reserve(session);
          promised.add(session);
          waiting.delete(session);
        } else {
          groups.wait(session, 0);
          waiting.add(session);
        }
      };
      for (const { session, what } of steps) {
        if (what === 'look') look(session);
        if (what === 'begin' && promised.delete(session)) {
          running.add(session);
          runs(groups, session, limit, [`${session}-1`]);
        }
        if (what === 'end' && running.delete(session)) runs(groups, session, limit, []);
        if (what === 'end' && !running.has(session) && !waiting.has(session) && !promised.has(session))
          groups.leave(session);
        if (what === 'lose' && promised.delete(session)) groups.leave(session);
        for (const ended of promised) assert.ok(!running.has(ended));
        assert.ok(promised.size + running.size <= limit);
      }
      // Ended members release their slots, so everybody who waits gets a turn in the end.
      for (let round = 0; round < 20 && waiting.size > 0; round++) {
        for (const session of running) runs(groups, session, limit, []);
        for (const session of [...running, ...promised]) groups.leave(session);
        running.clear();
        promised.clear();
        for (const session of [...waiting]) look(session);
        assert.ok(promised.size <= limit);
      }
      assert.equal(waiting.size, 0);
    }),
  );
});
