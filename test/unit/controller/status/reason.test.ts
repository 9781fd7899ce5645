import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { awaiting, resumed } from '../../../../controller/status/approval-status.ts';
import { withPhaseSince, withSessionReason } from '../../../../controller/status/reason.ts';
import { ended, lostAttempt, queued, running, unstarted } from '../../../../controller/status/turn-status.ts';
import type { Condition } from '../../../../core/resources/schema.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import { aSession, aTurn, aWorld, NOW, RUNNING_STATUS, runningTurn } from '../../../support/world.ts';

const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: new Date(NOW).toISOString(),
});

type Case = [phase: SessionStatus['phase'], conditions: Condition[], reason: string | undefined];
const ready = (reason: string, status: Condition['status'] = 'False') => condition('Ready', status, reason);

const SESSIONS: Case[] = [
  ['Queued', [ready('Suspended')], undefined],
  ['Queued', [ready('AtCapacity')], 'AtCapacity'],
  ['Starting', [ready('Starting')], undefined],
  ['Starting', [ready('PodConfigError')], 'PodConfigError'],
  ['Ready', [ready('Ready', 'True'), condition('StatePersisted', 'Unknown', 'NoState')], undefined],
  ['Ready', [ready('Ready', 'True'), condition('StatePersisted', 'False', 'PersistenceOff')], undefined],
  ['Ready', [ready('Ready', 'True'), condition('StatePersisted', 'False', 'StateTooLarge')], 'StateTooLarge'],
  ['Running', [ready('Running', 'True')], undefined],
  ['AwaitingApproval', [ready('AwaitingApproval'), condition('Suspended', 'True', 'Preempted')], 'Preempted'],
  ['Suspending', [ready('Suspending'), condition('Suspended', 'False', 'Suspending')], undefined],
  ['Suspended', [ready('Suspended'), condition('Suspended', 'True', 'Suspended')], undefined],
  ['Suspended', [ready('Suspended'), condition('Suspended', 'True', 'Preempted')], 'Preempted'],
  ['Suspended', [ready('Held'), condition('Suspended', 'True', 'Held')], 'Held'],
  ['Suspended', [ready('StartFailed'), condition('Suspended', 'True', 'Held')], 'StartFailed'],
  ['Finished', [ready('RunSucceeded')], undefined],
  // As the column of the last turn's phase says.
  ['Finished', [ready('Cancelled')], undefined],
  ['Finished', [ready('AgentFailed')], 'AgentFailed'],
  ['Finished', [ready('LifetimeExceeded')], 'LifetimeExceeded'],
  ['Terminating', [ready('Terminating')], undefined],
];

describe('status.reason', () => {
  test.each(SESSIONS)('of a session that is %s: %o', (phase, conditions, reason) => {
    assert.equal(withSessionReason({ phase, conditions, reason: 'OfBefore' }).reason, reason);
  });

  test('of a session is decided with its conditions, and goes with them', () => {
    const full = { waiting: 'AtCapacity', message: 'full', position: 1 } as const;
    const { status } = decide(aWorld({ session: aSession(), slot: full }));
    assert.deepEqual([status.phase, status.reason], ['Queued', 'AtCapacity']);
    const held = decide(aWorld({ session: aSession({ spec: { suspend: true }, status }) })).status;
    assert.deepEqual([held.phase, held.reason], ['Suspended', 'Held']);
    const rests = decide(aWorld({ session: aSession({ status: { ...held, incarnation: 1 } }) })).status;
    assert.deepEqual([rests.phase, Object.hasOwn(rests, 'reason')], ['Suspended', false]);
  });

  test('of a turn says why it waits or did not succeed, and else nothing', () => {
    const pod = { index: 1, incarnation: 1, podUID: 'p', granted: {} };
    const waits = { id: 'x', prompt: 'Go on?', since: '', process: 'Alive', incarnation: 1, seq: 1, ranMs: 1 } as const;
    const turn = runningTurn('a', { status: { reason: 'OfBefore', approval: waits } });
    const decided = { decision: 'Approve', approval: 'approval-x', at: '' } as const;
    const end = (
      phase: 'Succeeded' | 'Failed' | 'Cancelled' | 'TimedOut',
      reason: 'Succeeded' | 'AgentFailed' | 'Cancelled' | 'Stalled',
    ) => ended(turn, { phase, reason, message: '' }, NOW);
    const statuses = [
      queued(aTurn(), 1, 'Queued', NOW),
      queued(aTurn(), 1, 'GroupLimit', NOW),
      unstarted(turn, 'PodConfigError', NOW, ''),
      lostAttempt(turn, { reason: 'PodLost', message: '' }, NOW),
      running(turn, pod, NOW),
      awaiting(turn, waits, {}, NOW),
      resumed(turn, decided, pod, NOW),
      end('Succeeded', 'Succeeded'),
      end('Failed', 'AgentFailed'),
      end('Cancelled', 'Cancelled'),
      end('TimedOut', 'Stalled'),
    ];
    assert.deepEqual(
      statuses.map(({ phase, reason }) => [phase, reason]),
      [
        ['Queued', undefined],
        ['Queued', 'GroupLimit'],
        ['Queued', 'PodConfigError'],
        ['Queued', 'Retrying'],
        ['Running', undefined],
        ['AwaitingApproval', undefined],
        ['Running', undefined],
        ['Succeeded', undefined],
        ['Failed', 'AgentFailed'],
        ['Cancelled', undefined],
        ['TimedOut', 'Stalled'],
      ],
    );
  });
});

test('status.phaseSince moves with the phase alone', () => {
  const phaseSince = new Date(NOW - 60_000).toISOString();
  const before = { ...RUNNING_STATUS, phaseSince };
  assert.equal(withPhaseSince({ ...before, incarnation: 2 }, before, NOW).phaseSince, phaseSince);
  assert.equal(withPhaseSince({ ...before, phase: 'Running' }, before, NOW).phaseSince, new Date(NOW).toISOString());
});
