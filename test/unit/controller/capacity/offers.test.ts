import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { anApplicant } from '../../../support/applicant.ts';
import { available, setUp } from './support.ts';

describe('a waiting session', () => {
  test('is not overtaken by later sessions of its own namespace, while an earlier one is passed over', () => {
    const { ledger, told, caches } = setUp({ max: 3, closed: true });
    caches.setClass('narrow', { limits: { maxRunning: 1 } });
    const [first, passed, later] = [
      anApplicant('a/first', { class: 'narrow', since: 1 }),
      anApplicant('b/passed', { class: 'narrow' }),
      anApplicant('a/later', { since: 2 }),
    ];
    for (const applicant of [first, passed, later]) ledger.wait(applicant);
    ledger.open();
    assert.deepEqual(told, ['a/first']);
    assert.equal(ledger.reserve(later, 'pod-later'), false);
    assert.equal(ledger.reserve(passed, 'pod-passed'), false);
    assert.equal(ledger.reserve(first, 'pod-first'), true);
    assert.deepEqual(told, ['a/first', 'a/later'], 'as soon as the first has its place');
    assert.equal(ledger.reserve(later, 'pod-later'), true);
  });
  test('waits for no other of its namespace where none is passed over for that', () => {
    const { ledger, told } = setUp({ max: 3, closed: true });
    for (const key of ['a/1', 'b/1', 'a/2']) ledger.wait(anApplicant(key));
    ledger.open();
    assert.deepEqual(told, ['a/1', 'b/1', 'a/2']);
  });
  test('is told when slots become free, as are all others with a free slot', () => {
    const { ledger, told, see, caches } = setUp();
    caches.setClass('narrow', { limits: { maxRunning: 0 } });
    for (const n of [1, 2, 3]) ledger.wait(anApplicant(`a/${n}`, { class: 'narrow', since: n }));
    caches.setClass('narrow', { limits: { maxRunning: 2 } });
    ledger.vacancy();
    assert.deepEqual(told, ['a/1', 'a/2']);
    assert.equal(ledger.reserve(anApplicant('a/1', { class: 'narrow', since: 1 }), 'pod-1'), true);
    assert.equal(available(ledger, anApplicant('a/2', { class: 'narrow', since: 2 })), true, 'beside the first');
    see.deleted('a/2');
    assert.equal(available(ledger, anApplicant('a/3', { class: 'narrow', since: 3 })), true);
  });
});

test('a session that asks for less when its slot becomes free leaves the slot to the next, which is told', () => {
  const { ledger, see, told } = setUp({ max: 1 });
  see.admitted('a/0', 'pod-0');
  ledger.wait(anApplicant('a/1', { priority: 5 }));
  ledger.wait(anApplicant('a/2', { priority: 1 }));
  see.deleted('a/0');
  told.length = 0;
  const lowered = anApplicant('a/1');
  assert.equal(available(ledger, lowered), false);
  ledger.wait(lowered);
  assert.deepEqual([...new Set(told)], ['a/2']);
  assert.equal(available(ledger, anApplicant('a/2', { priority: 1 })), true);
});
