import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AttachLimit, type Leave, type Priority } from '../../../../controller/link/attach-limit.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** Attaches of a limit, by name, in the order in which they may be opened. */
function attaches(perNode: number) {
  const clock = new VirtualClock();
  const limit = new AttachLimit(perNode, clock);
  const begun: string[] = [];
  const leaves = new Map<string, Leave>();
  const priorities = new Map<string, Priority>();
  const pending = new Map<string, { priority(): Priority }>();
  const { signal } = new AbortController();
  const enter = async (name: string, priority: Priority, { node = 'one', until = signal } = {}) => {
    priorities.set(name, priority);
    const attach = { priority: () => priorities.get(name) as Priority };
    pending.set(name, attach);
    const leave = await limit.enter(node, attach, until);
    if (!leave) return;
    begun.push(name);
    leaves.set(name, leave);
  };
  const enterAll = async (names: string, priority: Priority) => {
    for (const name of names) void enter(name, priority);
    await clock.advance(0);
  };
  const leave = async (name: string) => {
    leaves.get(name)?.();
    await clock.advance(0);
  };
  const becomes = async (name: string, priority: Priority, node = 'one') => {
    priorities.set(name, priority);
    limit.reconsider(node, pending.get(name) as { priority(): Priority });
    await clock.advance(0);
  };
  return { clock, limit, begun: () => begun.join(''), enter, enterAll, leave, becomes };
}

describe('attaches to the pods of one node', () => {
  test('are opened so many at once, and the others in their order, each when one is open or has failed', async () => {
    const { limit, begun, enterAll, leave } = attaches(2);
    await enterAll('abcd', 'WaitedFor');
    assert.deepEqual([begun(), limit.hasRoom('one', 'WaitedFor')], ['ab', false]);
    await leave('b');
    assert.equal(begun(), 'abc');
    await leave('a');
    await leave('c');
    assert.deepEqual([begun(), limit.hasRoom('one', 'WaitedFor')], ['abcd', true]);
  });

  test('do not wait for those of another node', async () => {
    const { clock, begun, enter } = attaches(1);
    for (const node of ['one', 'two']) void enter(node[0] as string, 'WaitedFor', { node });
    for (const node of ['three', 'four']) void enter(node[0] as string, 'AtRest', { node });
    await clock.advance(0);
    assert.equal(begun(), 'ottf');
  });

  test('come first that somebody waits for, then those of pools', async () => {
    const { begun, enterAll, leave } = attaches(1);
    await enterAll('a', 'WaitedFor');
    await enterAll('r', 'AtRest');
    await enterAll('u', 'Unclaimed');
    await enterAll('w', 'WaitedFor');
    for (const name of ['a', 'w', 'u']) await leave(name);
    assert.equal(begun(), 'awur');
  });

  test('move up at once when somebody waits for them, and down when nobody does any more', async () => {
    const { begun, enterAll, leave, becomes } = attaches(2);
    await enterAll('abcd', 'AtRest');
    assert.equal(begun(), 'a');
    await becomes('d', 'WaitedFor');
    assert.equal(begun(), 'ad');
    await becomes('b', 'WaitedFor');
    await becomes('c', 'WaitedFor');
    await becomes('b', 'AtRest');
    await leave('d');
    assert.equal(begun(), 'adc');
    await becomes('a', 'WaitedFor');
    await becomes('b', 'WaitedFor', 'another node');
    assert.equal(begun(), 'adc');
  });

  test('take no place once they are given up', async () => {
    const { limit, begun, enter, enterAll, leave } = attaches(1);
    const closed = new AbortController();
    await enterAll('a', 'WaitedFor');
    const given = enter('b', 'WaitedFor', { until: closed.signal });
    await enterAll('c', 'WaitedFor');
    closed.abort();
    await given;
    await enter('d', 'WaitedFor', { until: closed.signal });
    await leave('a');
    assert.equal(begun(), 'ac');
    await leave('c');
    assert.equal(limit.hasRoom('one', 'AtRest'), true);
  });

  test('give their place back once', async () => {
    const { begun, enterAll, leave } = attaches(1);
    await enterAll('abc', 'WaitedFor');
    await leave('a');
    await leave('a');
    assert.equal(begun(), 'ab');
  });
});

describe('attaches to sessions at rest on one node', () => {
  test('are opened one at a time, each after a pause of three times what the one before took', async () => {
    const { clock, limit, begun, enterAll, leave } = attaches(16);
    await enterAll('abc', 'AtRest');
    await clock.advance(100);
    assert.deepEqual([begun(), limit.hasRoom('one', 'AtRest'), limit.hasRoom('one', 'WaitedFor')], ['a', false, true]);
    await leave('a');
    await clock.advance(299);
    assert.deepEqual([begun(), limit.hasRoom('one', 'AtRest')], ['a', false]);
    await clock.advance(1);
    assert.equal(begun(), 'ab');
    await clock.advance(15_000);
    await leave('b');
    await clock.advance(999);
    assert.equal(begun(), 'ab');
    await clock.advance(1);
    assert.equal(begun(), 'abc');
  });

  test('wait for all others, and hold none of them up in their pause', async () => {
    const { clock, begun, enterAll, leave } = attaches(2);
    await enterAll('ab', 'AtRest');
    await clock.advance(100);
    await leave('a');
    await enterAll('wx', 'WaitedFor');
    assert.equal(begun(), 'awx');
    await clock.advance(300);
    assert.equal(begun(), 'awx');
    await leave('w');
    assert.equal(begun(), 'awxb');
  });

  test('keep the pause also when none waited', async () => {
    const { clock, begun, enterAll, leave } = attaches(16);
    await enterAll('a', 'AtRest');
    await clock.advance(100);
    await leave('a');
    await enterAll('b', 'AtRest');
    await clock.advance(299);
    assert.equal(begun(), 'a');
    await clock.advance(1);
    assert.equal(begun(), 'ab');
  });
});
