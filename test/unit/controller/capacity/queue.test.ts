import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { Queue } from '../../../../controller/capacity/queue.ts';
import type { Applicant } from '../../../../controller/observed/capacity-view.ts';
import { anApplicant } from '../../../support/applicant.ts';

function lineOf(...applicants: Applicant[]): Queue {
  const line = new Queue();
  for (const applicant of applicants) line.join(applicant);
  return line;
}

/** The order in which all would be served. */
function orderOf(line: Queue): string[] {
  const order: string[] = [];
  line.walk(({ key }) => order.push(key) > 0);
  return order;
}

describe('the order of the queue', () => {
  test('is round robin over namespaces, however many each asks for', () => {
    const line = lineOf(
      ...['1', '2', '3'].map((name) => anApplicant(`big/${name}`)),
      anApplicant('small/1', { since: 99 }),
      anApplicant('tiny/1', { since: 100 }),
    );
    assert.deepEqual(orderOf(line), ['big/1', 'small/1', 'tiny/1', 'big/2', 'big/3']);
  });
  test('begins with the namespace that was served least recently', () => {
    const line = lineOf(anApplicant('a/1'), anApplicant('b/1'), anApplicant('c/1'));
    line.served('a', 1_000, 'pod-a');
    line.served('c', 1_000, 'pod-c');
    assert.deepEqual(orderOf(line), ['b/1', 'a/1', 'c/1']);
  });
  test('is for a namespace whose slots are refused as if they had not been given, in whatever order that is told', () => {
    for (const refused of [[], ['1'], ['2'], ['1', '2'], ['2', '1']]) {
      const line = lineOf(anApplicant('a/1'), anApplicant('b/1'), anApplicant('c/1'));
      for (const [at, [namespace, pod]] of [
        ['a', '0'],
        ['b', '0b'],
        ['a', '1'],
        ['c', '0c'],
        ['a', '2'],
      ].entries()) {
        line.served(namespace as string, 1_000 + at, pod as string);
      }
      for (const pod of ['0', '0b', '0c']) line.confirmed(pod);
      for (const pod of refused) line.refused(pod);
      const expected = refused.length === 2 ? 'a b c' : refused[0] === '2' ? 'b a c' : 'b c a';
      assert.equal(
        orderOf(line)
          .map((key) => key[0])
          .join(' '),
        expected,
        `refused ${refused}`,
      );
      line.confirmed('1');
      line.refused('1');
      assert.equal(
        orderOf(line)
          .map((key) => key[0])
          .join(' '),
        expected,
        'what is confirmed stays',
      );
    }
  });
  test('goes on where an earlier leader was, by what it wrote', () => {
    const line = lineOf(anApplicant('a/1'), anApplicant('b/1'));
    line.wasServed('a', 5_000);
    line.wasServed('b', 4_000);
    line.wasServed('b', 1_000);
    assert.deepEqual(orderOf(line), ['b/1', 'a/1']);
  });
  test('within a namespace is priority, then age, then the name', () => {
    const line = lineOf(
      anApplicant('a/young', { since: 20 }),
      anApplicant('a/old', { since: 10 }),
      anApplicant('a/low', { priority: -1, since: 1 }),
      anApplicant('a/twin', { since: 10 }),
      anApplicant('a/urgent', { priority: 5, since: 30, class: 'other' }),
    );
    assert.deepEqual(orderOf(line), ['a/urgent', 'a/old', 'a/twin', 'a/young', 'a/low']);
  });
  test('follows a priority that is changed while waiting', () => {
    const line = lineOf(anApplicant('a/1', { since: 1 }), anApplicant('a/2', { since: 2 }));
    line.join(anApplicant('a/2', { since: 2, priority: 1 }));
    assert.deepEqual(orderOf(line), ['a/2', 'a/1']);
  });
  test('passes over sessions of a class without a free slot, and over no others', () => {
    const line = lineOf(
      anApplicant('a/1', { class: 'full', priority: 9 }),
      anApplicant('a/2', { class: 'full', priority: 8 }),
      anApplicant('a/3'),
      anApplicant('b/1', { class: 'full' }),
    );
    const offered: string[] = [];
    line.walk((applicant) => {
      offered.push(applicant.key);
      return applicant.class !== 'full';
    });
    assert.deepEqual(offered, ['a/1', 'a/3', 'b/1']);
  });
});

const anyApplicants = fc.uniqueArray(
  fc.record({
    namespace: fc.constantFrom('a', 'b', 'c', 'd'),
    name: fc.integer({ min: 0, max: 40 }),
    class: fc.constantFrom('x', 'y'),
    priority: fc.integer({ min: -1, max: 1 }),
    since: fc.integer({ min: 0, max: 5 }),
  }),
  { selector: ({ namespace, name }) => `${namespace}/${name}`, maxLength: 40 },
);
const made = ({
  namespace,
  name,
  ...rest
}: { namespace: string; name: number } & Omit<Applicant, 'key' | 'namespace'>) =>
  anApplicant(`${namespace}/${name}`, rest);

describe('for any queue', () => {
  test('the position is the index in the order in which all are served', () => {
    fc.assert(
      fc.property(anyApplicants, fc.array(fc.constantFrom('a', 'b', 'c', 'd')), (records, served) => {
        const line = lineOf(...records.map(made));
        for (const [at, namespace] of served.entries()) line.served(namespace, at + 1, `pod-${at}`);
        const order = orderOf(line);
        assert.equal(order.length, records.length);
        for (const record of records) {
          assert.equal(line.position(made(record)), order.indexOf(made(record).key) + 1);
        }
      }),
    );
  });
  test('a session whose priority or age has changed is not counted before itself', () => {
    fc.assert(
      fc.property(anyApplicants, fc.integer({ min: -2, max: 2 }), fc.nat(5), (records, priority, since) => {
        fc.pre(records.length > 0);
        const line = lineOf(...records.map(made));
        const changed = { ...made(records[0] as (typeof records)[number]), priority, since };
        const position = line.position(changed);
        line.join(changed);
        assert.equal(position, line.position(changed));
      }),
    );
  });
  test('no session starves: a namespace that waits is served before any other is served twice', () => {
    fc.assert(
      fc.property(anyApplicants, fc.integer({ min: 1, max: 30 }), (records, rounds) => {
        const line = lineOf(...records.map(made));
        const since = new Map<string, string[]>();
        for (let round = 0; round < rounds; round++) {
          const waiting = new Set(orderOf(line).map((key) => key.slice(0, key.indexOf('/'))));
          for (const namespace of since.keys()) if (!waiting.has(namespace)) since.delete(namespace);
          for (const namespace of waiting) if (!since.has(namespace)) since.set(namespace, []);
          const [first] = orderOf(line);
          if (first === undefined) return;
          const namespace = first.slice(0, first.indexOf('/'));
          line.leave(first);
          line.served(namespace, round, `pod-${round}`);
          since.delete(namespace);
          for (const [other, served] of since) {
            served.push(namespace);
            assert.equal(new Set(served).size, served.length, `${other} waited through ${served}`);
          }
        }
      }),
    );
  });
  test('a session that joined and left again leaves no trace', () => {
    fc.assert(
      fc.property(anyApplicants, anyApplicants, (stay, come) => {
        const line = lineOf(...stay.map(made));
        const before = orderOf(line);
        const names = new Set(stay.map((record) => made(record).key));
        const guests = come.map(made).filter(({ key }) => !names.has(key));
        for (const guest of guests) line.join(guest);
        for (const guest of guests.reverse()) line.leave(guest.key);
        assert.deepEqual(orderOf(line), before);
        assert.equal(line.size, stay.length);
      }),
    );
  });
});
