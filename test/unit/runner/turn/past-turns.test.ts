import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { StartTurn } from '../../../../core/frames/messages.ts';
import { PastTurns } from '../../../../runner/turn/past-turns.ts';

const turn = (index: number, attempt = 1): StartTurn => ({
  ...{ turn: `turn-${index}`, name: '', index, attempt, input: null, timeoutMs: 1000 },
});
const decided = (index: number, requestId: string, attempt = 1) => ({
  ...{ ...turn(index, attempt), ranMs: 0, approval: { requestId, decision: 'Approve' as const } },
});

test('a turn that has run is not run again, however many turns have ended since; a turn that has not may run', () => {
  const past = new PastTurns(3);
  for (let index = 1; index <= 10; index++) {
    assert.equal(past.problem(turn(index)), undefined);
    past.ended(turn(index));
    for (let earlier = 1; earlier <= index; earlier++) assert.ok(past.problem(turn(earlier)), `${earlier} of ${index}`);
    for (let earlier = 1; earlier <= index; earlier++) assert.ok(past.problem(decided(earlier, 'r')));
  }
  assert.ok(past.hasEnded('turn-8'));
  assert.equal(past.hasEnded('turn-7'), false, 'only so many are known one by one');
});

test('a later attempt at a turn may run while it is known, an earlier one may not', () => {
  const past = new PastTurns(3);
  for (let index = 1; index <= 5; index++) past.ended(turn(index, 2));
  assert.ok(past.problem(turn(5, 1)));
  assert.equal(past.problem(turn(5, 3)), undefined);
  past.ended(turn(5, 3));
  assert.ok(past.problem(turn(5, 3)));
});

test('a leg that ended by asking is not run again, its decision may be, also where others end after it', () => {
  const past = new PastTurns(3);
  past.asked(turn(1));
  assert.ok(past.problem(turn(1)));
  assert.equal(past.hasEnded('turn-1'), false);
  assert.equal(past.problem(decided(1, 'a')), undefined);
  past.asked(decided(1, 'a'));
  for (const leg of [turn(1), decided(1, 'a')]) assert.match(past.problem(leg) ?? '', /waits for the decision/);
  assert.equal(past.problem(decided(1, 'b')), undefined);
  past.ended(decided(1, 'b'));
  for (const leg of [turn(1), decided(1, 'a'), decided(1, 'b')]) assert.match(past.problem(leg) ?? '', /has ended/);
  assert.equal(past.problem(turn(1, 2)), undefined);
});

test('a turn that asks again stays known', () => {
  const past = new PastTurns(2);
  past.asked(turn(1));
  past.ended(turn(2));
  past.asked(decided(1, 'a'));
  past.ended(turn(3));
  assert.equal(past.problem(decided(1, 'b')), undefined);
  assert.ok(past.problem(decided(1, 'a')));
});
