import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { learn } from '../../../../controller/observed/memory.ts';
import {
  aLink,
  aMemory,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  RUNNING_STATUS,
  type WorldChange,
} from '../../../support/world.ts';

const MINUTE = 60_000;
const ago = (minutes: number) => new Date(NOW - minutes * MINUTE).toISOString();

/** lastActiveAt as the next status has it, in minutes before now; the session was last active an hour ago. */
function activeAgo(world: WorldChange = {}, annotations: Record<string, string> = {}, lastActiveAt = ago(60)): number {
  const session = aSession({ status: { ...RUNNING_STATUS, lastActiveAt } });
  Object.assign(session.metadata, { creationTimestamp: ago(90), annotations });
  const { status } = decide(aWorld({ session, pod: aPod(), link: aLink(), ...world }));
  return (NOW - Date.parse(status.lastActiveAt as string)) / MINUTE;
}

describe('lastActiveAt', () => {
  test('moves when a turn is created', () => {
    assert.equal(activeAgo({ turns: [aTurn({ age: 300 })] }), 5);
  });
  test('moves when a turn is created and deleted before anything of it is written', () => {
    const memory = aMemory();
    const session = aSession({ status: RUNNING_STATUS });
    learn(memory, { fact: 'Observed', session, turns: [aTurn({ age: 300 })], pod: undefined });
    learn(memory, { fact: 'Observed', session, turns: [], pod: undefined });
    const { turnCreatedAt } = memory;
    assert.equal(activeAgo({ memory: { turnCreatedAt } }), 5);
  });
  test('moves when a turn starts', () => {
    const status = { index: 1, phase: 'Running', podUID: 'p-1', startedAt: ago(3) } as const;
    assert.equal(activeAgo({ turns: [aTurn({ age: 600, status })] }), 3);
  });
  test('moves when a turn ends', () => {
    const status = { index: 1, phase: 'Succeeded', finishedAt: ago(2) } as const;
    assert.equal(activeAgo({ turns: [aTurn({ age: 600, status })] }), 2);
  });
  test('moves when somebody touches the session', () => {
    assert.equal(activeAgo({}, { 'berth.dev/touched-at': ago(1) }), 1);
  });
  test('moves when the agent is active', () => {
    assert.equal(activeAgo({ link: aLink({ lastActivity: NOW - 4 * MINUTE }) }), 4);
  });
  test('does not move by a write for every sign of life of an agent', () => {
    assert.equal(activeAgo({ link: aLink({ lastActivity: NOW - 4 * MINUTE }) }, {}, ago(4.5)), 4.5);
  });
  test('does not move because the session is reconciled, changed or written', () => {
    assert.equal(activeAgo(), 60);
    assert.equal(activeAgo({ memory: { commitProblem: { reason: 'StateNotStored', message: '', since: NOW } } }), 60);
  });
  test('does not move for a turn of another session of the name', () => {
    assert.equal(activeAgo({ turns: [aTurn({ owner: 'other', age: 60, status: { phase: 'Succeeded' } })] }), 60);
  });
  test('never goes back, also when the clock does', () => {
    assert.equal(activeAgo({}, {}, new Date(NOW + 10 * MINUTE).toISOString()), -10);
  });
  test('is not carried into the future by a touch: one that is a little ahead counts as now, another not at all', () => {
    assert.equal(activeAgo({}, { 'berth.dev/touched-at': ago(-1) }), 0);
    assert.equal(activeAgo({}, { 'berth.dev/touched-at': ago(-600) }), 60);
    assert.equal(activeAgo({}, { 'berth.dev/touched-at': 'tomorrow' }), 60);
  });
});
