import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Ledger } from '../../../../controller/capacity/ledger.ts';
import { ownedBy } from '../../../../core/resources/kinds.ts';
import { poolPodName } from '../../../../core/resources/names.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aTurn } from '../../../support/world.ts';

/** A queue of team/w behind one running slot, which team/guest holds. */
function setUp({ max = 1 } = {}) {
  const caches = new SeenCluster();
  const clock = new VirtualClock();
  const told: string[] = [];
  const memory = new Map<string, number>();
  const ledger = new Ledger({
    caches,
    clock,
    maxRunning: max,
    epoch: () => 7,
    suspendAgainAt: (key) => memory.get(key),
    onChange: (key) => told.push(key),
  });
  const at = (msAgo: number) => new Date(clock.now() - msAgo).toISOString();
  const guest = (change: { idleMs?: number; phase?: 'Ready' | 'Suspending' | 'Starting'; state?: boolean } = {}) => {
    const { idleMs = 60_000, phase = 'Ready', state = true } = change;
    const ready = { type: 'Ready', status: phase === 'Ready' ? 'True' : 'False', reason: phase, message: '' } as const;
    caches.add('team/guest', {
      spec: { persistence: { state } },
      status: {
        podName: 'pod-g',
        incarnation: 1,
        phase,
        lastActiveAt: at(idleMs),
        conditions: [{ ...ready, lastTransitionTime: at(0) }],
      },
    });
    ledger.sessionChanged('team/guest');
  };
  const pod = (deleting = false) => ledger.podChanged(caches.addPod('team', 'pod-g', { deleting }), false);
  const turn = (status: TurnStatus) => {
    const session = caches.sessions.get('team/guest');
    caches.turns.push(aTurn({ owner: session?.metadata.uid ?? '', spec: { session: 'guest' }, status }));
    ledger.sessionChanged('team/guest');
  };
  guest();
  pod();
  ledger.open();
  const wait = () =>
    ledger.wait({ key: 'team/w', namespace: 'team', class: 'default', priority: 0, since: clock.now() });
  return { caches, clock, ledger, told, memory, guest, pod, turn, wait, at };
}
const GIVES = { for: 'team/w' };

describe('a session at capacity', () => {
  test('is preempted although a pod of a pool could go, where that is in a namespace that cannot be read', async () => {
    for (const [error, preempted] of [
      [undefined, undefined],
      ['pods is forbidden', GIVES],
    ] as const) {
      const { caches, ledger, clock, wait } = setUp({ max: 2 });
      const uid = '00000000-0000-4000-8000-00000000000a';
      const pod = caches.addPod('lost', poolPodName(uid, 0));
      pod.metadata.labels = { 'berth.dev/session-uid': '', 'berth.dev/pool-uid': uid, 'berth.dev/class': 'default' };
      pod.metadata.ownerReferences = [ownedBy({ metadata: { name: 'default', uid } }, 'SessionPool')];
      ledger.podChanged(pod, false);
      if (error) caches.unread.set('lost', error);
      wait();
      await clock.advance(1_000);
      assert.deepEqual(ledger.preemptFor('team/guest'), preempted);
    }
  });
  test('is preempted when another session waits, and is told so', async () => {
    const { ledger, clock, wait, told } = setUp();
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    wait();
    await clock.advance(1_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
    assert.deepEqual(told, ['team/guest']);
  });
  test('is preempted for a session that joined the queue while the caches were not heard of, once they are', async () => {
    const { ledger, clock, wait, caches, told } = setUp();
    caches.staleMs = 200_000;
    wait();
    await clock.advance(10_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    caches.staleMs = 0;
    await clock.advance(5_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
    assert.deepEqual(told, ['team/guest']);
  });
  test('stays where its namespace cannot be read, because it could not be told', async () => {
    const { ledger, clock, caches } = setUp();
    caches.unread.set('team', 'pods is forbidden');
    ledger.wait({ key: 'other/w', namespace: 'other', class: 'default', priority: 0, since: clock.now() });
    await clock.advance(1_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    caches.unread.clear();
    await clock.advance(1_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), { for: 'other/w' });
  });
  test('stays when no session waits any more, and is told so', async () => {
    const { ledger, clock, wait, told } = setUp();
    wait();
    await clock.advance(1_000);
    told.length = 0;
    ledger.leave('team/w');
    await clock.advance(2_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    assert.deepEqual(told, ['team/guest']);
    assert.equal(clock.pending, 0, 'nothing more is looked at');
  });
  for (const [why, spoil] of [
    ['was just active', (all: ReturnType<typeof setUp>) => all.guest({ idleMs: 5_000 })],
    ['has just been made and is not ready', (all: ReturnType<typeof setUp>) => all.guest({ phase: 'Starting' })],
    ['has no state that is stored', (all: ReturnType<typeof setUp>) => all.guest({ state: false })],
    ['has a turn that runs', (all: ReturnType<typeof setUp>) => all.turn({ phase: 'Running', index: 1 })],
    ['has a turn that waits', (all: ReturnType<typeof setUp>) => all.turn({ phase: 'Queued', index: 1 })],
    ['has a turn that is not even seen yet', (all: ReturnType<typeof setUp>) => all.turn({})],
    [
      'could not be suspended a moment ago',
      (all: ReturnType<typeof setUp>) => all.memory.set('team/guest', all.clock.now() + 60_000),
    ],
    ['is one that its class keeps', (all: ReturnType<typeof setUp>) => all.caches.setClass('default', { minIdle: 1 })],
  ] as const) {
    test(`stays when it ${why}`, async () => {
      const all = setUp();
      spoil(all);
      all.wait();
      await all.clock.advance(1_000);
      assert.equal(all.ledger.preemptFor('team/guest'), undefined);
    });
  }
  test('stays while a slot is about to become free anyway, and is preempted when that takes too long', async () => {
    const { ledger, clock, wait, caches } = setUp({ max: 2 });
    const pod = caches.addPod('team', 'pod-other', { deleting: true });
    pod.metadata.deletionTimestamp = new Date(clock.now() + 10_000).toISOString();
    ledger.podChanged(pod, false);
    wait();
    await clock.advance(39_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    await clock.advance(3_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
  });
  test('is preempted once it has not been active for some seconds', async () => {
    const { ledger, clock, guest, wait } = setUp();
    guest({ idleMs: 5_000 });
    wait();
    await clock.advance(4_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    await clock.advance(3_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
  });
  test.each(['GroupLimit', 'StoreShareUsed'])(
    'is preempted while its next turn waits for %s, as it could not use its slot',
    async (reason) => {
      const { ledger, clock, turn, wait, at, caches } = setUp();
      caches.setClass('default', { minIdle: 1 });
      const shown = { type: 'Finished', status: 'False', reason, message: '' } as const;
      turn({ phase: 'Queued', index: 1, conditions: [{ ...shown, lastTransitionTime: at(5_000) }] });
      wait();
      await clock.advance(4_000);
      assert.equal(ledger.preemptFor('team/guest'), undefined, 'it has just begun to wait');
      await clock.advance(3_000);
      assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
    },
  );
  test('is preempted during a wait for an approval after the window of its class', async () => {
    const { ledger, clock, turn, wait, caches, at } = setUp();
    caches.setClass('default', { approvalWindow: '10m' });
    const approval = { id: 'r', prompt: '?', since: at(9 * 60_000) };
    turn({ phase: 'AwaitingApproval', index: 1, approval } as TurnStatus);
    wait();
    await clock.advance(30_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    await clock.advance(40_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
  });
  test('stays preempted until it has released its pod, and no other is preempted instead', async () => {
    const { ledger, clock, guest, pod, wait, caches, told } = setUp();
    wait();
    await clock.advance(1_000);
    guest({ phase: 'Suspending' });
    await clock.advance(60_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES, 'it takes its time');
    pod(true);
    await clock.advance(2_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES);
    told.length = 0;
    caches.add('team/guest', { status: { incarnation: 1 } });
    ledger.sessionChanged('team/guest');
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    const [gone] = caches.allPods();
    caches.pods.clear();
    if (gone) ledger.podChanged(gone, true);
    assert.deepEqual(told, ['team/w']);
  });
  test('is not preempted again for a while when its suspension fails', async () => {
    const { ledger, clock, wait } = setUp();
    wait();
    await clock.advance(1_000);
    await clock.advance(31_000);
    assert.equal(ledger.preemptFor('team/guest'), undefined);
    await clock.advance(62_000);
    assert.deepEqual(ledger.preemptFor('team/guest'), GIVES, 'then it is asked again');
  });
  test('is not preempted again in its next incarnation', async () => {
    const { ledger, clock, wait, caches } = setUp();
    wait();
    await clock.advance(1_000);
    caches.add('team/guest', { status: { podName: 'pod-next', incarnation: 2 } });
    ledger.sessionChanged('team/guest');
    assert.equal(ledger.preemptFor('team/guest'), undefined);
  });
});

test('the pause between two plans counts from the end of a plan, however long it takes', async () => {
  const { caches, clock, ledger, wait } = setUp();
  const plans: number[] = [];
  const { allSessions } = caches;
  let tookMs = 0;
  const monotonic = clock.monotonic.bind(clock);
  clock.monotonic = () => monotonic() + tookMs;
  caches.allSessions = () => {
    plans.push(clock.monotonic());
    tookMs += 900;
    return allSessions.call(caches);
  };
  wait();
  await clock.advance(3_500);
  ledger.close();
  assert.ok(plans.length >= 3, `${plans.length} plans`);
  for (const [i, at] of plans.slice(1).entries()) assert.ok(at - (plans[i] as number) >= 1_900, plans.join());
});
