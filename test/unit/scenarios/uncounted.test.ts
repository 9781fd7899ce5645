import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decide } from '../../../controller/decide/decide.ts';
import { ownedBy, type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import { isTerminal, type TurnPhase } from '../../../core/resources/turn-phases.ts';
import { NO_FAULTS } from '../../sim/api/faults.ts';
import type { Plan } from '../../sim/cluster/agent.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aTurn, aWorld } from '../../support/world.ts';

const ref = (name: string) => ({ namespace: 'team', name });

test('a turn that has ended and is deleted before it is counted leaves its state and its index', async () => {
  let faults = NO_FAULTS;
  const world = new QuietWorld({ rates: () => faults });
  await world.start();
  const session = await world.session('notes');
  const isWritten = () => isTerminal(world.server.get(turns, 'team', 'first')?.status?.phase);
  const plan = { ms: 100, output: 1, state: 100 };
  await world.give('first', plan, 'notes', { ownerReferences: [ownedBy(session)] });
  await world.until('its end', isWritten);
  // A competing writer always comes before the status write that would count the turn.
  faults = { ...NO_FAULTS, conflict: 1 };
  await world.pass(100);
  const { state } = (await world.server.admin.get(turns, ref('first'))).status ?? {};
  await world.server.admin.delete(turns, ref('first'));
  await world.pass(500);
  faults = NO_FAULTS;

  const counted = await world.sessionUntil('notes', ({ status }) => status?.turns?.total === 1);
  assert.ok(state);
  assert.deepEqual(counted.status?.state, state);
  assert.equal((await world.turn(session, 'second', plan)).status?.index, 2);
});

const commits: { phase: TurnPhase; asks: NonNullable<Plan['asks']>; total: number }[] = [
  { phase: 'Succeeded', asks: [], total: 1 },
  { phase: 'AwaitingApproval', asks: ['Ended'], total: 0 },
];
for (const { phase, asks, total } of commits) {
  test(`a turn that is deleted before its writer knows that it is ${phase} leaves its state all the same`, async () => {
    let faults = NO_FAULTS;
    const world = new QuietWorld({ rates: () => faults });
    await world.start();
    const session = await world.session('notes');
    // The seed's draws after this time make the commit's answer slow, but not so slow that it is lost.
    await world.pass(5_000);
    const status = () => world.server.get(turns, 'team', 'first')?.status;
    const plan = { ms: 100, output: 1, state: 100, asks };
    await world.give('first', plan, 'notes', { ownerReferences: [ownedBy(session)] });
    await world.until('its start', () => status()?.phase === 'Running');
    // The watch shows the deletion before the answer of the commit is there.
    faults = { ...NO_FAULTS, slow: 1 };
    await world.until('its commit', () => status()?.phase === phase);
    faults = NO_FAULTS;
    const state = status()?.state;
    await world.server.admin.delete(turns, ref('first'));

    assert.ok(state);
    const kept = await world.sessionUntil('notes', (one) => one.status?.state?.digest === state.digest);
    assert.equal(kept.status?.turns?.total, total);
  });
}

test('a turn that asks and is deleted before the status of its session could be written leaves its state all the same', async () => {
  let somebodyIsFaster = false;
  const world = new QuietWorld({
    rates: () => (somebodyIsFaster && world.replica.isLeading ? { ...NO_FAULTS, conflict: 1 } : NO_FAULTS),
  });
  await world.start();
  const session = await world.session('notes');
  const status = () => world.server.get(turns, 'team', 'first')?.status;
  const plan: Plan = { ms: 100, output: 1, state: 100, asks: ['Ended'] };
  await world.give('first', plan, 'notes', { ownerReferences: [ownedBy(session)] });
  await world.until('its commit', () => status()?.phase === 'AwaitingApproval');
  // A later leader has seen the turn, but did not write it.
  world.replica.kill();
  world.replica.start();
  somebodyIsFaster = true;
  await world.until('leading again', () => world.replica.isLeading);
  await world.pass(200);
  const state = status()?.state;
  await world.server.admin.delete(turns, ref('first'));
  await world.pass(200);
  somebodyIsFaster = false;

  assert.ok(state);
  await world.sessionUntil('notes', (one) => one.status?.state?.digest === state.digest);
});

test('an index whose write got no answer is given to no other turn', async () => {
  const isAnswerLost = () => world.calls.at(-1) === 'patch turns';
  const world = new QuietWorld({
    rates: () => (isAnswerLost() ? { ...NO_FAULTS, lost: 1, watchStalled: 1 } : NO_FAULTS),
  });
  await world.start();
  const session = await world.session('notes', { suspend: true }, 'Suspended');
  const plan = { ms: 100, output: 1 };
  // A turn without an owner has no index; with one it has the first.
  await world.give('earlier', plan, 'notes');
  await world.give('later', plan, 'notes', { ownerReferences: [ownedBy(session)] });
  const index = (name: string) => (world.server.get(turns, 'team', name) as StoredTurn).status?.index;
  await world.until('indices', () => index('earlier') !== undefined && index('later') !== undefined);
  assert.deepEqual([index('later'), index('earlier')], [1, 2]);
});

test('a session is suspended since that is written, however long what had to be done before has taken', async () => {
  let faults = NO_FAULTS;
  const world = new QuietWorld({ rates: () => faults });
  await world.start();
  faults = { ...NO_FAULTS, slow: 1 };
  const plan = { ms: 100, output: 1 };
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) await world.give(name, plan, 'notes');
  const { status } = await world.session('notes', { suspend: true }, 'Suspended');
  const suspended = status?.conditions?.find(({ type }) => type === 'Suspended');
  const ago = world.server.clock.now() - Date.parse(suspended?.lastTransitionTime ?? '');
  assert.ok(ago < 3_000, `${ago} ms ago`);
});

test('no ended turn is counted before all turns are known: one before it would never be', () => {
  const ended = aTurn({ name: 'b', status: { index: 2, phase: 'Failed' } });
  const statusOf = (knowsTurns: boolean) => decide(aWorld({ turns: [ended], memory: { knowsTurns } })).status;
  assert.deepEqual([statusOf(false).turns, statusOf(false).lastTurn], [undefined, undefined]);
  assert.deepEqual([statusOf(true).turns?.total, statusOf(true).lastTurn?.index], [1, 2]);
});
