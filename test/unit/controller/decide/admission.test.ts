import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import { aPod, aSession, aTurn, aWorld, NOW, reasonOf, type WorldChange } from '../../../support/world.ts';

const at = new Date(NOW - 5_000).toISOString();
const suspended: SessionStatus = { phase: 'Suspended', incarnation: 3, turns: { total: 2, succeeded: 2, failed: 0 } };
const queue = { position: 1, since: at, reason: 'AtCapacity' } as const;
const waitingTurn = aTurn({ name: 'b', status: { index: 3, phase: 'Queued' } });
const ended: TurnStatus = {
  ...{ index: 2, phase: 'Succeeded', incarnation: 3, podUID: 'old', startedAt: at, finishedAt: at },
  state: { incarnation: 3, seq: 9, bytes: 5, digest: 'd'.repeat(64), inline: 'eA==' } as never,
};
const warm = {
  pool: 'default',
  fits: true,
  pods: [aPod({ name: 'p-00000000-0000-4000-8000-00000000000a-01', uid: 'warm' })],
  starting: new Set<string>(),
};
const failed = {
  ...{ count: 1, reason: 'StartFailed', message: 'Pod p ended before it took a turn.' },
  ...{ since: at, at: new Date(NOW - 60_000).toISOString(), incarnation: 3 },
};

describe('the status that admits a session', () => {
  for (const [what, world] of [
    ['that is new', {}],
    ['that is new to a leader that does not know its turns', { memory: { knowsTurns: false } }],
    ['that takes one turn', { session: aSession({ spec: { turns: 'One' } }), turns: [waitingTurn] }],
    ['that waited for a slot', { session: aSession({ status: { ...suspended, queue } }), turns: [waitingTurn] }],
    [
      'with a turn to count',
      { session: aSession({ status: suspended }), turns: [aTurn({ status: ended }), waitingTurn] },
    ],
    [
      'whose pod did not start',
      { session: aSession({ status: { ...suspended, startFailures: failed } }), turns: [waitingTurn] },
    ],
    [
      'that waited for a quota',
      {
        session: aSession({
          status: {
            ...suspended,
            startFailures: { ...failed, reason: 'QuotaExceeded' },
            queue: { since: at, reason: 'QuotaExceeded' },
          },
        }),
        turns: [waitingTurn],
      },
    ],
    ['that claims a pod', { session: aSession({ status: suspended }), turns: [waitingTurn], warm }],
    [
      'that asks to be suspended',
      { session: aSession({ spec: { suspendRequest: 'r' }, status: suspended }), turns: [waitingTurn] },
    ],
  ] satisfies [string, WorldChange][]) {
    test(`${what} says all that the next decision would say`, () => {
      const { admission, status } = decide(aWorld(world));
      assert.ok(admission);
      assert.deepEqual([status.phase, status.podName, status.queue], ['Starting', admission.pod, undefined]);
      const turns = (world.turns ?? []).filter((turn) => (turn.status.index ?? 0) > (status.lastTurn?.index ?? 0));
      const session = { ...aWorld(world).session, status };
      const next = decide(aWorld({ ...world, session, turns }));
      assert.deepEqual(next.status, status);
      assert.equal(next.admission, undefined);
    });
  }

  test('says nothing of what kept the state of the incarnation before from being stored', () => {
    const commitProblem = { reason: 'StoreFull' as const, message: 'full', since: NOW };
    const suspensionFailed = { problem: commitProblem, count: 1, againAt: NOW, generation: 1 };
    const memory = { commitProblem, suspensionFailed };
    const session = aSession({ status: suspended });
    assert.equal(reasonOf(decide(aWorld({ session, memory })).status, 'StatePersisted'), 'StoreFull');
    const { admission, status } = decide(aWorld({ session, memory, turns: [waitingTurn] }));
    assert.ok(admission);
    assert.equal(reasonOf(status, 'StatePersisted'), 'NoState');
  });
});
