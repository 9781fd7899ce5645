import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { podEvent } from '../../../../controller/status/events.ts';
import { aSession, aTurn, runningTurn } from '../../../support/world.ts';

describe('the event for the pod of an incarnation', () => {
  const session = aSession({ status: { phase: 'Starting', incarnation: 2 } });

  test('names the pod, the incarnation and the first turn that waits for it', () => {
    const ended = runningTurn('notes-1', { status: { phase: 'Succeeded' } });
    const second = aTurn({ name: 'notes-2', status: { index: 2 } });
    const turns = [aTurn({ name: 'notes-3', status: { index: 3 } }), second, ended];
    const message = 'Created pod s-1-2: incarnation 2, for turn notes-2.';
    assert.deepEqual(podEvent({ session, turns }, 's-1-2'), { type: 'Normal', reason: 'PodCreated', message });
  });

  test('names no turn where none waits', () => {
    assert.equal(podEvent({ session, turns: [] }, 's-1-2').message, 'Created pod s-1-2: incarnation 2.');
  });

  test('names the pool whose pod was claimed', () => {
    const message = 'Claimed pod p-1-1 of pool "warm": incarnation 2.';
    const claimed = { type: 'Normal', reason: 'PodClaimed', message };
    assert.deepEqual(podEvent({ session, turns: [] }, 'p-1-1', 'warm'), claimed);
  });
});
