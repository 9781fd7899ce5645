import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ownedBy } from '../../../../core/resources/kinds.ts';
import { poolPodName } from '../../../../core/resources/names.ts';
import { anApplicant } from '../../../support/applicant.ts';
import { available, setUp } from './support.ts';

test('a pod of a pool that has become ready has the waiting sessions of its class and namespace looked at again, and no others', () => {
  const { caches, ledger, told } = setUp({ max: 0 });
  for (const [key, ofClass] of [
    ['a/same', 'default'],
    ['a/other-class', 'small'],
    ['b/other-namespace', 'default'],
  ] as const) {
    caches.add(key, { spec: { class: ofClass } });
    ledger.wait({ ...anApplicant(key), class: ofClass });
  }
  told.length = 0;
  ledger.requeueClaimants({ namespace: 'a', class: 'default' });
  assert.deepEqual(told, ['a/same']);
});

describe('the slot', () => {
  test('of a pod from a pool goes to the first session that reserves it, and the second one is told to look again', () => {
    const { caches, ledger, told } = setUp({ max: 3 });
    const pool = '00000000-0000-4000-8000-00000000000a';
    const name = poolPodName(pool, 0);
    const pod = caches.addPod('a', name);
    pod.metadata.labels = { 'berth.dev/session-uid': '', 'berth.dev/pool-uid': pool };
    pod.metadata.ownerReferences = [ownedBy({ metadata: { name: 'default', uid: pool } }, 'SessionPool')];
    ledger.podChanged(pod, false);
    const first = { ...anApplicant('a/1'), warm: [name] };
    const second = { ...anApplicant('a/2'), warm: [name] };
    ledger.wait(second);
    assert.equal(ledger.reserve(first, name), true);
    told.length = 0;
    assert.equal(ledger.reserve(second, name), false);
    assert.deepEqual(told, ['a/2']);
  });

  test('of a pod from a pool is offered again to the session that was refused it, or whose claim was undone', () => {
    const { caches, ledger, told } = setUp({ max: 1 });
    const pool = '00000000-0000-4000-8000-00000000000a';
    const name = poolPodName(pool, 0);
    const pod = caches.addPod('a', name);
    const unclaimed = { 'berth.dev/session-uid': '', 'berth.dev/pool-uid': pool, 'berth.dev/class': 'default' };
    pod.metadata.labels = unclaimed;
    pod.metadata.ownerReferences = [ownedBy({ metadata: { name: 'default', uid: pool } }, 'SessionPool')];
    ledger.podChanged(pod, false);
    const applicant = { ...anApplicant('a/1'), warm: [name] };
    assert.equal(ledger.reserve(applicant, name), true);
    ledger.wait(applicant);
    told.length = 0;
    ledger.reservations.confirm('a', name);
    assert.deepEqual([told, available(ledger, applicant)], [['a/1'], true], 'refused');
    ledger.podChanged(
      { ...pod, metadata: { ...pod.metadata, labels: { ...unclaimed, 'berth.dev/session-uid': 'other' } } },
      false,
    );
    assert.equal(available(ledger, applicant), false);
    ledger.leave('a/1');
    ledger.wait(applicant);
    told.length = 0;
    ledger.podChanged(pod, false);
    assert.deepEqual([told, available(ledger, applicant)], [['a/1'], true], 'undone');
  });
});
