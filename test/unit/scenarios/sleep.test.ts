import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../controller/decide/decide.ts';
import { approvals, sessions, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { create } from '../../sim/users/writes.ts';
import { QuietWorld, type QuietWorldOptions } from '../../support/quiet-world.ts';
import {
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
  written,
} from '../../support/world.ts';

const SLEEP_MS = 45 * 60_000;

async function aWorldThat(options: QuietWorldOptions = {}) {
  const world = new QuietWorld(options);
  await world.start();
  const status = (turn: string) => world.server.get(turns, 'team', turn)?.status;
  return {
    world,
    status,
    ended: async (turn: string) => {
      await world.until(`the end of ${turn}`, () => isTerminal(status(turn)?.phase));
      return status(turn)?.phase;
    },
  };
}

describe('while all machines sleep', () => {
  test('a turn that runs has no time to run: it is not ended for its timeout', async () => {
    const { world, ended } = await aWorldThat();
    await world.session('notes', { timeouts: { turn: '10m' } });
    await world.give('long', { ms: 60_000, output: 10 }, 'notes');
    await world.pass(20_000);
    world.sleep(SLEEP_MS);
    // Has the session decided about before the runner has told anything.
    await world.give('next', { ms: 10, output: 10 }, 'notes');
    assert.equal(await ended('long'), 'Succeeded');
  });

  test('a turn that goes on after a decision has none either', async () => {
    const { world, status, ended } = await aWorldThat();
    await world.session('notes', { timeouts: { turn: '10m' } });
    await world.give('asks', { ms: 60_000, output: 10, asks: ['Alive'] }, 'notes');
    await world.until('the request', () => status('asks')?.phase === 'AwaitingApproval');
    const requestId = status('asks')?.approval?.id;
    await create(world.server, approvals, 'team', 'yes', { turn: 'asks', requestId, decision: 'Approve' });
    await world.until('the decision', () => status('asks')?.phase === 'Running');
    await world.pass(5_000);
    world.sleep(SLEEP_MS);
    assert.equal(await ended('asks'), 'Succeeded');
  });

  test.each([20, 60, 100, 150, 300])(
    'a pod does not start, and is given its time, %i ms after its session',
    async (ms) => {
      const { world, ended } = await aWorldThat({ slowPods: () => 1 });
      await create(world.server, sessions, 'team', 'notes', { class: 'default' });
      await world.give('first', { ms: 100, output: 10 }, 'notes');
      await world.pass(ms);
      world.sleep(SLEEP_MS);
      assert.equal(await ended('first'), 'Succeeded');
    },
  );

  test('a turn has run for as long as its runner says, be that told before or afterwards', () => {
    const minutes = (count: number) => count * 60_000;
    const clockJumps = [{ until: NOW - minutes(30), ms: minutes(45) }];
    const session = aSession({ status: RUNNING_STATUS });
    const turns = [runningTurn('a', { status: { granted: { timeout: '2h', start: '10m' } } })];
    const deadline = (ranMs: number, heardAt: number) => {
      const started = { turn: 't-a', at: new Date(heardAt - ranMs).toISOString(), heardAt };
      const link = aLink({ active: 't-a', sent: new Set(['t-a']), started });
      return decide(aWorld({ session, pod: aPod(), turns, link, clockJumps })).wakeAt - NOW - 20_000;
    };
    assert.equal(deadline(minutes(100), NOW), minutes(20), 'after the sleep');
    assert.equal(deadline(minutes(10), NOW - minutes(65)), minutes(120 - 10 - 65 + 45), 'before it');
  });

  test('no waits of the controller go on: each is given up later by as long', () => {
    const before = { until: NOW - 30_000, ms: SLEEP_MS };
    const reasonAfter = (change: WorldChange, clockJumps = [before]) =>
      written(decide(aWorld({ turns: [aTurn({ name: 'a' })], ...change, clockJumps })).actions)[0]?.error?.code;
    const session = aSession({ status: { ...RUNNING_STATUS, conditions: [] }, spec: { timeouts: { start: '10m' } } });
    const pending = (seconds: number) => ({ session, pod: aPod({ age: seconds, status: { phase: 'Pending' } }) });
    assert.deepEqual(
      [54 * 60, 56 * 60].map((age) => reasonAfter({ ...pending(age), link: aLink({ phase: 'Opening' }) })),
      [undefined, 'StartFailed'],
    );
    assert.equal(reasonAfter({ ...pending(54 * 60), link: aLink({ phase: 'Opening' }) }, []), 'StartFailed');
    const { podUID: _, ...unmade } = RUNNING_STATUS;
    const createFailing = (ms: number) => ({
      session: aSession({ status: { ...unmade, conditions: [] }, spec: { timeouts: { start: '10m' } } }),
      memory: {
        createFailingSince: NOW - ms,
        startProblem: { reason: 'PodConfigError', message: 'no' } as const,
      },
    });
    assert.deepEqual(
      [54 * 60_000, 56 * 60_000].map((ms) => reasonAfter(createFailing(ms))),
      [undefined, 'PodConfigError'],
    );
  });
});

test('timeouts.start of a second is a second, although Kubernetes tells creations in whole ones', async () => {
  for (const late of [0, 200, 400, 550, 600]) {
    const { world, ended } = await aWorldThat();
    const within = () => world.server.clock.now() % 1000;
    await world.until('the time', () => within() >= 345 + late && within() < 405 + late);
    await create(world.server, sessions, 'team', 'notes', { class: 'default', timeouts: { start: '1s' } });
    await world.give('first', { ms: 100, output: 10 }, 'notes');
    assert.equal(await ended('first'), 'Succeeded', `${late}`);
  }
});
