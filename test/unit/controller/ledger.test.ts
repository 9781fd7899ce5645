import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Holder, Ledger } from '../../../controller/ledger.ts';

function setUp(options: { max?: number; classLimits?: Record<string, number>; known?: boolean } = {}) {
  const holders: Holder[] = [];
  const told: string[] = [];
  const ledger = new Ledger({
    holders: () => (options.known === false ? undefined : holders),
    maxRunning: options.max,
    classLimit: (name) => options.classLimits?.[name],
    onVacancy: (key) => told.push(key),
  });
  return { ledger, holders, told };
}
const applicant = (name: string, since = 0, ofClass = 'default') => ({ key: `team/${name}`, class: ofClass, since });
const holder = (name: string, ofClass = 'default') => ({ pod: `pod-${name}`, namespace: 'team', class: ofClass });

test('a place that is promised is taken before its write is seen', () => {
  const { ledger } = setUp({ max: 1 });
  ledger.open();
  assert.equal(ledger.reserve(applicant('a'), 'pod-a'), true);
  assert.equal(ledger.reserve(applicant('b'), 'pod-b'), false);
});

test('a promise and what the caches show of it count once', () => {
  const { ledger, holders } = setUp({ max: 2 });
  ledger.open();
  ledger.reserve(applicant('a'), 'pod-a');
  holders.push(holder('a'));
  assert.equal(ledger.place(applicant('b')), 'Available');
});

test('a promise that came to nothing frees the place and tells who waits', () => {
  const { ledger, told } = setUp({ max: 1 });
  ledger.open();
  ledger.reserve(applicant('a'), 'pod-a');
  ledger.wait(applicant('b'));
  ledger.settle('team/a');
  assert.deepEqual(told, ['team/b']);
});

test('before the leader may admit, and when it is not known what runs, everything is full', () => {
  const closed = setUp();
  assert.equal(closed.ledger.reserve(applicant('a'), 'pod-a'), false);
  const blind = setUp({ known: false });
  blind.ledger.open();
  assert.equal(blind.ledger.reserve(applicant('a'), 'pod-a'), false);
});

test('who has waited longest comes first', () => {
  const { ledger, holders } = setUp({ max: 1 });
  ledger.open();
  holders.push(holder('x'));
  ledger.wait(applicant('young', 20));
  ledger.wait(applicant('old', 10));
  holders.pop();
  assert.equal(ledger.reserve(applicant('young', 20), 'pod-young'), false);
  assert.equal(ledger.reserve(applicant('old', 10), 'pod-old'), true);
});

test('a session that only its own class holds back does not hold back others', () => {
  const { ledger, holders } = setUp({ max: 5, classLimits: { narrow: 1 } });
  ledger.open();
  holders.push(holder('x', 'narrow'));
  ledger.wait(applicant('blocked', 1, 'narrow'));
  assert.equal(ledger.reserve(applicant('free', 2), 'pod-free'), true);
});

test('a limit that is lowered below what runs admits nobody', () => {
  const limits = { narrow: 3 };
  const { ledger, holders } = setUp({ classLimits: limits });
  ledger.open();
  holders.push(holder('x', 'narrow'), holder('y', 'narrow'));
  limits.narrow = 1;
  assert.equal(ledger.reserve(applicant('a', 0, 'narrow'), 'pod-a'), false);
});
