import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Environments, type EnvironmentsOptions } from '../../../../controller/environments/environments.ts';
import type { CachedSession, CachedTurn } from '../../../../controller/observed/world.ts';
import type { Session, StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aClass, aSession, aTurn, aWorld } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const NAMESPACE = aSession().metadata.namespace;

function anEnvironment(name = 'tools'): StoredEnvironment {
  const metadata = {
    name,
    namespace: NAMESPACE,
    uid: `e-${name}`,
    resourceVersion: '1',
    creationTimestamp: '',
    generation: 1,
  };
  return { metadata, spec: { class: 'default', requirements: ['httpx'] }, status: {} };
}

const uses = (change: Parameters<typeof aSession>[0] = {}): CachedSession =>
  aSession({ ...change, spec: { class: 'default', environment: { name: 'tools' }, ...change.spec } as never });

/** A controller of environments; `created` has the builds that it has made, `looks` how often it looked each environment up. */
async function lead(sessions: CachedSession[], turns: CachedTurn[] = []) {
  const clock = new VirtualClock();
  const all = [anEnvironment(), anEnvironment('others')];
  const created: Session[] = [];
  const looks = new Map<string, number>();
  const caches = {
    allEnvironments: () => all,
    environment: (namespace: string, name: string) => {
      const found = all.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
      if (found) looks.set(name, (looks.get(name) ?? 0) + 1);
      return found ?? 'Missing';
    },
    allSessions: () => sessions,
    session: (namespace: string, name: string) =>
      sessions.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
    turnsNaming: () => turns,
    class: () => aClass(),
  };
  const api = {
    create: async (_resource: object, object: Session) => {
      created.push(object);
      return object;
    },
    replace: async (_resource: object, object: StoredEnvironment) => object,
  };
  const never = new AbortController().signal;
  const { installation } = aWorld();
  const environments = new Environments({
    ...writesOver(api),
    ...{ caches, clock, installation, log: silentLogger, random: systemRandom },
    ...{ notify: () => {}, signal: never, closing: never },
  } as unknown as EnvironmentsOptions);
  environments.start();
  await clock.advance(1);
  return { environments, clock, created, looks };
}

describe('an Environment is built', () => {
  const RAN = { phase: 'Suspended', incarnation: 1 } as const;
  const needing: Record<string, [CachedSession[], CachedTurn[]?]> = {
    'for a new session that names it': [[uses()]],
    'for a suspended session with a turn that waits': [[uses({ status: RAN })], [aTurn()]],
    'for one session among others that do not need it': [[uses({ status: { phase: 'Finished' } }), uses()]],
  };
  for (const [what, [sessions, turns]] of Object.entries(needing)) {
    test(what, async () => {
      const { created } = await lead(sessions, turns);
      assert.deepEqual(
        created.map(({ spec }) => spec.build),
        ['Environment'],
      );
    });
  }

  const without: Record<string, CachedSession[]> = {
    'no session': [],
    'a suspended session without a turn': [uses({ status: RAN })],
    'a session of another class': [uses({ spec: { class: 'other' } })],
    'a session that names another': [uses({ spec: { environment: { name: 'elsewhere' } } as never })],
    'a session that is held': [uses({ spec: { suspend: true } })],
    'a session that has its pod': [uses({ status: { phase: 'Ready', podName: 'p' } })],
    'a session that has finished': [uses({ status: { phase: 'Finished' } })],
    'a session that is being deleted': [uses({ deleting: true })],
  };
  for (const [what, sessions] of Object.entries(without)) {
    test(`not for ${what}`, async () => {
      assert.deepEqual((await lead(sessions)).created, []);
    });
  }
});

test('a change of a session has the Environment that it names looked at again, and no other', async () => {
  const session = uses({ status: { phase: 'Ready', podName: 'p' } });
  const { environments, clock, looks } = await lead([session]);
  const before = { tools: looks.get('tools') ?? 0, others: looks.get('others') ?? 0 };
  environments.watches.session?.(`${NAMESPACE}/${session.metadata.name}`);
  await clock.advance(1);
  assert.deepEqual(Object.fromEntries(looks), { tools: before.tools + 1, others: before.others });
});
