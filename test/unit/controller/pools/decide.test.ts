import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decidePool, LEAST_STARTING, startsAfter } from '../../../../controller/pools/decide.ts';
import type { PoolPod, PoolWorld } from '../../../../controller/pools/pool-world.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import type { StoredSessionPool } from '../../../../core/resources/kinds.ts';
import { aLink, aPod, NOW } from '../../../support/world.ts';

const HASH = '0123456789abcdef';
const MINUTE = 60_000;
let number = 0;

function aPool(replicas: number): StoredSessionPool {
  const metadata = {
    name: 'default',
    namespace: 'team',
    uid: 'pool',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '',
  };
  return { metadata, spec: { class: 'default', replicas } } as StoredSessionPool;
}

/** A pod of the pool, ready unless said otherwise. */
function aPoolPod(
  change: Partial<PoolPod> & { age?: number; hash?: string; starting?: true; ended?: true } = {},
): PoolPod {
  const { age = 60, hash = HASH, starting, ended, ...rest } = change;
  const status = { phase: ended ? 'Failed' : 'Running' } as const;
  const pod = aPod({ name: `p-${++number}`, uid: `u-${number}`, age, status });
  pod.metadata.labels = { 'berth.dev/template': hash, 'berth.dev/session-uid': '' };
  const link = starting ? undefined : aLink({ podUID: pod.metadata.uid, phase: 'Unbound', protocol: PROTOCOL_VERSION });
  return { pod, link, node: undefined, taken: false, isGivenUp: false, ...rest };
}

/** A pod of the pool that finds no node. */
function homeless(): PoolPod {
  const one = aPoolPod({ starting: true });
  one.pod.spec = { containers: [] };
  const scheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no room' } as const;
  one.pod.status = { phase: 'Pending', conditions: [scheduled] };
  return one;
}

const aPoolWorld = (replicas: number, pods: PoolPod[], change: Partial<PoolWorld> = {}): PoolWorld => ({
  now: NOW,
  monotonic: NOW,
  clockJumps: [],
  pool: aPool(replicas),
  template: { hash: HASH },
  pods,
  claimableBefore: new Set(),
  room: { free: true },
  most: undefined,
  cpus: 0,
  blocked: undefined,
  gaveWayAt: Number.NEGATIVE_INFINITY,
  starts: undefined,
  failures: undefined,
  counts: { claimed: 0, missed: 0 },
  protocol: PROTOCOL_VERSION,
  nodeGraceMs: 60_000,
  ...change,
});

const decided = (...world: Parameters<typeof aPoolWorld>) => {
  const { create, remove, status, ...rest } = decidePool(aPoolWorld(...world));
  const [ready] = status.conditions ?? [];
  return {
    create,
    removed: remove.map(({ pod }) => pod.metadata.name),
    status,
    reason: ready?.reason,
    message: ready?.message ?? '',
    ...rest,
  };
};
const names = (...pods: PoolPod[]) => pods.map(({ pod }) => pod.metadata.name);

describe('a pool', () => {
  test('has the sessions that wait look at each of its pods once when it starts, and once when it has answered', () => {
    const starting = aPoolPod({ starting: true });
    const first = decided(1, [starting]);
    assert.equal(first.offers, true);
    const second = decided(1, [starting], { claimableBefore: first.claimable });
    assert.equal(second.offers, false);
    const { link } = aPoolPod();
    const answered = decided(1, [{ ...starting, link }], { claimableBefore: second.claimable });
    assert.equal(answered.offers, true);
    assert.equal(decided(1, [{ ...starting, link }], { claimableBefore: answered.claimable }).offers, false);
    assert.equal(decided(1, [aPoolPod({ taken: true })]).offers, false, 'a session is about to claim it');
  });
  test('is filled with as many pods at a time as may start together', () => {
    assert.equal(decided(2, []).create, 2);
    assert.equal(decided(30, []).create, LEAST_STARTING);
    assert.equal(decided(30, [aPoolPod({ starting: true }), aPoolPod()]).create, LEAST_STARTING - 1);
    assert.equal(decided(30, [aPoolPod({ starting: true })], { cpus: 16.5 }).create, 15, 'one for each CPU');
    assert.equal(decided(30, [], { cpus: 2 }).create, LEAST_STARTING, 'in a small cluster');
    assert.equal(decided(90, [], { cpus: 640 }).create, 32, 'in a large one');
    assert.equal(decided(90, [homeless()], { cpus: 640 }).create, LEAST_STARTING - 1, 'while one finds no node');
  });
  test('waits for the sessions of every burst, however long ago the one before was', () => {
    const burst = startsAfter(startsAfter(undefined, 1_000), 3_000);
    assert.deepEqual(burst, { firstAt: 1_000, lastAt: 3_000 });
    assert.deepEqual(startsAfter(burst, 5_001), { firstAt: 5_001, lastAt: 5_001 });
  });
  test('gives up all pods that find no node for a session that finds none, and one more', () => {
    const blocked = { session: 'team/own', reason: 'Unschedulable' } as const;
    const [one, another, ready] = [homeless(), homeless(), aPoolPod()];
    assert.deepEqual(decided(3, [one, ready, another], { blocked }).removed, names(one, another, ready));
    const quota = { session: 'team/own', reason: 'QuotaExceeded' } as const;
    assert.deepEqual(decided(3, [one, ready, another], { blocked: quota }).removed, names(one));
  });
  test('is filled once no session starts, so that its pods take no CPU from starts and turns that have just begun, and within two seconds', () => {
    const after = (firstMs: number, lastMs: number) => {
      const { create, wakeAt } = decided(2, [], { starts: { firstAt: NOW - firstMs, lastAt: NOW - lastMs } });
      return [create, wakeAt - NOW];
    };
    assert.deepEqual(after(50, 50), [0, 150]);
    assert.deepEqual(after(1_900, 10), [0, 100]);
    assert.equal(after(1_000, 200)[0], 2);
    assert.equal(after(2_000, 10)[0], 2);
  });
  test('with all its pods ready says so, and tells its claims and misses', () => {
    const { create, reason, status } = decided(1, [aPoolPod()], { counts: { claimed: 3, missed: 1 } });
    assert.deepEqual([create, reason, status.ready, status.replicas], [0, 'PoolFull', 1, 1]);
    assert.deepEqual([status.claimed, status.missed], [3, 1]);
    assert.equal(status.selector, 'berth.dev/pool=default,berth.dev/session-uid=');
  });
  test('that asks for fewer pods gives up starting ones first, and none that a session is about to have', () => {
    const [ready, starting, taken] = [aPoolPod(), aPoolPod({ starting: true }), aPoolPod({ taken: true })];
    assert.deepEqual(decided(1, [ready, starting, taken]).removed, names(starting));
    assert.deepEqual(decided(0, [ready, starting, taken]).removed.sort(), names(ready, starting).sort());
  });
  test('takes no slot that a session waits for, and gives up the pod that is chosen for it', () => {
    const waited = { free: false, why: 'Waited', message: 'Session team/a waits for a slot.' } as const;
    const { create, reason } = decided(2, [aPoolPod()], { room: waited });
    assert.deepEqual([create, reason], [0, 'PoolGivesWay']);
    const chosen = aPoolPod({ isGivenUp: true });
    assert.deepEqual(decided(2, [aPoolPod(), chosen]).removed, names(chosen));
  });
  test('gives way to a session that waits for quota or a node, one pod at a time', () => {
    const blocked = { session: 'team/a', reason: 'QuotaExceeded' } as const;
    const first = decided(2, [aPoolPod(), aPoolPod()], { blocked });
    assert.deepEqual([first.removed.length, first.create, first.gaveWay], [1, 0, true]);
    const next = decided(2, [aPoolPod(), aPoolPod()], { blocked, gaveWayAt: NOW - 1000 });
    assert.deepEqual([next.removed.length, next.create], [0, 0]);
    assert.equal(next.wakeAt, NOW + 4000);
  });
  test('of more pods than there can be slots says how many there are and what to do', () => {
    const room = { free: false, why: 'Full', message: 'full' } as const;
    const { reason, message, create } = decided(9, [aPoolPod()], { most: 4, room });
    assert.deepEqual([reason, create], ['PoolTooLarge', 0]);
    assert.match(message, /spec\.replicas is 9.*at most 4 running slots.*lower spec\.replicas, or raise the limit/);
  });
  test('of a class that can have no pool shows why, and keeps no pods', () => {
    const template = { reason: 'ClassNotFound', message: 'there is no SessionClass' } as const;
    const [pod] = [aPoolPod()];
    const { removed, reason, create } = decided(1, [pod], { template });
    assert.deepEqual([removed, reason, create], [names(pod), 'ClassNotFound', 0]);
  });
});

test('a pool whose pods start says how many are ready', () => {
  const { reason, message } = decided(2, [aPoolPod(), aPoolPod({ starting: true })]);
  assert.deepEqual([reason, message], ['PoolFilling', '1 of 2 pods are ready.']);
});

test('a pod that waits for its image is kept for ten minutes, and one whose image has no such name is given up at once', () => {
  const waits = (reason: string) => {
    const one = aPoolPod({ starting: true });
    const state = { waiting: { reason, message: 'no' } };
    const containerStatuses = [{ name: 'session', ready: false, restartCount: 0, state }];
    return { ...one, pod: { ...one.pod, status: { phase: 'Pending' as const, containerStatuses } } };
  };
  assert.deepEqual(decided(1, [waits('ErrImagePull')]).removed, []);
  const hopeless = waits('InvalidImageName');
  assert.deepEqual(decided(1, [hopeless]).removed, names(hopeless));
});

describe('pods of an old template', () => {
  test('are replaced, and the last ready one goes only when another is ready', () => {
    const old = aPoolPod({ hash: 'other' });
    const first = decided(1, [old]);
    assert.deepEqual([first.create, first.removed, first.reason], [1, [], 'PoolOutdated']);
    assert.deepEqual(decided(1, [old, aPoolPod({ starting: true })]).removed, []);
    assert.deepEqual(decided(1, [old, aPoolPod()]).removed, names(old));
  });
  test('make room for their replacements where no slot is free: no session can claim them', () => {
    const old = aPoolPod({ hash: 'other' });
    const room = { free: false, why: 'Full', message: 'full' } as const;
    assert.deepEqual(decided(1, [old], { room }).removed, names(old));
  });
  test('by age can still be claimed until they are replaced', () => {
    const aged = aPoolPod({ age: 55 * 60 });
    const { create, removed, status } = decided(1, [aged]);
    assert.deepEqual([create, removed, status.ready], [1, [], 1]);
    assert.equal(decided(1, [aPoolPod({ age: 61 * 60 })]).status.ready, 0);
  });
  test('on a cordoned node are replaced on another', () => {
    const cordoned = aPoolPod({ node: { cordoned: true, ready: true } });
    assert.deepEqual([decided(1, [cordoned]).create, decided(1, [cordoned, aPoolPod()]).removed], [1, names(cordoned)]);
  });
});

describe('pods that do not start', () => {
  test('are deleted, tried again after growing pauses, and told of in the condition', () => {
    const broken = aPoolPod({ ended: true });
    const first = decided(1, [broken]);
    assert.deepEqual([first.removed, first.create, first.reason], [names(broken), 0, 'PoolPodsFail']);
    assert.match(first.message, /ended before a session claimed it/);
    assert.equal(first.failures?.againAt, NOW + 1000);
    const second = decided(1, [aPoolPod({ ended: true })], { failures: first.failures });
    assert.equal(second.failures?.againAt, NOW + 2000);
    assert.equal(decided(1, [], { failures: second.failures }).create, 0);
    assert.equal(decided(1, [], { failures: second.failures, now: NOW + 2 * MINUTE }).create, 1);
    assert.equal(decided(1, [aPoolPod()], { failures: second.failures }).failures, undefined);
  });
  test('beside others that are ready are tried again after growing pauses too, and no longer once one has started since', () => {
    const ready = aPoolPod();
    let failures: PoolWorld['failures'];
    for (const count of [1, 2, 3]) {
      failures = decided(2, [ready, aPoolPod({ ended: true })], { failures }).failures;
      assert.equal(failures?.count, count);
      const after = decided(2, [ready], { failures });
      assert.deepEqual([after.create, after.failures, after.reason], [0, failures, 'PoolPodsFail']);
    }
    const now = NOW + MINUTE;
    assert.equal(decided(2, [ready], { failures, now }).create, 1);
    const since = aPoolPod({ age: -30 });
    assert.equal(decided(3, [ready, since], { failures, now }).failures, undefined);
    assert.equal(decided(1, [ready], { failures }).failures, undefined, 'nothing is missing any more');
  });
  test('whose runner does not answer are replaced', () => {
    const silent = aPoolPod();
    const link = { ...silent.link, silentSince: NOW - 30_000 } as PoolPod['link'];
    assert.deepEqual(decided(1, [{ ...silent, link }]).removed, names(silent));
  });
  test('whose runner does not answer while none of its node does are replaced after BERTH_NODE_GRACE', () => {
    const silent = aPoolPod();
    const removed = (ms: number) => {
      const link = { ...silent.link, silentSince: NOW - ms, nodeSilent: true } as PoolPod['link'];
      return decided(1, [{ ...silent, link }]).removed;
    };
    assert.deepEqual([removed(59_000), removed(60_000)], [[], names(silent)]);
  });
  test('are not those that have, and whose runner owes an answer or cannot be attached for a moment', () => {
    for (const [silence, again] of [
      [{ silentSince: NOW - 1_000 }, 1_000],
      [{ unreachableMs: 1_500 }, Number.POSITIVE_INFINITY],
    ] as const) {
      for (const minutes of [9, 11]) {
        const one = aPoolPod({ age: minutes * 60 });
        const link = { ...one.link, ...silence } as PoolPod['link'];
        const { removed, wakeAt, status } = decided(1, [{ ...one, link }]);
        assert.deepEqual([removed, status.ready, wakeAt - NOW], [[], 0, Math.min(again, (50 - minutes) * MINUTE)]);
        assert.equal(decided(30, [{ ...one, link }]).create, LEAST_STARTING, 'it is not starting');
      }
    }
  });
  test('are not those whose runner has just been asked: the pool is full, and looks again for the answer', () => {
    const one = aPoolPod();
    const link = { ...one.link, silentSince: NOW - 999 } as PoolPod['link'];
    const { removed, reason, wakeAt, status } = decided(1, [{ ...one, link }]);
    assert.deepEqual([removed, status.ready, reason, wakeAt - NOW], [[], 1, 'PoolFull', 1_000]);
  });
  test('are replaced after ten minutes', () => {
    assert.equal(decided(1, [aPoolPod({ starting: true, age: 599 })]).wakeAt, NOW + 1_000);
    const late = aPoolPod({ starting: true, age: 600 });
    const { removed, message } = decided(1, [late]);
    assert.deepEqual(removed, names(late));
    assert.match(message, /did not start within 10 minutes/);
  });
  test('have not had the time in which all machines slept', () => {
    const slow = aPoolPod({ starting: true, age: 40 * 60 });
    slow.pod.status = { phase: 'Pending' };
    const clockJumps = [{ until: NOW - 15 * MINUTE, ms: 30 * MINUTE + 1000 }];
    assert.deepEqual([decided(1, [slow], { clockJumps }).removed, decided(1, [slow]).removed], [[], names(slow)]);
  });
  test('are told from those that run and are asked by a new leader, which have time to answer', () => {
    const ran = aPoolPod({ age: 20 * 60 });
    const state = { running: { startedAt: '2026-01-01T00:00:00Z' } };
    const containerStatuses = [{ name: 'session', ready: true, restartCount: 0, state }];
    const pod = { ...ran.pod, status: { phase: 'Running' as const, containerStatuses } };
    const asked = (ms: number) => ({ ...ran, pod, link: aLink({ phase: 'Opening', openedAt: NOW - ms }) });
    const { removed, wakeAt } = decided(1, [asked(29_000)]);
    assert.deepEqual([removed, wakeAt - NOW], [[], 1_000]);
    assert.deepEqual(decided(1, [asked(30_000)]).removed, names(ran));
    assert.deepEqual(decided(1, [{ ...asked(0), pod: ran.pod }]).removed, names(ran), 'it does not run');
  });
});
