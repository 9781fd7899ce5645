import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bodyFacts } from '../../../../controller/caches/slim.ts';
import { Environments, type EnvironmentsOptions } from '../../../../controller/environments/environments.ts';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { besides, rebuild, type WantedBuild, wantedBuild } from '../../../../controller/settings/builder.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { type Session, type StoredEnvironment, turns } from '../../../../core/resources/kinds.ts';
import { firstTurnName } from '../../../../core/resources/names.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const { installation } = aWorld();
const TOOLS: StoredEnvironment = {
  metadata: {
    name: 'tools',
    namespace: 'team',
    uid: 'e-1',
    resourceVersion: '1',
    creationTimestamp: '',
    generation: 1,
  },
  spec: { class: 'default', requirements: ['httpx'] },
};
const WANTED = wantedBuild(TOOLS, aClass(), installation) as WantedBuild;
const USER = aSession({ spec: { environment: { name: 'tools' } } });
const RUNNING = { phase: 'Running', incarnation: 1 } as const;
const PACKAGES = [{ name: 'httpx', version: '1', hashes: [`sha256:${'a'.repeat(64)}`] }];
const OUTPUT = { python: '3.12.1', uv: '0.13.9', packages: PACKAGES, bytes: 7 };
const STATE = { digest: 'd'.repeat(64), keyId: 'k', bytes: 9, incarnation: 1, seq: 4, ref: 'uid/1/4' };

/** A session that builds what is wanted, and more in its spec. */
function building(
  { name, spec }: WantedBuild,
  { uid, more, status = RUNNING }: { uid: string; more?: object; status?: object },
): CachedSession {
  const session = aSession({ spec: { ...spec, input: bodyFacts(spec.input), agent: undefined, ...more } as never });
  return { ...session, metadata: { ...session.metadata, name, uid }, status } as CachedSession;
}
const ordinary = (name: string, uid: string): CachedSession => ({
  ...aSession(),
  metadata: { ...aSession().metadata, name, uid },
});

interface Given {
  sessions?: CachedSession[];
  /** Sessions that the API server has, and the cache does not show yet. */
  unseen?: CachedSession[];
  /** Turn of every build. */
  turn?: object;
  status?: StoredEnvironment['status'];
  /** What the cluster adds to the spec of each session. */
  added?: object;
}

/** A controller of an Environment that a session waits for. */
async function lead({ sessions = [], unseen = [], turn, status = {}, added = {} }: Given) {
  const clock = new VirtualClock();
  const all = [USER, ...sessions];
  let environment: StoredEnvironment = { ...TOOLS, status };
  const created: string[] = [];
  const deleted: string[] = [];
  const named = (name: string) => (session: CachedSession) => session.metadata.name === name;
  const saw = (session: CachedSession) =>
    all.splice(0, all.length, ...all.filter((one) => one.metadata.uid !== session.metadata.uid), session);
  const caches = {
    allEnvironments: () => [environment],
    environment: () => environment,
    allSessions: () => all,
    session: (_namespace: string, name: string) => all.find(named(name)),
    turnsNaming: () => [],
    class: () => aClass(),
  };
  const api = {
    create: async (_resource: object, { metadata, spec }: Session) => {
      created.push(metadata.name);
      if ([...all, ...unseen].some(named(metadata.name))) {
        throw new ApiError({ code: 409, reason: 'AlreadyExists', message: 'exists' });
      }
      return building(
        { ...WANTED, name: metadata.name, spec: spec as never },
        { uid: `made-${created.length}`, more: added },
      );
    },
    get: async (resource: object, { name }: { name: string }) => {
      const found = resource === turns ? turn : unseen.find(named(name));
      if (!found) throw new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
      return found;
    },
    delete: async (_resource: object, { name }: { name: string }) => void deleted.push(name),
    replace: async (_resource: object, object: StoredEnvironment) => {
      environment = { ...environment, status: object.status ?? {} };
      return environment;
    },
  };
  const never = new AbortController().signal;
  const environments = new Environments({
    ...writesOver(api, (object: CachedSession, { plural }) => plural === 'sessions' && saw(object)),
    ...{ caches, clock, installation, log: silentLogger, random: systemRandom },
    ...{ notify: () => {}, signal: never, closing: never },
  } as unknown as EnvironmentsOptions);
  environments.start();
  const look = async () => {
    environments.watches.environment?.('team', 'tools');
    await clock.advance(1);
    return environment.status ?? {};
  };
  return { created, deleted, saw, look, status: await look() };
}

/** Turn of a build with this input, owned by the session with this UID. */
const turnOf = (
  { name, spec }: WantedBuild,
  uid: string | undefined,
  more: { spec?: object; status?: object } = {},
) => ({
  metadata: {
    name: firstTurnName(name),
    namespace: 'team',
    ...(uid === undefined ? {} : { ownerReferences: [{ kind: 'Session', name, uid }] }),
  },
  spec: { input: spec.input, ...more.spec },
  status: { phase: 'Succeeded', output: OUTPUT, ...more.status },
});

describe('an Environment is built whoever takes the name of its build:', () => {
  const next = besides(WANTED, 'foreign');
  const FINISHED = { phase: 'Finished', state: STATE };
  const TAKEN = { phase: 'Queued', conditions: [{ type: 'Ready', status: 'False', reason: 'TurnExists' }] };
  const foreign = (given: { more?: object; status?: object }) => building(WANTED, { uid: 'foreign', ...given });
  const cases: [what: string, given: Given][] = [
    ['a session that builds nothing', { sessions: [ordinary(WANTED.name, 'foreign')] }],
    [
      'one that builds something else',
      { sessions: [foreign({ more: { input: bodyFacts({ requirements: ['evil'] }) } })] },
    ],
    ['the same build on hold', { sessions: [foreign({ more: { suspend: true } })] }],
    ['the same build with a time limit', { sessions: [foreign({ more: { timeouts: { turn: '1s' } } })] }],
    ['a session that the cache does not show yet', { unseen: [ordinary(WANTED.name, 'foreign')] }],
    [
      'a turn of no session that has the name of the build’s',
      { sessions: [foreign({ status: TAKEN })], turn: turnOf(WANTED, undefined) },
    ],
    [
      'a turn of the build with a time limit',
      { sessions: [foreign({ status: FINISHED })], turn: turnOf(WANTED, 'foreign', { spec: { timeout: '1s' } }) },
    ],
    [
      'a turn of the build with another input',
      { sessions: [foreign({ status: FINISHED })], turn: turnOf(WANTED, 'foreign', { spec: { input: 1 } }) },
    ],
  ];
  for (const [what, given] of cases) {
    test(what, async () => {
      const { created, status, deleted } = await lead(given);
      assert.equal(created.at(-1), next.name);
      assert.deepEqual([status.phase, status.build, deleted], ['Building', next.name, []]);
    });
  }

  test('sessions that have the next names, too', async () => {
    const after = besides(next, 'second');
    const { created } = await lead({ sessions: [ordinary(WANTED.name, 'foreign'), ordinary(next.name, 'second')] });
    assert.deepEqual(created, [after.name]);
  });

  test('and goes on with the build that it has when the name is free', async () => {
    const build = building(next, { uid: 'ours' });
    const status = { phase: 'Building', hash: WANTED.hash, build: next.name } as const;
    const { created, status: now, saw, look } = await lead({ sessions: [build], status, turn: turnOf(next, 'ours') });
    assert.deepEqual([created, now.phase, now.build], [[], 'Building', next.name]);
    saw({ ...build, status: FINISHED } as CachedSession);
    const { phase, build: name, archive } = await look();
    assert.deepEqual([phase, name, archive?.sessionUID], ['Ready', next.name, 'ours']);
    assert.deepEqual([(await look()).phase, created], ['Ready', []]);
  });

  test('also another build of known packages, which is not built a third time', async () => {
    const again = rebuild(WANTED, PACKAGES) as WantedBuild;
    const taken = besides(again, 'foreign');
    const status = { phase: 'Pending', hash: WANTED.hash, build: WANTED.name, packages: PACKAGES } as const;
    const { created, look, saw } = await lead({
      sessions: [ordinary(again.name, 'foreign')],
      status,
      turn: turnOf(taken, 'made-1'),
    });
    assert.deepEqual(created, [taken.name]);
    saw(building(taken, { uid: 'made-1', status: FINISHED }));
    assert.equal((await look()).phase, 'Ready');
    assert.deepEqual(
      [(await look()).phase, (await look()).archive?.session, created],
      ['Ready', taken.name, [taken.name]],
    );
  });
});

describe('a build is the Environment’s own', () => {
  test('where the cluster has added to its spec', async () => {
    const { created, look } = await lead({ added: { priority: 7 } });
    await look();
    assert.deepEqual([created, (await look()).build], [[WANTED.name], WANTED.name]);
  });

  test('where the turn of a deleted session still has the name of its turn', async () => {
    const status = { phase: 'Queued', conditions: [{ type: 'Ready', status: 'False', reason: 'TurnExists' }] };
    const build = building(WANTED, { uid: 'ours', status });
    const { created, status: now } = await lead({ sessions: [build], turn: turnOf(WANTED, 'deleted') });
    assert.deepEqual([created, now.build], [[], WANTED.name]);
  });
});
