import assert from 'node:assert/strict';
import { describe, test } from 'vitest';

import type { TurnApproval } from '../../../core/resources/turn.ts';
import {
  aLink,
  aPod,
  aResult,
  aSession,
  aTurn,
  does,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
} from '../../support/world.ts';

const session = aSession({ status: RUNNING_STATUS });
const pod = aPod();
const decided: TurnApproval = {
  id: 'r',
  prompt: 'May I?',
  since: '2026-01-01T11:00:00Z',
  process: 'Ended',
  incarnation: 1,
  seq: 3,
  ranMs: 5,
  decided: { decision: 'Approve', approval: 'a', at: '2026-01-01T11:30:00Z' },
};
const waiting = aTurn({
  status: { index: 1, phase: 'AwaitingApproval', incarnation: 1, attempt: 1, approval: decided },
});

const { podUID: _, ...owner } = RUNNING_STATUS;
const owned = aSession({ status: owner });
const withheld: { what: string; action: string; world: WorldChange }[] = [
  { what: 'no index', action: 'WriteTurn', world: { turns: [aTurn({ name: 'a' }), aTurn({ name: 'b' })] } },
  { what: 'no turn that is to run', action: 'WriteTurn', world: { session, pod, link: aLink(), turns: [aTurn()] } },
  {
    what: 'no turn to a runner',
    action: 'StartTurn',
    world: { session, pod, link: aLink(), turns: [runningTurn('a')] },
  },
  { what: 'no decision', action: 'Consume', world: { session, pod, link: aLink(), turns: [waiting] } },
  { what: 'no pod', action: 'CreatePod', world: { session: owned, turns: [aTurn()] } },
  { what: 'no binding', action: 'Bind', world: { session, pod, link: aLink({ phase: 'Unbound' }) } },
];

describe('while a request of the leader before may still take effect, a leader gives out', () => {
  for (const { what, action, world } of withheld) {
    test(what, () => {
      assert.ok(
        does({ ...world, settled: true }).some((name) => name === action),
        'and does afterwards',
      );
      assert.ok(!does({ ...world, settled: false }).some((name) => name === action));
    });
  }
});

test('results of a runner are committed meanwhile', () => {
  const turn = runningTurn('a');
  const link = aLink({ delivery: { result: aResult(turn.metadata.uid) } });
  assert.ok(does({ session, pod, link, turns: [turn], settled: false }).includes('Commit'));
});
