import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { sessionProgress, turnProgress } from '../../../../cli/wait/target.ts';
import type { StoredSession } from '../../../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';

const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  type,
  status,
  reason,
  message: `${reason}.`,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

function session(status: StoredSession['status'], spec: object = {}, metadata: object = {}) {
  return { metadata: { name: 'notes', ...metadata }, spec: { turns: 'Many', ...spec }, status } as StoredSession;
}

describe('the progress of a session', () => {
  const of = (goal: 'ready' | 'suspended' | 'finished', ...facts: Parameters<typeof session>) =>
    sessionProgress(session(...facts), goal, {} as SessionClassSpec, 'berth');

  test('is met by the condition alone', () => {
    assert.deepEqual(of('ready', { conditions: [condition('Ready', 'True', 'Running')] }), { is: 'met' });
    assert.equal(of('ready', { phase: 'Running', conditions: [condition('Ready', 'False', 'Starting')] }).is, 'waits');
  });
  test('is never met by a session that is deleted or about to be', () => {
    const ready = { conditions: [condition('Ready', 'True', 'Ready')] };
    assert.equal(of('ready', ready, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }).is, 'never');
    assert.equal(sessionProgress(undefined, 'ready', undefined, 'berth').is, 'never');
  });
  test('is never met by one that is finished, unless that is the goal', () => {
    const over = { phase: 'Finished' as const, conditions: [condition('Finished', 'True', 'RunFailed')] };
    assert.deepEqual(of('suspended', over), { is: 'never', why: 'it is finished: RunFailed: RunFailed.' });
    assert.deepEqual(of('finished', over), { is: 'met' });
  });
  test('towards its end is open while a lifetime, or the class, is unknown or set', () => {
    const running = { phase: 'Ready' as const };
    assert.equal(of('finished', running).is, 'never');
    assert.equal(of('finished', running, { turns: 'One' }).is, 'waits');
    assert.equal(of('finished', running, { timeouts: { lifetime: '1h' } }).is, 'waits');
    for (const allowed of [{ timeouts: { lifetime: '1h' } }, { maxTimeouts: { lifetime: '1h' } }, undefined]) {
      const progress = sessionProgress(session(running), 'finished', allowed as SessionClassSpec | undefined, 'berth');
      assert.equal(progress.is, 'waits');
    }
  });
  test('towards a suspension names what keeps the pod, or how to ask for one', () => {
    const why = (...facts: Parameters<typeof session>) => (of('suspended', ...facts) as { why: string }).why;
    assert.match(why({ phase: 'Ready' }), /it is Ready; to suspend it: berth suspend notes/);
    assert.match(why({ phase: 'Ready' }, { suspendRequest: 'a' }), /^it is Ready$/);
    assert.match(why({ phase: 'Running', currentTurn: 't' }), /turn t of the session is running/);
    assert.match(why({ conditions: [condition('StatePersisted', 'False', 'StateNotStored')] }), /StateNotStored/);
  });
});

test('the progress of a turn is met by its success alone', () => {
  const of = (status: object | undefined) => turnProgress({ metadata: { name: 't' }, status } as never);
  assert.deepEqual(of({ phase: 'Succeeded' }), { is: 'met' });
  for (const phase of ['Failed', 'Cancelled', 'TimedOut']) assert.equal(of({ phase }).is, 'never');
  assert.equal(turnProgress(undefined).is, 'never');
  assert.deepEqual(of({ phase: 'Queued', conditions: [condition('Finished', 'False', 'AtCapacity')] }), {
    is: 'waits',
    why: 'it is Queued: AtCapacity: AtCapacity.',
  });
  assert.equal(of(undefined).is, 'waits');
});
