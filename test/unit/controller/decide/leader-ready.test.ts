import assert from 'node:assert/strict';
import { describe, test } from 'vitest';

import type { TurnApproval } from '../../../../core/resources/turn.ts';
import {
  aLink,
  aPod,
  aResult,
  aSession,
  aTurn,
  does,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
} from '../../../support/world.ts';

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
const suspended = aSession({ spec: { suspend: true }, status: RUNNING_STATUS });
const unstarted = {
  session: aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } }),
  pod: aPod({ age: 601, status: { phase: 'Pending' } }),
  turns: [aTurn()],
};
const endedByItself = {
  name: 'session',
  ready: false,
  restartCount: 0,
  state: { terminated: { exitCode: 1, reason: 'Error' } },
};
const fenced = aLink({
  suspendSent: true,
  suspended: true,
  snapshot: { seq: 9, kind: 'state', message: { digest: 'd', keyId: 'k', bytes: 1 }, binary: Buffer.alloc(1) },
});
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
  {
    what: 'no pod’s end for a suspension that has the state',
    action: 'VerifySuspension',
    world: { session: suspended, pod, link: fenced, memory: { suspension: { podUID: POD_UID, askedAt: NOW - 100 } } },
  },
  {
    what: 'no end of a pod that was never bound',
    action: 'DeletePod',
    world: { session: suspended, pod, link: aLink({ phase: 'Unbound' }) },
  },
  {
    what: 'no index, and no pod’s end, for turns whose pod did not start',
    action: 'DeletePod',
    world: { ...unstarted, link: aLink({ phase: 'Opening' }), memory: { podRead: { podUID: POD_UID } } },
  },
  {
    what: 'no index for turns whose container ended by itself',
    action: 'WriteTurn',
    world: { ...unstarted, pod: aPod({ status: { phase: 'Failed', containerStatuses: [endedByItself] } }) },
  },
  {
    what: 'no index for turns whose state could not be restored',
    action: 'WriteTurn',
    world: {
      session,
      pod,
      link: aLink({ refused: { n: 1, code: 'RestoreFailed', message: 'no room' } }),
      turns: [aTurn()],
    },
  },
  {
    what: 'no index for turns whose pod the API server refuses',
    action: 'WriteTurn',
    world: {
      session: owned,
      turns: [aTurn()],
      memory: { startProblem: { reason: 'PodForbidden', message: 'violates PodSecurity' } },
    },
  },
  {
    what: 'no index for turns whose session is deleted',
    action: 'WriteTurn',
    world: { session: aSession({ deleting: true, status: RUNNING_STATUS }), pod, turns: [aTurn()] },
  },
  { what: 'no binding', action: 'Bind', world: { session, pod, link: aLink({ phase: 'Unbound' }) } },
];

describe('while a request of the leader before may still take effect, a leader gives out', () => {
  for (const { what, action, world } of withheld) {
    test(what, () => {
      assert.ok(
        does({ ...world, leaderIsReady: true }).some((name) => name === action),
        'and does afterwards',
      );
      assert.ok(!does({ ...world, leaderIsReady: false }).some((name) => name === action));
    });
  }
});

test('results of a runner are committed meanwhile', () => {
  const turn = runningTurn('a');
  const link = aLink({ delivery: { result: aResult(turn.metadata.uid) } });
  assert.ok(does({ session, pod, link, turns: [turn], leaderIsReady: false }).includes('Commit'));
});
