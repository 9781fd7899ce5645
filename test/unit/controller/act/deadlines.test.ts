import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { createPod } from '../../../../controller/act/create-pod.ts';
import { storeDelivery } from '../../../../controller/act/store-delivery.ts';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { Reason } from '../../../../core/resources/reasons.ts';
import type { ClockJump } from '../../../../core/runtime.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import {
  aClass,
  aLink,
  aMemory,
  aResult,
  aSession,
  aWorld,
  NOW,
  RUNNING_STATUS,
  runningTurn,
} from '../../../support/world.ts';

const MINUTE = 60_000;
const minutesAgo = (minutes: number) => new Date(NOW - minutes * MINUTE).toISOString();
const condition = (type: string, reason: Reason, minutes: number) => ({
  type,
  status: type === 'Admitted' ? ('True' as const) : ('False' as const),
  reason,
  message: '',
  lastTransitionTime: minutesAgo(minutes),
});
const clock = { ...systemClock, now: () => NOW };

function aContext(session: CachedSession, effects: object, world: Parameters<typeof aWorld>[0] = {}) {
  const memory = aMemory();
  const context = {
    key: 'team/notes',
    memory,
    signal: new AbortController().signal,
    world: aWorld({ session, ...world }),
    effects: { clock, log: silentLogger, withoutWorker: (work: () => unknown) => work(), ...effects },
  } as unknown as ReconcileContext;
  return { context, memory };
}

describe('a new leader goes on with a time that was running', () => {
  test('timeouts.persist, from when the store was said to fail, but not from before the turn had ended', async () => {
    const store = {
      put: async () => {
        throw new Error('the disk is on fire');
      },
    };
    const attempt = async (
      toldMinutes: number,
      endedMinutes: number,
      reason: Reason = 'StateNotStored',
      clockJumps: readonly ClockJump[] = [],
    ) => {
      const conditions = [condition('StatePersisted', reason, toldMinutes)];
      const session = aSession({ status: { ...RUNNING_STATUS, conditions } });
      const output = 'x'.repeat(20_000);
      const delivery = { result: aResult('t-a', { output, finishedAt: minutesAgo(endedMinutes) }) };
      const slept = { ...clock, remote: { clockJumps } };
      const { context, memory } = aContext(session, { store, clock: slept }, { link: aLink({ delivery }) });
      const problems = await storeDelivery(context, runningTurn('a'), delivery).then(
        (stored) => stored.problems.map((problem) => problem.reason),
        (error: Error) => error.message,
      );
      return [problems, memory.incarnation.commitProblem && NOW - memory.incarnation.commitProblem.since];
    };
    const again = 'the disk is on fire';
    assert.deepEqual(await attempt(5, 6), [['StoreFull'], undefined]);
    assert.deepEqual(await attempt(4, 6), [again, 4 * MINUTE]);
    assert.deepEqual(await attempt(90, 1), [again, MINUTE], 'what was said of an earlier suspension');
    assert.deepEqual(await attempt(90, 90, 'NoState'), [again, 0], 'nobody has said so yet');
    assert.deepEqual(await attempt(4, -60), [again, 0], 'a runner whose clock is ahead');
    const clockJumps = [{ until: NOW - 10 * MINUTE, ms: 45 * MINUTE }];
    assert.deepEqual(
      await attempt(49, 50, 'StateNotStored', clockJumps),
      [again, 49 * MINUTE],
      'the machines have slept',
    );
    assert.deepEqual(await attempt(50, 51, 'StateNotStored', clockJumps), [['StoreFull'], undefined]);
  });

  test('timeouts.start, from the admission where the pod could not be created since', async () => {
    const down = new ApiError({ code: 500, reason: 'InternalError', message: 'webhook down' } as never);
    const failingFor = async (reason: Reason) => {
      const { podUID: _, ...owned } = RUNNING_STATUS;
      const conditions = [condition('Admitted', 'Admitted', 7), condition('Ready', reason, 90)];
      const session = aSession({ status: { ...owned, conditions } });
      const api = {
        create: async () => {
          throw down;
        },
      };
      const { context, memory } = aContext(session, { api, networkPolicies: { ensure: async () => {} } });
      const settings = effective(session, aClass(), context.world.installation);
      assert.ok(!isProblem(settings));
      await assert.rejects(createPod(context, settings), /webhook down/);
      return NOW - (memory.incarnation.createFailingSince ?? 0);
    };
    assert.equal(await failingFor('StartFailed'), 7 * MINUTE);
    assert.equal(await failingFor('Starting'), 0, 'it is the first to fail');
  });
});
