import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { test } from 'vitest';
import { informerCaches } from '../../../../controller/caches/caches.ts';
import { slimSession } from '../../../../controller/caches/slim.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { type StoredSession, sessionclasses, sessions, turns } from '../../../../core/resources/kinds.ts';
import { silentLogger } from '../../../../core/system.ts';
import { create } from '../../../sim/users/writes.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
import { seededRandom } from '../../../support/random.ts';

function withoutConfigMaps(admin: QuietWorld['server']['admin']) {
  const forbidden = new ApiError({ code: 403, reason: 'Forbidden', message: 'configmaps is forbidden' });
  const list = async (...[resource, options]: Parameters<typeof admin.list>) => {
    if (resource.plural === 'configmaps') throw forbidden;
    return admin.list(resource, options);
  };
  return new Proxy(admin, { get: (of, name) => (name === 'list' ? list : Reflect.get(of, name).bind(of)) });
}

/** Caches beside those of the controller, which has not been started. */
async function setUp(onSession: (key: string) => void = () => {}, agentFiles?: 'Readable' | 'Forbidden') {
  const world = new QuietWorld();
  await world.furnish();
  const { admin, clock } = world.server;
  const random = seededRandom();
  const caches = informerCaches({
    api: (agentFiles === 'Forbidden' ? withoutConfigMaps(admin) : admin) as unknown as KubeApi,
    clock,
    random,
    log: silentLogger,
    agentFiles: agentFiles !== undefined,
    sessionPools: false,
    nodes: false,
  });
  caches.watch({ session: onSession }, new AbortController().signal);
  caches.start();
  return { world, caches };
}

test('turns that a session of one turn has refused do not stay in the controller’s memory', async () => {
  const { world, caches } = await setUp();
  world.replica.start();
  const plan = { ms: 10, output: 1 };
  const session = await world.session('once', { turns: 'One', input: plan }, 'Finished');
  for (const name of ['a', 'b', 'c']) await world.turn(session, name, plan);
  await world.pass(5_000);
  assert.deepEqual(caches.turnsNaming('team', 'once'), []);
  await caches.stop();
});

test('a turn that is left out is as one that does not exist, until it changes or goes, and nothing is kept of it then', async () => {
  const told: string[] = [];
  const { world, caches } = await setUp((key) => told.push(key));
  const { admin } = world.server;
  const names = () => caches.turnsNaming('team', 'notes').map(({ metadata }) => metadata.name);
  const leaveOut = async (name: string) => {
    const { metadata } = await admin.get(turns, { namespace: 'team', name });
    told.length = 0;
    caches.leaveOut(metadata, 'notes');
    assert.deepEqual([caches.isLeftOut(metadata), caches.turn('team', name), told], [true, undefined, ['team/notes']]);
    return metadata;
  };
  for (const name of ['changes', 'goes']) await world.give(name, { ms: 10, output: 1 }, 'notes');
  await world.until('both', () => names().length === 2);
  const [changes, goes] = [await leaveOut('changes'), await leaveOut('goes')];
  assert.deepEqual(names(), []);
  await admin.patch(turns, { namespace: 'team', name: 'changes' }, { spec: { cancel: true } });
  await world.until('the other version', () => names().length === 1);
  assert.deepEqual([names(), caches.isLeftOut(changes)], [['changes'], false]);
  await admin.delete(turns, { namespace: 'team', name: 'goes' });
  await world.until('the end', () => !caches.isLeftOut(goes));
  caches.leaveOut(goes, 'notes');
  assert.equal(caches.isLeftOut(goes), false, 'as it is not there any more');
  await caches.stop();
});

test('are filled once the ConfigMaps with agents’ files are known too, or soon without the right to read them', async () => {
  for (const [right, knows] of [
    ['Readable', true],
    ['Forbidden', false],
  ] as const) {
    const { world, caches } = await setUp(undefined, right);
    let filled = false;
    void caches.synced(new AbortController().signal).then(() => {
      filled = true;
    });
    await setImmediate();
    await world.pass(6_000);
    await setImmediate();
    assert.deepEqual([filled, caches.knowsAgentFiles('team')], [true, knows]);
    await caches.stop();
  }
});

test('a session says that its Environment does not exist, although its controller learns late which there are', async () => {
  const world = new QuietWorld();
  let readable = false;
  world.refuse = ({ verb, resource }) =>
    !readable && verb === 'list' && resource === 'environments' ? new TransportError('no answer') : undefined;
  await world.start();
  const sessionClass = { agent: { command: ['agent'] }, overrides: ['environment'] };
  await create(world.server, sessionclasses, undefined, 'python', sessionClass);
  const why = (session: StoredSession) =>
    session.status?.conditions?.find(({ type }) => type === 'Ready')?.message ?? '';
  const spec = { class: 'python', environment: { name: 'none' }, input: { ms: 1, output: 1 } };
  await create(world.server, sessions, 'team', 'notes', spec);
  await world.sessionUntil('notes', (session) => /has not read the Environments/.test(why(session)));
  await world.pass(20_000);
  readable = true;
  await world.sessionUntil('notes', (session) => /there is no Environment "none"; create it/.test(why(session)));
});

test('the input of a session is kept for its first turn only until it has a status, and only where it is small', () => {
  const session = (input: unknown, status?: object) =>
    slimSession({ metadata: { name: 'notes' }, spec: { class: 'default', input }, status } as never).spec.input;
  assert.deepEqual([session('hello')?.body, session('hello')?.bytes], ['hello', 7]);
  assert.equal(session('hello', { phase: 'Queued' })?.body, undefined);
  assert.equal(session('x'.repeat(16_382))?.body?.toString().length, 16_382);
  assert.equal(session('x'.repeat(16_383))?.body, undefined);
  assert.equal(session(undefined), undefined);
});
