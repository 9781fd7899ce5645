import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { type Change, keyOf, ObjectCache, refOf } from '../../../core/kube/cache.ts';
import { compareVersions } from '../../../core/kube/resource-version.ts';
import type { KubeObject, Stored } from '../../../core/kube/types.ts';

type Thing = Stored<KubeObject & { value: number }>;
type Happened = { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Thing };

/** History of a server: writes to a few names, each with its version. */
const histories = fc
  .array(fc.record({ name: fc.constantFrom('a', 'b', 'c'), remove: fc.boolean() }), { maxLength: 25 })
  .map((writes) => {
    const alive = new Map<string, Thing>();
    return writes.flatMap(({ name, remove }, i): Happened[] => {
      const old = alive.get(name);
      if (remove && old === undefined) return [];
      const metadata = {
        name,
        uid: old?.metadata.uid ?? `u${i}`,
        creationTimestamp: '',
        resourceVersion: String(i + 8),
      };
      const object = { metadata, value: i };
      if (remove) alive.delete(name);
      else alive.set(name, object);
      return [{ type: remove ? 'DELETED' : old === undefined ? 'ADDED' : 'MODIFIED', object }];
    });
  });

const stateAfter = (history: Happened[]): Map<string, Thing> => {
  const state = new Map<string, Thing>();
  for (const { type, object } of history) {
    if (type === 'DELETED') state.delete(object.metadata.name);
    else state.set(object.metadata.name, object);
  }
  return state;
};

const contents = (things: Iterable<Thing>) => [...things].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));

describe('object cache', () => {
  test('events, lists and own results in any interleaving lead to the server’s state and never back in time', () => {
    fc.assert(
      fc.property(
        histories,
        fc.array(fc.tuple(fc.constantFrom('event', 'list', 'apply'), fc.nat(40))),
        (history, moves) => {
          const cache = new ObjectCache<Thing>({ value: ({ value }) => [String(value % 3)] });
          const replayed = new Map<string, Thing>();
          const newest = new Map<string, number>();
          const take = (changes: Change<Thing>[]) => {
            for (const { type, object } of changes) {
              const { name, resourceVersion } = object.metadata;
              assert.equal(type === 'add', !replayed.has(name), `${type} of ${name}`);
              if (type === 'delete') replayed.delete(name);
              else {
                assert.ok(Number(resourceVersion) > (newest.get(name) ?? 0), 'an object went back in time');
                newest.set(name, Number(resourceVersion));
                replayed.set(name, object);
              }
            }
            assert.deepEqual(contents(replayed.values()), contents(cache.values()));
          };
          // The server has done `done` of its history; the watch has delivered `at` of it.
          let at = 0;
          let done = 0;
          take(cache.replaceAll([], '7'));
          for (const [move, n] of moves) {
            done = Math.max(done, Math.min(history.length, at + (n % 5)));
            if (move === 'event' && at < done) {
              const { type, object } = history[at++]!;
              take(type === 'DELETED' ? cache.observeDeleted(object) : cache.observe(object));
            } else if (move === 'list') {
              // Read before our latest writes, answered after them.
              at += n % (done - at + 1);
              take(
                cache.replaceAll(
                  [...stateAfter(history.slice(0, at)).values()],
                  String(history[at - 1]?.object.metadata.resourceVersion ?? 7),
                ),
              );
            } else if (move === 'apply' && done > 0) {
              const { type, object } = history[n % done]!;
              if (type !== 'DELETED') take(cache.apply(object));
            }
          }
          for (const { type, object } of history.slice(at))
            take(type === 'DELETED' ? cache.observeDeleted(object) : cache.observe(object));
          const expected = contents(stateAfter(history).values());
          assert.deepEqual(contents(cache.values()), expected);
          for (const value of ['0', '1', '2']) {
            const indexed = expected.filter((thing) => String(thing.value % 3) === value);
            assert.deepEqual(contents(cache.byIndex('value', value)), indexed);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test('a list older than what was seen is another server’s: all of it is taken and the rest dropped', () => {
    const thing = (name: string, version: string, value: number): Thing => ({
      metadata: { name, uid: name, resourceVersion: version, creationTimestamp: '' },
      value,
    });
    const cache = new ObjectCache<Thing>();
    cache.replaceAll([thing('a', '90', 1), thing('b', '91', 1)], '100');
    cache.replaceAll([thing('a', '12', 2)], '20');
    assert.deepEqual([...cache.values()], [thing('a', '12', 2)]);
    assert.equal(cache.position, '20');
  });

  test('an object dropped ahead of the watch is not added again by earlier events', () => {
    const thing = (version: string, value: number, uid = 'u'): Thing => ({
      metadata: { name: 'a', uid, resourceVersion: version, creationTimestamp: '' },
      value,
    });
    const cache = new ObjectCache<Thing>({ all: () => ['all'] }, ({ value }) => value !== unwanted);
    let unwanted = 3;
    cache.replaceAll([], '10');
    cache.apply(thing('11', 1));
    cache.apply(thing('13', 3));
    assert.deepEqual([cache.observe(thing('11', 1)), cache.observe(thing('12', 2))], [[], []]);
    assert.equal(cache.size, 0);
    cache.apply(thing('16', 4));
    unwanted = 4;
    cache.prune('all', 'all');
    assert.deepEqual(cache.replaceAll([thing('14', 2)], '15'), [], 'a list that is behind');
    assert.equal(cache.observe(thing('17', 5)).length, 1, 'what comes later counts');
    assert.equal(cache.observe(thing('18', 1, 'another')).length, 2, 'as does what has its name');
  });

  test('versions that are no decimal numbers cannot be ordered, and what comes later counts', () => {
    const thing = (version: string): Thing => ({
      metadata: { name: 'a', uid: 'u', resourceVersion: version, creationTimestamp: '' },
      value: 1,
    });
    const cache = new ObjectCache<Thing>();
    cache.replaceAll([thing('zz')], 'zz');
    assert.equal(cache.apply(thing('aa')).length, 1);
    assert.equal(cache.observe(thing('aa')).length, 0);
    assert.equal(cache.observe(thing('bb')).length, 1);
  });

  test('versions are ordered as decimal integers of any size', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 200n }), fc.bigInt({ min: 0n, max: 2n ** 200n }), (a, b) => {
        const order = compareVersions(String(a), String(b));
        assert.equal(Math.sign(order ?? 9), a < b ? -1 : a > b ? 1 : 0);
      }),
    );
    for (const other of ['', '007', 'x1', '1.5', undefined]) assert.equal(compareVersions('5', other), undefined);
  });

  test('a key and its reference are turned into each other', () => {
    const ref = { namespace: 'ns', name: 'a' };
    assert.deepEqual(refOf(keyOf(ref)), ref);
  });
});
