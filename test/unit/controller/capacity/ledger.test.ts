import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { admitSession, withSlotHeld } from '../../../../controller/act/slots.ts';
import { Ledger } from '../../../../controller/capacity/ledger.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { poolPodName } from '../../../../core/resources/names.ts';
import { anApplicant } from '../../../support/applicant.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { available, setUp, whyNot } from './support.ts';

describe('a slot', () => {
  test('is held by a reservation before its write is seen', () => {
    const { ledger } = setUp({ max: 1 });
    assert.equal(ledger.reserve(anApplicant('a/1'), 'pod-1'), true);
    assert.equal(ledger.reserve(anApplicant('a/2'), 'pod-2'), false);
  });
  test('counts once for a reservation, its session and its pod, until the last of them is gone', () => {
    const { ledger, see, told } = setUp({ max: 2 });
    ledger.reserve(anApplicant('a/1'), 'pod-1');
    see.admitted('a/1', 'pod-1');
    see.pod('a', 'pod-1');
    assert.equal(available(ledger, anApplicant('a/2')), true);
    see.admitted('b/1', 'pod-b');
    ledger.wait(anApplicant('a/2'));
    ledger.reservations.confirm('a', 'pod-1');
    see.deleted('a/1');
    assert.equal(available(ledger, anApplicant('a/2')), false, 'the pod is still there');
    told.length = 0;
    see.gone('a', 'pod-1');
    assert.deepEqual(told, ['a/2']);
  });
  test('is held by a terminating pod of an earlier incarnation', () => {
    const { ledger, see } = setUp({ max: 1 });
    see.pod('a', 'pod-1', { deleting: true });
    assert.equal(available(ledger, anApplicant('a/1')), false);
  });
  test('is held by a pod without a known session, in the class of its label', () => {
    const { ledger, see, caches } = setUp();
    caches.setClass('narrow', { limits: { maxRunning: 1 } });
    see.pod('a', 'stray', { class: 'narrow' });
    const { message, holders } = whyNot(ledger, anApplicant('a/1', { class: 'narrow' }));
    assert.match(message, /^All 1 running slots of class "narrow" are taken, held by a\/pod stray \(since /);
    assert.deepEqual(
      holders?.map(({ name }) => name),
      ['a/pod stray'],
    );
    assert.equal(available(ledger, anApplicant('a/1')), true);
  });
  test('is free for another when the session of a pod that is still to be created is gone', async () => {
    const { ledger, see, caches } = setUp({ max: 1 });
    see.admitted('a/1', 'pod-1');
    const world = { session: caches.session('a', '1') };
    see.deleted('a/1');
    assert.equal(ledger.reserve(anApplicant('a/2'), 'pod-2'), true);
    const context = { effects: { ledger }, world, key: 'a/1' } as unknown as ReconcileContext;
    await withSlotHeld(context, 'pod-1', () => assert.fail('it is made'));
    ledger.reservations.confirm('a', 'pod-2');
    assert.equal(available(ledger, anApplicant('a/3')), true);
  });
  test('that is released after a conflict on its session is free for the next in the queue only', async () => {
    const { ledger, caches } = setUp({ max: 1 });
    const [first, second] = [anApplicant('a/1'), anApplicant('a/2', { since: 5 })];
    const session = caches.add(first.key);
    for (const applicant of [first, second]) ledger.wait(applicant);
    const conflict = new ApiError({ code: 409, reason: 'Conflict', message: 'the object has been modified' });
    const effects = { api: { get: async () => session }, ledger };
    const context = { effects, world: { session, applicant: first }, key: first.key } as unknown as ReconcileContext;
    const write = () => Promise.reject(conflict);
    await assert.rejects(admitSession(context, { incarnation: 1, pod: 'pod-1' }, {}, write), conflict);
    assert.deepEqual([available(ledger, second), available(ledger, first)], [false, true]);
  });
  test('that has gone to another session since the decision is waited for, and nothing is written', async () => {
    const { ledger, caches } = setUp({ max: 1 });
    const applicant = anApplicant('a/1');
    const world = { session: caches.add(applicant.key), applicant };
    const context = { effects: { ledger }, world, key: applicant.key } as unknown as ReconcileContext;
    ledger.reserve(anApplicant('a/other'), 'pod-other');
    await admitSession(context, { incarnation: 1, pod: 'pod-1' }, {}, () => assert.fail('it is written'));
    assert.deepEqual([...ledger.waiting()], [applicant.key]);
  });
  test('of a pod from a pool that has gone to another session is not waited for: the next decision has another', async () => {
    const { ledger, caches, told } = setUp({ max: 3 });
    const name = poolPodName('00000000-0000-4000-8000-00000000000a', 0);
    const applicant = anApplicant('a/1');
    const world = { session: caches.add(applicant.key), applicant };
    const context = { effects: { ledger }, world, key: applicant.key } as unknown as ReconcileContext;
    const claim = caches.addPod('a', name);
    told.length = 0;
    await admitSession(context, { incarnation: 1, pod: name, claim }, {}, () => assert.fail('it is written'));
    assert.deepEqual([[...ledger.waiting()], told], [[], [applicant.key]]);
  });
  test('is held by sessions and pods from before this leader', () => {
    const { ledger } = setUp({
      max: 2,
      before: (caches) => {
        caches.add('a/1', { status: { podName: 'pod-1', incarnation: 1 } });
        caches.addPod('a', 'pod-2');
      },
    });
    assert.equal(available(ledger, anApplicant('a/3')), false);
  });
  test('stays held while a session changes its pod', () => {
    const { ledger, see, told } = setUp({ max: 1 });
    see.admitted('a/1', 'pod-1');
    ledger.wait(anApplicant('a/2'));
    see.admitted('a/1', 'pod-2');
    assert.deepEqual(told, []);
    assert.equal(available(ledger, anApplicant('a/2')), false);
  });
});

describe('no session is admitted', () => {
  test('before the leader may', () => {
    const { ledger, told } = setUp({ closed: true });
    ledger.wait(anApplicant('a/1'));
    assert.equal(whyNot(ledger, anApplicant('a/1')).waiting, 'CapacityUnknown');
    assert.equal(ledger.reserve(anApplicant('a/1'), 'pod-1'), false);
    ledger.open();
    assert.deepEqual(told, ['a/1']);
    assert.equal(ledger.reserve(anApplicant('a/1'), 'pod-1'), true);
  });
  test('while the caches have not heard from the API server for long', () => {
    const { ledger, caches } = setUp();
    caches.staleMs = 200_000;
    assert.equal(whyNot(ledger, anApplicant('a/1')).waiting, 'CapacityUnknown');
    caches.staleMs = Number.POSITIVE_INFINITY;
    assert.equal(ledger.reserve(anApplicant('a/1'), 'pod-1'), false);
  });
  test('of a class that cannot be read, or that limits by unknown labels', () => {
    const { ledger, caches } = setUp();
    assert.equal(whyNot(ledger, anApplicant('a/1', { class: 'missing' })).waiting, 'CapacityUnknown');
    caches.setClass('labelled', { limits: { namespaces: [{ selector: {}, maxRunning: 1 }] } });
    assert.equal(whyNot(ledger, anApplicant('a/1', { class: 'labelled' })).waiting, 'CapacityUnknown');
    caches.labels.set('a', {});
    assert.equal(available(ledger, anApplicant('a/1', { class: 'labelled' })), true);
  });
  test('of a class that limits by labels that are not known at the moment, and is told within seconds that they are', async () => {
    const { ledger, caches, told, clock } = setUp({ max: 1 });
    caches.setClass('labelled', { limits: { namespaces: [{ selector: {}, maxRunning: 1 }] } });
    const applicant = anApplicant('a/1', { class: 'labelled' });
    ledger.wait(applicant);
    await clock.advance(60_000);
    assert.deepEqual(told, []);
    caches.labels.set('a', {});
    await clock.advance(5_000);
    assert.deepEqual(told, ['a/1']);
    assert.equal(ledger.reserve(applicant, 'pod-1'), true);
    await clock.advance(60_000);
    assert.deepEqual([told.length, clock.pending], [1, 0], 'nothing more is looked at');
  });
  test('when the leader may no longer, and nothing that was unknown is looked at again', async () => {
    for (const staleMs of [0, 200_000]) {
      const { ledger, caches, told, clock } = setUp();
      caches.staleMs = staleMs;
      caches.setClass('labelled', { limits: { namespaces: [{ selector: {}, maxRunning: 1 }] } });
      ledger.wait(anApplicant('a/1', { class: 'labelled' }));
      assert.notEqual(clock.pending, 0);
      ledger.close();
      assert.equal(clock.pending, 0);
      caches.staleMs = 0;
      caches.labels.set('a', {});
      await clock.advance(60_000);
      assert.deepEqual(told, []);
    }
  });
  test('in a namespace that cannot be read; those in others are admitted beside what it last held', () => {
    const { caches, ledger, told, see } = setUp({ max: 2 });
    see.admitted('lost/a', 's-a-1');
    caches.unread.set('lost', 'pods is forbidden');
    ledger.vacancy();
    ledger.wait(anApplicant('lost/b'));
    const { waiting, message } = whyNot(ledger, anApplicant('lost/b'));
    assert.equal(waiting, 'CapacityUnknown');
    assert.match(message, /^Namespace "lost" cannot be read, so the session waits: pods is forbidden\. /);
    assert.ok(ledger.reserve(anApplicant('team/c'), 's-c-1'), 'it does not wait behind those of the other');
    assert.equal(whyNot(ledger, anApplicant('team/d')).waiting, 'AtCapacity', 'what was seen there holds its place');
    see.admitted('lost/a', undefined);
    caches.unread.delete('lost');
    told.length = 0;
    ledger.vacancy();
    assert.deepEqual(told, ['lost/b']);
  });
  test('where the limit is 0', () => {
    const { ledger } = setUp({ max: 0 });
    assert.equal(
      whyNot(ledger, anApplicant('a/1')).message,
      'There are no running slots of the installation: the limit is 0.',
    );
  });
  test('where a limit was lowered below the running sessions, until they have drained', () => {
    const { ledger, caches, see } = setUp();
    caches.setClass('narrow', { limits: { maxRunning: 3 } });
    for (const n of [1, 2, 3]) see.admitted(`a/${n}`, `pod-${n}`, 'narrow');
    caches.setClass('narrow', { limits: { maxRunning: 1 } });
    ledger.vacancy();
    const applicant = anApplicant('a/4', { class: 'narrow' });
    assert.match(whyNot(ledger, applicant).message, /^3 are taken of the 1 running slots of class "narrow", held by/);
    see.admitted('a/1', undefined, 'narrow');
    see.admitted('a/2', undefined, 'narrow');
    assert.equal(available(ledger, applicant), false);
    see.admitted('a/3', undefined, 'narrow');
    assert.equal(available(ledger, applicant), true);
  });
});

describe('a waiting session', () => {
  test('is told its position, what blocks it, and who has held the slots longest', () => {
    const { ledger, see, caches } = setUp({ max: 4 });
    for (const n of [1, 2, 3, 4]) see.admitted(`a/${n}`, `pod-${n}`);
    for (const n of [1, 2, 3, 4]) {
      const at = new Date(Date.UTC(2026, 0, 5 - n)).toISOString();
      const admitted = {
        type: 'Admitted',
        status: 'True',
        reason: 'Admitted',
        message: '',
        lastTransitionTime: at,
      } as const;
      caches.add(`a/${n}`, { status: { podName: `pod-${n}`, conditions: [admitted] } });
      ledger.sessionChanged(`a/${n}`);
    }
    ledger.wait(anApplicant('b/1'));
    const place = whyNot(ledger, anApplicant('b/2', { since: 1 }));
    assert.equal(place.position, 2);
    assert.deepEqual(
      place.holders?.map(({ name }) => name),
      ['a/4', 'a/3', 'a/2'],
    );
    assert.equal(
      place.message,
      'All 4 running slots of the installation are taken, held by a/4 (since 2026-01-01T00:00:00.000Z), a/3 (since 2026-01-02T00:00:00.000Z), a/2 (since 2026-01-03T00:00:00.000Z) and 1 more.',
    );
  });
  test('waits behind those that the free slots are for, and not behind those that only their class holds back', () => {
    const { ledger, see, caches } = setUp({ max: 2 });
    caches.setClass('narrow', { limits: { maxRunning: 0 } });
    see.admitted('a/x', 'pod-x');
    see.admitted('a/y', 'pod-y');
    ledger.wait(anApplicant('a/blocked', { class: 'narrow', priority: 9 }));
    ledger.wait(anApplicant('a/first', { since: 1 }));
    ledger.wait(anApplicant('a/second', { since: 2 }));
    see.admitted('a/x', undefined);
    assert.equal(available(ledger, anApplicant('a/first', { since: 1 })), true);
    assert.equal(available(ledger, anApplicant('a/second', { since: 2 })), false);
    assert.equal(available(ledger, anApplicant('b/new')), false, 'the place is for the one that was there');
    see.admitted('a/y', undefined);
    assert.equal(available(ledger, anApplicant('a/second', { since: 2 })), true);
    ledger.wait(anApplicant('b/new'));
    assert.equal(
      available(ledger, anApplicant('a/second', { since: 2 })),
      false,
      'it is the turn of the other namespace',
    );
  });
  test('keeps its queue position when the leader changes', () => {
    const queue = { since: '2026-01-01T00:00:00Z', reason: 'AtCapacity' };
    const { ledger } = setUp({
      max: 1,
      before: (caches) => caches.add('a/old', { status: { queue, incarnation: 0 } }),
    });
    assert.equal(ledger.reserve(anApplicant('a/new', { since: Date.parse('2026-01-02T00:00:00Z') }), 'pod-n'), false);
    assert.equal(ledger.reserve(anApplicant('a/old', { since: Date.parse(queue.since) }), 'pod-o'), true);
  });
  test('loses the slot that was free for it to a holder without a reservation, and others before it do not', () => {
    const { ledger, see } = setUp({ max: 2 });
    ledger.wait(anApplicant('a/1', { since: 1 }));
    ledger.wait(anApplicant('a/2', { since: 2 }));
    assert.equal(available(ledger, anApplicant('a/2', { since: 2 })), true);
    see.pod('b', 'stray');
    assert.equal(available(ledger, anApplicant('a/2', { since: 2 })), false);
    assert.equal(available(ledger, anApplicant('a/1', { since: 1 })), true);
  });
  test('counts in its group while its turn may have begun', async () => {
    const { ledger, caches, clock, told } = setUp();
    for (const name of ['1', '2']) {
      caches.add(`a/${name}`, { spec: { concurrencyGroup: { name: 'g', limit: 1 } } });
      ledger.sessionChanged(`a/${name}`);
    }
    ledger.groups.reserve('a/1');
    ledger.groups.confirmLater('a/1');
    ledger.groups.leave('a/1');
    assert.equal(ledger.groups.view('a/2', 0).free, false);
    await clock.advance(7_000);
    assert.deepEqual(told, ['a/1'], 'it is looked at, to say whether it still wants it');
    ledger.groups.leave('a/1');
    assert.equal(ledger.groups.view('a/2', 0).free, true);
  });
});

test('no limit is ever exceeded in any order of events, and the counts equal those of a new leader', () => {
  const NAMESPACES = ['a', 'b'];
  const CLASSES = ['wide', 'narrow', 'labelled'];
  const step = fc.record({
    what: fc.constantFrom('want', 'reserve', 'write', 'lose', 'pod', 'gone', 'release', 'delete', 'lower'),
    who: fc.integer({ min: 0, max: 11 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const limits = { installation: 5, narrow: 2, labelled: 1 };
      const { ledger, caches, see } = setUp({ max: limits.installation });
      const define = () => {
        caches.setClass('wide', {});
        caches.setClass('narrow', { limits: { maxRunning: limits.narrow } });
        caches.setClass('labelled', { limits: { namespaces: [{ selector: {}, maxRunning: limits.labelled }] } });
      };
      define();
      for (const namespace of NAMESPACES) caches.labels.set(namespace, {});
      /** Session → what there really is of it: admitted by a write, and a pod, perhaps not seen. */
      const state = Array.from({ length: 12 }, (_, n) => ({
        applicant: anApplicant(`${NAMESPACES[n % 2]}/${n}`, { class: CLASSES[n % 3] as string, since: n }),
        pod: `pod-${n}`,
        promised: false,
        admitted: false,
        exists: false,
      }));
      const taken = (of: (one: (typeof state)[number]) => boolean) =>
        state.filter((one) => (one.promised || one.admitted || one.exists) && of(one)).length;
      for (const { what, who: n } of steps) {
        const one = state[n] as (typeof state)[number];
        const { applicant, pod } = one;
        const { key, namespace } = applicant;
        if (what === 'want' && !one.admitted && !one.promised) ledger.wait(applicant);
        if (what === 'reserve' && !one.admitted && !one.promised && !one.exists && ledger.reserve(applicant, pod)) {
          one.promised = true;
          assert.ok(taken(() => true) <= limits.installation);
          assert.ok(
            applicant.class !== 'narrow' || taken((other) => other.applicant.class === 'narrow') <= limits.narrow,
          );
          const same = (other: typeof one) =>
            other.applicant.class === 'labelled' && other.applicant.namespace === namespace;
          assert.ok(applicant.class !== 'labelled' || taken(same) <= limits.labelled);
        }
        if (what === 'write' && one.promised) {
          one.admitted = true;
          see.admitted(key, pod, applicant.class);
          one.promised = false;
          ledger.reservations.confirm(namespace, pod);
        }
        if (what === 'lose' && one.promised) {
          one.promised = false;
          ledger.reservations.confirm(namespace, pod);
        }
        if (what === 'pod' && one.admitted) {
          one.exists = true;
          see.pod(namespace, pod, { class: applicant.class });
        }
        if (what === 'gone' && one.exists) {
          one.exists = false;
          see.gone(namespace, pod);
        }
        if (what === 'release' && one.admitted) {
          one.admitted = false;
          see.admitted(key, undefined, applicant.class);
        }
        if (what === 'delete' && one.admitted) {
          one.admitted = false;
          see.deleted(key);
        }
        if (what === 'lower') {
          limits.narrow = n % 3;
          define();
          ledger.vacancy();
        }
        // A new leader, with nothing but what is seen, counts the same, beside what only was promised.
        const promised = state.filter((other) => other.promised && !other.admitted && !other.exists).length;
        if (promised === 0) {
          const successor = new Ledger({
            caches,
            clock: new VirtualClock(),
            maxRunning: limits.installation,
            epoch: () => 7,
            suspendAgainAt: () => undefined,
            onChange: () => undefined,
          });
          successor.open();
          for (const { applicant: other } of state) {
            const [ours, theirs] = [ledger.assess(other, 'next'), successor.assess(other, 'next')];
            const full = (place: typeof ours) => typeof place === 'object' && place.message.includes('taken');
            assert.equal(full(ours), full(theirs), `${other.key}: ${JSON.stringify([ours, theirs])}`);
          }
        }
      }
    }),
    { numRuns: 200 },
  );
});
