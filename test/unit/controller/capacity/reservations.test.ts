import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { admitSession } from '../../../../controller/act/slots.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import { anApplicant } from '../../../support/applicant.ts';
import { available, setUp } from './support.ts';

describe('a slot', () => {
  test('that the API server refuses to a session leaves its namespace its turn, unless an answer was lost before', async () => {
    const notFound = new ApiError({ code: 404, reason: 'NotFound', message: 'sessions.berth.dev "gone" not found' });
    const conflict = new ApiError({ code: 409, reason: 'Conflict', message: 'the object has been modified' });
    const lost = new TransportError('socket hang up');
    for (const answers of [[notFound], [conflict], [lost], [lost, conflict]]) {
      const { ledger, caches, clock } = setUp({ max: 1 });
      const [gone, next, other] = [anApplicant('a/gone'), anApplicant('a/next', { since: 5 }), anApplicant('b/1')];
      const session = caches.add(gone.key);
      for (const applicant of [gone, next, other]) ledger.wait(applicant);
      const effects = { api: { get: () => Promise.reject(notFound) }, ledger };
      const context = { effects, world: { session, applicant: gone }, key: gone.key } as unknown as ReconcileContext;
      for (const answer of answers) {
        const write = () => Promise.reject(answer);
        await assert.rejects(admitSession(context, { incarnation: 1, pod: 'pod-1' }, {}, write));
      }
      ledger.leave(gone.key);
      await clock.advance(2 * 60_000);
      const isNext = [available(ledger, next), available(ledger, other)];
      assert.deepEqual(isNext, answers[0] === lost ? [false, true] : [true, false], `${answers}`);
    }
  });

  test('is reserved for a session that the earlier leader may still admit, and for that long only', async () => {
    const { ledger, see, told, clock } = setUp({ max: 2 });
    see.admitted('a/large', undefined);
    ledger.reservations.holdForLateWrite('a/large', 30_000);
    assert.equal(ledger.reserve(anApplicant('a/large'), 'pod-1'), true);
    ledger.wait(anApplicant('a/2'));
    assert.equal(available(ledger, anApplicant('a/2')), false);
    told.length = 0;
    await clock.advance(30_000);
    assert.deepEqual(told, ['a/2']);
  });

  test('is held once by a session that also has a reservation from the earlier leader', () => {
    const { ledger, see } = setUp({ max: 2 });
    see.admitted('a/1', 'pod-1');
    ledger.reservations.holdForLateWrite('a/1', 30_000);
    ledger.reservations.holdForLateWrite('a/gone', 30_000);
    assert.equal(available(ledger, anApplicant('a/2')), true);
  });

  test('is held by a reservation of unknown outcome until its request is dead and the caches are fresh', async () => {
    const { ledger, caches, clock, told } = setUp({ max: 1 });
    ledger.reserve(anApplicant('a/1'), 'pod-1');
    ledger.wait(anApplicant('a/2'));
    ledger.reservations.failed('a', 'pod-1', new TransportError('no answer'));
    assert.equal(ledger.reserve(anApplicant('a/1'), 'pod-1'), true, 'it is its own');
    caches.staleMs = 4_000;
    await clock.advance(7_000);
    assert.deepEqual(told, []);
    caches.staleMs = 0;
    await clock.advance(1_000);
    assert.deepEqual(told, ['a/2']);
  });
});
