import assert from 'node:assert/strict';
import { test } from 'vitest';
import { bodyFacts } from '../../../../controller/caches/slim.ts';
import { Environments, type EnvironmentsOptions } from '../../../../controller/environments/environments.ts';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { type WantedBuild, wantedBuild } from '../../../../controller/settings/builder.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const { installation } = aWorld();
const metadata = { namespace: 'team', uid: 'e-1', resourceVersion: '1', generation: 1 };
const TOOLS: StoredEnvironment = {
  metadata: { ...metadata, name: 'tools', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { class: 'default', requirements: ['httpx'] },
};
const WANTED = wantedBuild(TOOLS, aClass(), installation) as WantedBuild;
const state = { digest: 'd'.repeat(64), keyId: 'k', bytes: 9, incarnation: 1, seq: 4, ref: 'uid/1/4' };
const BUILD: CachedSession = {
  ...aSession({
    spec: { ...WANTED.spec, input: bodyFacts(WANTED.spec.input), agent: undefined } as never,
    status: { phase: 'Finished', state },
  }),
  metadata: { ...aSession().metadata, name: WANTED.name, uid: 'build-1' },
};
const archive = { ...state, session: WANTED.name, sessionUID: 'build-1' };

/** A controller of environments of a build whose turn somebody has deleted. */
async function lead(change: {
  status?: StoredEnvironment['status'];
  users?: () => CachedSession[];
  isKnown?: boolean;
}) {
  const clock = new VirtualClock();
  let environment: StoredEnvironment = { ...TOOLS, status: change.status ?? {} };
  const all = () => [BUILD, ...(change.users?.() ?? [])];
  let isKnown = change.isKnown ?? true;
  const deleted: string[] = [];
  const caches = {
    allEnvironments: () => (isKnown ? [environment] : []),
    environment: (_namespace: string, name: string) => {
      if (!isKnown) return undefined;
      return name === 'tools' ? environment : 'Missing';
    },
    allSessions: all,
    session: (_namespace: string, name: string) => all().find((session) => session.metadata.name === name),
    turnsNaming: () => [],
    class: () => aClass(),
  };
  const api = {
    get: async () => {
      throw new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
    },
    delete: async (_resource: object, { name }: { name: string }) => {
      deleted.push(name);
    },
    replace: async (_resource: object, object: StoredEnvironment) => {
      environment = { ...environment, status: object.status ?? {} };
      return environment;
    },
  };
  const never = new AbortController().signal;
  const environments = new Environments({
    ...writesOver(api),
    ...{ caches, clock, installation, log: silentLogger, random: systemRandom },
    ...{ notify: () => {}, signal: never, closing: never },
  } as unknown as EnvironmentsOptions);
  environments.start();
  await clock.advance(1);
  const setKnown = (known: boolean) => {
    isKnown = known;
  };
  return { clock, deleted, setKnown, status: () => environment.status ?? {} };
}

const packages = [{ name: 'httpx', version: '1', hashes: [`sha256:${'a'.repeat(64)}`] }];
const facts = { pythonVersion: '3.12.1', uvVersion: '0.13.9', packages, bytes: 7 };
/** Status of an Environment that has the build. */
const SHOWN = { phase: 'Pending', hash: WANTED.hash, build: WANTED.name, archive, ...facts } as const;

test('an Environment whose class was away is Ready again with what its status tells, also without the turn of its build', async () => {
  const { status, deleted } = await lead({ status: SHOWN });
  assert.deepEqual([status().phase, status().archive, status().packages], ['Ready', archive, packages]);
  assert.deepEqual(deleted, []);
});

test('a build whose turn was deleted stays where a session has its archive, and is deleted where none has', async () => {
  const having = (phase: 'Suspended' | 'Finished') =>
    aSession({
      spec: { environment: { name: 'former' } },
      status: { phase, environment: { name: 'former', hash: WANTED.hash, archive } },
    });
  const { clock, deleted, status } = await lead({ users: () => [having('Suspended')] });
  assert.deepEqual([status().phase, status().archive], ['Ready', archive]);
  await clock.advance(60_000);
  assert.deepEqual(deleted, []);
  assert.deepEqual((await lead({ users: () => [having('Finished')] })).deleted, [WANTED.name]);
});

test('no build counts as unused while the Environments of its namespace are not known, nor for the time before', async () => {
  const HOUR_MS = 60 * 60_000;
  const { clock, deleted, setKnown } = await lead({ isKnown: false });
  await clock.advance(48 * HOUR_MS);
  assert.deepEqual(deleted, []);
  setKnown(true);
  await clock.advance(HOUR_MS);
  assert.deepEqual(deleted, []);
  await clock.advance(24 * HOUR_MS);
  assert.deepEqual([...new Set(deleted)], [WANTED.name]);
});

test('a build that is used between two sweeps counts as unused from the later one on, however often that happens', async () => {
  const HOUR_MS = 60 * 60_000;
  const users: CachedSession[] = [];
  const { clock, deleted } = await lead({ status: SHOWN, users: () => users });
  const uses = (phase: 'Suspended' | 'Finished') => {
    const taken = { name: 'tools', hash: WANTED.hash, archive };
    users.splice(0, 1, aSession({ spec: { environment: { name: 'tools' } }, status: { phase, environment: taken } }));
  };
  for (let i = 0; i < 3; i++) {
    await clock.advance(23 * HOUR_MS);
    assert.deepEqual(deleted, []);
    uses('Suspended');
    await clock.advance(HOUR_MS);
    uses('Finished');
  }
  await clock.advance(23 * HOUR_MS);
  assert.deepEqual(deleted, [], 'a day has not passed since it was used last');
  await clock.advance(1.5 * HOUR_MS);
  assert.deepEqual([...new Set(deleted)], [WANTED.name]);
});
