import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AttachLimit, type Leave } from '../../../../controller/link/attach-limit.ts';

/** Attaches of a limit, by name, in the order in which they may be opened. */
function attaches(perNode: number) {
  const limit = new AttachLimit(perNode);
  const begun: string[] = [];
  const leaves = new Map<string, Leave>();
  const urgent = new Set<string>();
  const { signal } = new AbortController();
  const enter = async (name: string, { node = 'one', until = signal } = {}) => {
    const leave = await limit.enter(node, () => urgent.has(name), until);
    if (!leave) return;
    begun.push(name);
    leaves.set(name, leave);
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const leave = async (name: string) => {
    leaves.get(name)?.();
    await settled();
  };
  return { limit, begun, urgent, enter, leave, settled };
}

describe('attaches to the pods of one node', () => {
  test('are opened so many at once, and the others in their order, each when one is open or has failed', async () => {
    const { limit, begun, enter, leave, settled } = attaches(2);
    for (const name of ['a', 'b', 'c', 'd']) void enter(name);
    await settled();
    assert.deepEqual([begun.join(''), limit.hasRoom('one')], ['ab', false]);
    await leave('b');
    assert.equal(begun.join(''), 'abc');
    await leave('a');
    await leave('c');
    assert.deepEqual([begun.join(''), limit.hasRoom('one')], ['abcd', true]);
  });

  test('do not wait for those of another node', async () => {
    const { begun, enter, settled } = attaches(1);
    void enter('a');
    void enter('b', { node: 'two' });
    await settled();
    assert.equal(begun.join(''), 'ab');
  });

  test('come first that somebody waits for, also if that is known only while they wait', async () => {
    const { begun, urgent, enter, leave, settled } = attaches(1);
    for (const name of ['a', 'b', 'c', 'd']) void enter(name);
    await settled();
    urgent.add('c');
    for (const name of ['a', 'c', 'b']) await leave(name);
    assert.equal(begun.join(''), 'acbd');
  });

  test('take no place once they are given up', async () => {
    const { limit, begun, enter, leave, settled } = attaches(1);
    const closed = new AbortController();
    void enter('a');
    const given = enter('b', { until: closed.signal });
    void enter('c');
    closed.abort();
    await given;
    await enter('d', { until: closed.signal });
    await settled();
    await leave('a');
    assert.equal(begun.join(''), 'ac');
    await leave('c');
    assert.equal(limit.hasRoom('one'), true);
  });

  test('give their place back once', async () => {
    const { begun, enter, leave, settled } = attaches(1);
    for (const name of ['a', 'b', 'c']) void enter(name);
    await settled();
    await leave('a');
    await leave('a');
    assert.equal(begun.join(''), 'ab');
  });
});
