import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { perform } from '../../../../controller/act/perform.ts';
import type { Action } from '../../../../controller/decide/actions.ts';
import type { Delivery } from '../../../../controller/observed/link-view.ts';
import type { CachedTurn, World } from '../../../../controller/observed/world.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { Resource } from '../../../../core/kube/types.ts';
import type { StoredSessionClass } from '../../../../core/resources/kinds.ts';
import { ANNOTATION_TOUCHED_AT } from '../../../../core/resources/names.ts';
import type { TurnApproval, TurnStatus } from '../../../../core/resources/turn.ts';
import { silentLogger } from '../../../../core/system.ts';
import {
  aClass,
  aLink,
  aMemory,
  aResult,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  SESSION_UID,
} from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

/**
 * Effects that cannot be undone, decided upon from a cache that lags behind the API server: the server has `live`, the
 * cache has what is in `world`.
 */
interface Live {
  session?: ReturnType<typeof aSession>;
  class?: StoredSessionClass;
  turns?: CachedTurn[];
}

async function carryOut(actions: Action | Action[], world: World, live: Live) {
  const reads: string[] = [];
  const done: string[] = [];
  const seen: string[] = [];
  const memory = aMemory({ suspension: { podUID: POD_UID, askedAt: NOW - 100 } });
  const notFound = (name: string) => new ApiError({ code: 404, reason: 'NotFound', message: name });
  type Version = Partial<Record<'name' | 'uid' | 'resourceVersion', string | undefined>>;
  const took = (verb: string, { plural }: Resource, { name, uid, resourceVersion }: Version) => {
    done.push(`${verb} ${plural} ${name} ${uid} ${resourceVersion}`);
    return { metadata: { name, uid } };
  };
  const link = {
    incarnation: 1,
    acknowledge: (seq: number) => done.push(`acknowledge ${seq}`),
    resume: () => done.push('resume'),
    noteUnmatched: () => {},
  };
  const api = {
    get: async ({ plural }: Resource, { name }: { name: string }) => {
      reads.push(`${plural} ${name}`);
      const found = { sessions: live.session, sessionclasses: live.class }[plural as 'sessions'];
      if (!found) throw notFound(name);
      return found;
    },
    list: async ({ plural }: Resource, { fieldSelector = '' }: { fieldSelector?: string }) => {
      assert.equal(plural, 'turns');
      assert.ok(fieldSelector.startsWith('spec.session=notes'), 'only the turns of the session are read');
      return { metadata: {}, items: live.turns ?? [] };
    },
    delete: async (resource: Resource, { name }: Version, version: Version) =>
      took('delete', resource, { ...version, name }),
    patch: async (resource: Resource, { name }: Version, { metadata }: { metadata: Version }) =>
      took('patch', resource, { ...metadata, name }),
    replace: async (resource: Resource, { metadata }: { metadata: Version }) => took('replace', resource, metadata),
  };
  const context = {
    key: 'team/notes',
    memory,
    world,
    signal: new AbortController().signal,
    effects: {
      log: silentLogger,
      clock: { now: () => NOW, monotonic: () => NOW },
      ownTime: () => NOW,
      notify: () => {},
      ...writesOver(api, ({ metadata: { uid } }: CachedTurn, { plural }) => plural === 'sessions' && seen.push(uid)),
      caches: {
        saw: (_: unknown, ...objects: CachedTurn[]) => seen.push(...objects.map(({ metadata: { name } }) => name)),
        isLeftOut: () => false,
        turnsNaming: () => world.turns,
        turn: () => undefined,
      },
      links: { get: () => link },
      leader: { identity: 'ctl', epoch: () => 1 },
    },
  } as unknown as ReconcileContext;
  for (const action of [actions].flat()) await perform(action, context);
  return { done, seen, memory, reads };
}

const session = aSession({ status: RUNNING_STATUS });
const other = { ...session, metadata: { ...session.metadata, uid: 'another' } };
/** What the API server may have by now under the name of a session that the cache still shows. */
const successors: Record<string, Live> = { 'is gone': {}, 'was made again under its name': { session: other } };

describe('an expired session', () => {
  const finished = aSession({ spec: { turns: 'One' }, status: { phase: 'Finished', incarnation: 1 } });
  const world = aWorld({ session: finished, class: aClass() });
  const expiry = { field: 'ttlAfterFinished', since: NOW - 86_400_000, ttlMs: 86_400_000 } as const;
  const expire = (live: Live) => carryOut({ do: 'Expire', expiry }, world, live);

  test('is deleted at the version that was decided upon where nothing is new', async () => {
    assert.deepEqual((await expire({ class: aClass() })).done, [`delete sessions notes ${SESSION_UID} 100`]);
  });
  test.for<TurnStatus>([{}, { index: 3, phase: 'Queued' }, { phase: 'Running' }, { phase: 'AwaitingApproval' }])(
    'stays where a turn waits that the cache does not have: %o',
    async (status) => {
      const { done, seen } = await expire({ class: aClass(), turns: [aTurn({ name: 'new', status })] });
      assert.deepEqual([done, seen], [[], ['new']], 'and the cache has it from now on');
    },
  );
  test('stays where its class keeps it for longer by now', async () => {
    const longer = aClass({ ttlAfterFinished: '48h' });
    assert.deepEqual((await expire({ class: longer })).done, []);
  });
});

describe('a turn without an owner', () => {
  const turn = aTurn({ name: 'stray', owner: null });
  const adopt = (live: Live) => carryOut({ do: 'AdoptTurn', turn }, aWorld({ session, turns: [turn] }), live);

  test('is taken in at the version that was decided upon where its session is there', async () => {
    const { uid, resourceVersion } = turn.metadata;
    assert.deepEqual((await adopt({ session })).done, [`patch turns stray ${uid} ${resourceVersion}`]);
  });
  for (const [what, live] of Object.entries(successors)) {
    test(`is left alone where its session ${what}: it would go with it`, async () => {
      assert.deepEqual((await adopt(live)).done, []);
    });
  }
});

test('turns of a session that is gone cost one read together, however many they are', async () => {
  const strays = [1, 2, 3].map((i) => aTurn({ name: `stray-${i}`, owner: null }));
  const former = [1, 2, 3].map((i) => aTurn({ name: `former-${i}`, owner: 'another' }));
  const actions: Action[] = [
    ...strays.map((turn) => ({ do: 'AdoptTurn', turn }) as const),
    ...former.map((turn) => ({ do: 'EndReplaced', turn, status: { phase: 'Failed' } }) as const),
  ];
  for (const live of Object.values(successors)) {
    const { done, reads } = await carryOut(actions, aWorld({ session, turns: [...strays, ...former] }), live);
    assert.deepEqual([done, reads], [[], ['sessions notes']]);
  }
  const { reads } = await carryOut(actions, aWorld({ session, turns: strays }), { session });
  assert.equal(reads.length, 6, 'each write to a turn is preceded by its read');
});

describe('a turn that another session owns', () => {
  const turn = aTurn({ name: 'former', owner: 'another' });
  const status: TurnStatus = { phase: 'Failed' };
  const end = (live: Live) => carryOut({ do: 'EndReplaced', turn, status }, aWorld({ session, turns: [turn] }), live);

  test('is ended where the session of the name is the one of the cache', async () => {
    const { uid, resourceVersion } = turn.metadata;
    assert.equal((await end({ session })).done[0], `replace turns former ${uid} ${resourceVersion}`);
  });
  for (const [what, live] of Object.entries(successors)) {
    test(`is left alone where that session ${what}: it may be the newer one's`, async () => {
      assert.deepEqual((await end(live)).done, []);
    });
  }
});

const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 6, inline: 'AA==' };

describe('a result that fits no turn of the cache', () => {
  const acknowledge = (turns: CachedTurn[], change: Parameters<typeof aResult>[1] = {}) => {
    const delivery: Delivery = { result: aResult('t-a', change) };
    const world = aWorld({ session, link: aLink({ delivery }) });
    return carryOut({ do: 'Acknowledge', delivery }, world, { turns });
  };

  test('is not acknowledged where the turn runs in this pod by now: it is committed', async () => {
    const { done, seen, memory } = await acknowledge([runningTurn('a')]);
    assert.deepEqual([done, seen], [[], ['a']]);
    assert.equal(memory.incarnation.deletionPending, undefined, 'nor is the pod given up');
  });
  const elsewhere: Record<string, CachedTurn[]> = {
    'is gone': [],
    'has ended': [runningTurn('a', { status: { phase: 'Succeeded' } })],
    'runs in another pod': [runningTurn('a', { status: { podUID: 'p-2' } })],
    'runs again': [runningTurn('a', { status: { attempt: 2 } })],
  };
  for (const [what, turns] of Object.entries(elsewhere)) {
    test(`is acknowledged where the turn ${what}`, async () => {
      assert.deepEqual((await acknowledge(turns)).done, ['acknowledge 7']);
    });
    test(`has its pod given up where the turn ${what} and its state is stored nowhere`, async () => {
      const { done, memory } = await acknowledge(turns, { state: { seq: 6, digest: state.digest } });
      assert.deepEqual([done, memory.incarnation.deletionPending?.podUID], [[], POD_UID]);
    });
  }
  test('is acknowledged with its state where the turn has that state', async () => {
    const ended = runningTurn('a', { status: { phase: 'Succeeded', state } });
    assert.deepEqual((await acknowledge([ended], { state: { seq: 6, digest: state.digest } })).done, ['acknowledge 7']);
  });
});

describe('a request that fits no turn of the cache', () => {
  const message = { turn: 't-a', attempt: 1, id: 'r', prompt: 'May I?', process: 'Alive', state: 'Unchanged' };
  const asking = { request: { seq: 7, kind: 'request', message, binary: Buffer.alloc(0) } } as never;
  const acknowledge = async (turns: CachedTurn[]) =>
    (await carryOut({ do: 'AcknowledgeRequest', asking }, aWorld({ session, link: aLink() }), { turns })).done;
  const approval = (seq: number) => ({ id: 'r', incarnation: 1, seq }) as TurnApproval;

  test('is not acknowledged where the turn runs by now and does not have it: it is committed', async () => {
    assert.deepEqual(await acknowledge([runningTurn('a')]), []);
    const earlier = { phase: 'AwaitingApproval', approval: approval(6) } as const;
    assert.deepEqual(await acknowledge([runningTurn('a', { status: earlier })]), []);
  });
  test('is acknowledged where the turn has it, or asks no more', async () => {
    const has = { phase: 'AwaitingApproval', approval: approval(7) } as const;
    for (const status of [has, { phase: 'Failed' }, { attempt: 2 }] as const)
      assert.deepEqual(await acknowledge([runningTurn('a', { status })]), ['acknowledge 7']);
    assert.deepEqual(await acknowledge([]), ['acknowledge 7']);
  });
});

describe('a suspension that the runner has confirmed', () => {
  const verify = (live: Live) =>
    carryOut({ do: 'VerifySuspension', reason: 'Idle' }, aWorld({ session, link: aLink({ suspended: true }) }), live);
  const quiet = { ...session, status: { ...RUNNING_STATUS, lastActiveAt: new Date(NOW - 86_400_000).toISOString() } };

  test('goes on where nothing is new', async () => {
    const { done, memory } = await verify({ session: quiet });
    assert.deepEqual([done, memory.incarnation.suspension?.verified], [[], 'Unchanged']);
  });
  test('is undone where a turn waits that the cache does not have', async () => {
    const { done, seen, memory } = await verify({ session: quiet, turns: [aTurn({ name: 'new' })] });
    assert.deepEqual([done, memory.incarnation.suspension], [['resume'], undefined]);
    assert.ok(seen.includes('new'));
  });
  test('is undone where somebody has touched the session since', async () => {
    const annotations = { [ANNOTATION_TOUCHED_AT]: new Date(NOW).toISOString() };
    const { done } = await verify({ session: { ...quiet, metadata: { ...quiet.metadata, annotations } } });
    assert.deepEqual(done, ['resume']);
  });
});
