import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decide } from '../../../controller/decide/decide.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { sessions, turns } from '../../../core/resources/kinds.ts';
import { firstTurnName } from '../../../core/resources/names.ts';
import type { ControllerCall } from '../../sim/observer.ts';
import { create } from '../../sim/users/writes.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aSession, aWorld, does } from '../../support/world.ts';

test('a session whose first turn has its name taken says so, and starts once it is free', async () => {
  const world = new QuietWorld();
  await world.start();
  const other = await world.session('other');
  const name = firstTurnName('run');
  await world.turn(other, name, { ms: 10, output: 1 });
  const { admin } = world.server;
  const spec = { class: 'default', turns: 'One', input: { ms: 10, output: 2 } };
  const metadata = { namespace: 'team', name: 'run' };
  await admin.create(sessions, { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', metadata, spec } as never);
  const { status } = await world.sessionUntil('run', (session) => session.status !== undefined);
  for (const type of ['Ready', 'Finished']) {
    const condition = status?.conditions?.find((each) => each.type === type);
    assert.deepEqual([condition?.status, condition?.reason], ['False', 'TurnExists'], type);
  }
  assert.match(
    status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '',
    new RegExp(`"${name}".*delete it`),
  );
  await world.pass(60_000);
  assert.equal(
    world.server.get(sessions, 'team', 'run')?.status?.incarnation,
    undefined,
    'it is not started without it',
  );
  await admin.delete(turns, { namespace: 'team', name });
  const done = await world.sessionUntil('run', (session) => session.status?.phase === 'Finished');
  assert.equal(done.status?.lastTurn?.phase, 'Succeeded');
});

test('a session whose first turn has no room in a quota says so, and starts by itself once there is room', async () => {
  const world = new QuietWorld();
  let isFull = true;
  let tries = 0;
  const message = 'turns.berth.dev "x" is forbidden: exceeded quota: team, requested: count/turns.berth.dev=1';
  world.refuse = ({ verb, resource }) =>
    verb === 'create' && resource === 'turns' && isFull && ++tries
      ? new ApiError({ code: 403, reason: 'Forbidden', message })
      : undefined;
  await world.start();
  await create(world.server, sessions, 'team', 'run', {
    class: 'default',
    turns: 'One',
    input: { ms: 10, output: 1 },
  });
  const { status } = await world.sessionUntil('run', (session) =>
    Boolean(session.status?.conditions?.some(({ reason }) => reason === 'TurnQuotaExceeded')),
  );
  assert.equal(status?.podName, undefined);
  await world.pass(120_000);
  assert.ok(tries > 3 && tries < 12, `tried ${tries} times`);
  assert.equal(world.server.get(sessions, 'team', 'run')?.status?.incarnation, undefined, 'it waits without a pod');
  isFull = false;
  const done = await world.sessionUntil('run', (session) => session.status?.phase === 'Finished');
  assert.equal(done.status?.lastTurn?.phase, 'Succeeded');
});

test('a session is read before its first turn is created only where that may have been created, and deleted, before', async () => {
  const world = new QuietWorld();
  await world.start();
  const isCreation = ({ verb, resource }: ControllerCall) => verb === 'create' && resource === 'turns';
  let tries = 0;
  world.refuse = (call) => (isCreation(call) && tries++ === 1 ? new TransportError('the connection broke') : undefined);
  const run = async (name: string) => {
    world.calls = [];
    await world.session(name, { input: { ms: 10, output: 1 } });
    await world.sessionUntil(name, ({ status }) => status?.turns?.total === 1);
    return world.calls.filter((call) => /(get|create) (sessions|turns)/.test(call));
  };
  assert.deepEqual(await run('at-once'), ['create turns']);
  assert.deepEqual(await run('again'), ['get sessions', 'create turns']);
  assert.equal(tries, 3);
});

test('a leader that waits for its predecessor’s last request reads a session before it creates the first turn', async () => {
  const world = new QuietWorld();
  await world.start();
  world.replica.kill();
  world.calls = [];
  await create(world.server, sessions, 'team', 'run', { class: 'default', input: { ms: 10, output: 1 } });
  world.replica.start();
  await world.sessionUntil('run', ({ status }) => status?.turns?.total === 1);
  assert.deepEqual(
    world.calls.filter((call) => /(get sessions|create turns)/.test(call)),
    ['get sessions', 'create turns'],
  );
});

test('a new leader tries to create the first turn whose name was taken, or that had no room, before anything else', () => {
  const condition = { type: 'Ready', status: 'False', message: 'x', lastTransitionTime: 'x' } as const;
  const status = (reason: string) => ({ phase: 'Queued' as const, conditions: [{ ...condition, reason }] });
  const input = { digest: 'd'.repeat(64), bytes: 1 };
  const first = (reason: string) => does({ session: aSession({ spec: { input }, status: status(reason) }) })[0];
  assert.equal(first('TurnExists'), 'CreateFirstTurn');
  assert.equal(first('TurnQuotaExceeded'), 'CreateFirstTurn');
  assert.notEqual(first('Suspended'), 'CreateFirstTurn');
});

test('a session whose first turn has its name taken waits for nothing else', () => {
  const session = aSession({ spec: { input: { digest: 'd'.repeat(64), bytes: 1 } } });
  const slot = { waiting: 'AtCapacity', message: 'full', position: 1 } as const;
  const firstTurnProblem = { reason: 'TurnExists', message: 'taken' } as const;
  const { waiting, status } = decide(aWorld({ session, slot, memory: { firstTurnProblem } }));
  assert.equal(waiting, false);
  assert.equal(status.conditions?.find(({ type }) => type === 'Ready')?.message, 'taken');
});
