import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Pod } from '../../../../core/kube/builtin.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import { pods } from '../../../../core/kube/resources.ts';
import { sessionpools, sessions, turns } from '../../../../core/resources/kinds.ts';
import { numberOfPod, poolOfPod, poolPodName } from '../../../../core/resources/names.ts';
import { isTerminal } from '../../../../core/resources/turn-phases.ts';
import { NO_FAULTS } from '../../../sim/api/faults.ts';
import type { ControllerCall } from '../../../sim/observer.ts';
import { create, edit, note } from '../../../sim/users/writes.ts';
import { QuietWorld, type QuietWorldOptions } from '../../../support/quiet-world.ts';

/** A leader, and a pool that asks for no pod yet. */
async function aPool(options: QuietWorldOptions = {}) {
  const world = new QuietWorld({ sessionPools: () => true, ...options });
  await world.start();
  await create(world.server, sessionpools, 'team', 'default', { class: 'default', replicas: 0 });
  const pool = () => world.server.get(sessionpools, 'team', 'default');
  const ready = () => pool()?.status?.conditions?.find(({ type }) => type === 'Ready');
  const { uid } = pool()?.metadata ?? { uid: '' };
  await world.until('the pool', () => ready()?.reason === 'PoolFull');
  return {
    world,
    uid,
    pool,
    ready,
    names: () => world.server.list(pods).map(({ metadata }) => metadata.name),
    scale: async (replicas: number) => {
      const found = pool();
      if (found) await edit(world.server, sessionpools, found, { replicas });
    },
    full: (replicas: number) =>
      world.until(`${replicas} pods`, () => ready()?.reason === 'PoolFull' && pool()?.status?.ready === replicas),
  };
}

/** Creates sessions of one turn at once, and resolves when all turns have ended. */
async function burst(world: QuietWorld, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, i) => `s${i}`);
  const spec = { class: 'default', turns: 'One', input: { ms: 5, output: 1 } };
  await Promise.all(names.map((name) => create(world.server, sessions, 'team', name, spec)));
  const ended = (name: string) => isTerminal(world.server.get(turns, 'team', name)?.status?.phase);
  await world.until('the ends of the turns', () => names.every(ended));
}

const creations = ({ calls }: QuietWorld) => calls.filter((call) => call === 'create pods').length;

describe('sessions that are created at once', () => {
  test('each take another pod of the pool, and none creates its turn twice for it', async () => {
    const { world, scale, full } = await aPool();
    await scale(20);
    await full(20);
    world.calls = [];
    await burst(world, 20);
    const count = (what: string) => world.calls.filter((call) => call === what).length;
    assert.deepEqual([count('create turns'), count('get turns'), count('patch pods')], [20, 0, 20]);
    assert.equal(creations(world), 0, 'no pod of their own, and none for the pool meanwhile');
  });
});

describe('a pool', () => {
  test('whose pods are refused pauses, whatever events there are', async () => {
    const { world, scale } = await aPool();
    let tries = 0;
    world.refuse = ({ verb, resource }) => {
      if (verb !== 'create' || resource !== 'pods') return undefined;
      tries++;
      return new ApiError({ code: 403, reason: 'Forbidden', message: 'namespace team is being terminated' });
    };
    await scale(2);
    await world.until('a refusal', () => tries > 0);
    for (let i = 0; i < 50; i++) {
      await scale(2 + (i % 2));
      await world.pass(50);
    }
    assert.ok(tries <= 3, `${tries} tries in 2.5 s`);
  });

  test('whose further pods are refused pauses too, and says why', async () => {
    const { world, scale, full, ready } = await aPool();
    await scale(1);
    await full(1);
    let tries = 0;
    world.refuse = ({ verb, resource }) => {
      if (verb !== 'create' || resource !== 'pods') return undefined;
      tries++;
      return new ApiError({ code: 403, reason: 'Forbidden', message: 'pods "p" is forbidden: exceeded quota: q' });
    };
    await scale(2);
    await world.until('why', () => ready()?.reason === 'QuotaExceeded');
    await world.pass(2_500);
    assert.ok(tries <= 3, `${tries} tries in 2.5 s`);
  });

  test('asks once to delete a version of a pod, whatever events there are, and again when the pod has changed', async () => {
    const { world, scale, full, names } = await aPool();
    await scale(2);
    await full(2);
    let tries = 0;
    let isRefused = true;
    world.refuse = ({ verb, resource }) => {
      if (verb !== 'delete' || resource !== 'pods') return undefined;
      tries++;
      return isRefused ? new ApiError({ code: 409, reason: 'Conflict', message: 'another version' }) : undefined;
    };
    for (let i = 0; i < 50; i++) {
      await scale(i % 2);
      await world.pass(50);
    }
    assert.equal(tries, 2);
    isRefused = false;
    await scale(0);
    for (const pod of world.server.list(pods)) await note(world.server, pods, pod, { annotations: { seen: 'yes' } });
    await world.until('the deletions', () => names().length === 0);
  });

  test('whose creation of a pod lost its answer makes no other pod, be the pod shown or not', async () => {
    for (const watchStalled of [0, 1]) {
      let faults = NO_FAULTS;
      const { world, uid, names, scale, full } = await aPool({ rates: () => faults });
      const isCreation = ({ verb, resource }: ControllerCall) => verb === 'create' && resource === 'pods';
      world.refuse = (call) => {
        if (isCreation(call)) faults = { ...NO_FAULTS, watchStalled };
        return undefined;
      };
      world.lose = (call) =>
        isCreation(call) && creations(world) === 1 ? new TransportError('the answer is lost') : undefined;
      await scale(1);
      await world.until('the creation', () => creations(world) === 1 + watchStalled);
      faults = NO_FAULTS;
      await world.pass(100);
      const [only, ...others] = names();
      assert.deepEqual([poolOfPod(only ?? ''), others], [uid, []]);
      await full(1);
      assert.deepEqual([names(), creations(world)], [[only], 1 + watchStalled]);
    }
  });

  test('that is gone leaves no pod behind, although a new leader learns only later that there is no pool', async () => {
    const world = new QuietWorld({ sessionPools: () => true });
    let readable = false;
    world.refuse = ({ verb, resource }) =>
      !readable && verb === 'list' && resource === 'sessionpools' ? new TransportError('no answer') : undefined;
    const left = await leavesPod(world);
    await world.pass(20_000);
    assert.equal(left(), true, 'there may be a pool');
    readable = true;
    await world.until('the deletion', () => !left());
  });

  test('that is gone leaves no pod behind in a namespace that can be read only later', async () => {
    const world = new QuietWorld({ sessionPools: () => true, namespaces: ['berth', 'team'] });
    let readable = false;
    world.refuse = ({ verb, resource, namespace }) =>
      !readable && verb === 'list' && resource === 'networkpolicies' && namespace === 'team'
        ? new ApiError({ code: 403, reason: 'Forbidden', message: 'no' })
        : undefined;
    const left = await leavesPod(world);
    await world.pass(5 * 60_000);
    assert.equal(left(), true);
    readable = true;
    await world.until('the deletion', () => !left());
  });

  test('passes over a name that somebody else has taken', async () => {
    const { world, uid, names, scale, full } = await aPool();
    await scale(1);
    await full(1);
    const [first = ''] = names();
    const name = poolPodName(uid, numberOfPod(first) + 1);
    const foreign: Pod = {
      metadata: { name, namespace: 'team' },
      spec: { containers: [{ name: 'main', image: 'other' }] },
    };
    await world.server.admin.create(pods, foreign);
    await scale(2);
    await full(2);
    assert.deepEqual(
      names().sort(),
      [0, 1, 2].map((number) => poolPodName(uid, numberOfPod(first) + number)),
    );
  });

  test('never gives a name to a second pod, whether one leader makes it or two', async () => {
    const { world, uid, names, scale, full } = await aPool();
    const had = new Set<string>();
    for (let round = 0; round < 4; round++) {
      await scale(2);
      await world.until('the pods', () => names().length === 2);
      await full(2);
      for (const name of names()) {
        assert.ok(!had.has(name), `${name} is the name of an earlier pod`);
        assert.equal(poolOfPod(name), uid);
        assert.ok(name.length <= 63, 'a host name');
        had.add(name);
      }
      await scale(0);
      await world.until('the end of the pods', () => names().length === 0);
      if (round === 1) await restart(world);
    }
    assert.equal(had.size, 8);
  });

  test('gives a pod that still starts to a session that finds none ready, which counts as missed', async () => {
    const { world, names, pool, scale, full } = await aPool();
    await scale(1);
    await world.until('its pod', () => creations(world) === 1);
    await world.pass(20);
    assert.equal(pool()?.status?.ready ?? 0, 0);
    const [first] = names();
    const { status } = await world.session('notes');
    assert.equal(status?.podName, first);
    await full(1);
    await world.until('the counts', () => pool()?.status?.missed === 1);
    assert.deepEqual([pool()?.status?.claimed, creations(world)], [0, 2]);
  });

  test('writes nothing for a claim before the runner of the claimed pod is bound, and the count soon afterwards', async () => {
    const { world, pool, scale, full } = await aPool();
    await scale(1);
    await full(1);
    // The next write of the status is not held back by the one before.
    await world.pass(2_000);
    /** Runners that were bound when the pool was written next. */
    let bound: number | undefined;
    world.refuse = ({ verb, resource }) => {
      if (verb !== 'get' && resource.startsWith('sessionpools')) bound ??= world.bindings.length;
      return undefined;
    };
    await world.session('notes');
    await world.until('the write of the pool', () => bound !== undefined);
    assert.equal(bound, 1);
    await world.until('the count', () => pool()?.status?.claimed === 1);
    await full(1);
  });

  test('is filled again when the sessions that found no pod have started', async () => {
    let slow = 0;
    const { world, scale, full } = await aPool({ slowPods: () => slow });
    await scale(1);
    await full(1);
    slow = 1;
    /** Runners that were bound when the pool's next pod was created. */
    let bound: number | undefined;
    world.refuse = ({ verb, resource, name }) => {
      if (verb === 'create' && resource === 'pods' && name.startsWith('p-')) bound ??= world.bindings.length;
      return undefined;
    };
    await burst(world, 3);
    await world.until('the next pod', () => bound !== undefined);
    assert.equal(bound, 3);
  });

  test('keeps pods that started long ago when a new leader has yet to hear of them', async () => {
    const { world, names, scale, full } = await aPool();
    await scale(2);
    await full(2);
    const before = names();
    await world.pass(11 * 60_000);
    await restart(world);
    await full(2);
    await world.pass(60_000);
    assert.deepEqual(names(), before);
    assert.equal(creations(world), 2);
  });

  test('that was turned off loses the pods that no session has claimed', async () => {
    let isOn = true;
    const { world, names, scale, full } = await aPool({ sessionPools: () => isOn });
    await scale(1);
    await full(1);
    const claimed = await world.session('claimed');
    await full(1);
    isOn = false;
    await restart(world);
    await world.until('the end of the unclaimed pod', () => names().length === 1);
    await world.pass(60_000);
    assert.deepEqual(names(), [claimed.status?.podName]);
    assert.equal(world.server.get(sessions, 'team', 'claimed')?.status?.podUID, claimed.status?.podUID);
  });

  test('that cannot be read keeps its pods until a session waits for their slots', async () => {
    const { world, names, scale, full } = await aPool({ maxRunning: 1 });
    await scale(1);
    await full(1);
    const [unclaimed] = names();
    world.refuse = ({ resource }) =>
      resource === 'sessionpools' ? new ApiError({ code: 403, reason: 'Forbidden', message: 'no' }) : undefined;
    await restart(world);
    await world.pass(60_000);
    assert.deepEqual(names(), [unclaimed]);
    const { status } = await world.session('cold');
    assert.deepEqual(names(), [status?.podName]);
  });
});

/** Starts a leader where a pool that is gone has left a pod. Returns a function that tells whether the pod is there. */
async function leavesPod(world: QuietWorld): Promise<() => boolean> {
  await world.furnish();
  const uid = '00000000-0000-4000-8000-00000000000a';
  const labels = {
    'app.kubernetes.io/managed-by': 'berth',
    'berth.dev/session-uid': '',
    'berth.dev/pool': 'gone',
    'berth.dev/pool-uid': uid,
  };
  const name = poolPodName(uid, 0);
  await world.server.admin.create(pods, {
    metadata: { name, namespace: 'team', labels },
    spec: { containers: [{ name: 'session', image: 'runner' }] },
  });
  world.replica.start();
  await world.until('leading', () => world.replica.isLeading);
  return () => world.server.get(pods, 'team', name) !== undefined;
}

async function restart(world: QuietWorld): Promise<void> {
  const { replica } = world;
  replica.stop();
  await world.until('the end of the controller', () => replica.process?.alive === false);
  replica.start();
}
