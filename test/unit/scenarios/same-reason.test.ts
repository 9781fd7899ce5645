import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { perform } from '../../../controller/act/perform.ts';
import { decide } from '../../../controller/decide/decide.ts';
import type { CachedTurn } from '../../../controller/observed/world.ts';
import type { Pod } from '../../../core/kube/builtin.ts';
import { ApiError } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import { type Session, type Turn, turns as turnKind } from '../../../core/resources/kinds.ts';
import { CONTAINER } from '../../../core/resources/names.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { silentLogger } from '../../../core/system.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import {
  aLink,
  aMemory,
  aPod,
  aResult,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  reasonOf,
  runningTurn,
} from '../../support/world.ts';
import { writesOver } from '../../support/writes.ts';

const UNAVAILABLE = new ApiError({ code: 500, reason: 'InternalError', message: 'etcd has no leader' });
const OVER_QUOTA = new ApiError({ code: 403, reason: 'Forbidden', message: 'exceeded quota: pods' });

describe('a session that gets a slot and whose admission cannot be written', () => {
  test('goes on telling what it waited for, and not the quota that refused an earlier pod', async () => {
    const world = new QuietWorld({ maxRunning: 1 });
    await world.start();
    let isFull = true;
    let failures = 0;
    const told: (string | undefined)[] = [];
    world.refuse = ({ verb, resource, name, object }) => {
      if (verb === 'create' && resource === 'pods' && isFull) return OVER_QUOTA;
      if (verb !== 'replace' || resource !== 'sessions' || name !== 'waits') return undefined;
      const { status = {} } = object as Session;
      told.push(reasonOf(status, 'Ready'));
      if (isFull || reasonOf(status, 'Ready') !== 'Starting' || failures > 0) return undefined;
      failures++;
      return UNAVAILABLE;
    };
    await world.session('waits', {}, 'Queued');
    await world.give('first', { ms: 10, output: 1 }, 'waits');
    await world.sessionUntil('waits', ({ status }) => status?.queue?.reason === 'QuotaExceeded');
    isFull = false;
    await world.session('holds');
    await world.sessionUntil('waits', ({ status }) => status?.queue?.reason === 'AtCapacity');
    told.length = 0;
    await world.edit('holds', { suspend: true });
    await world.until(
      'the turn ends',
      () => world.server.get(turnKind, 'team', 'first')?.status?.phase === 'Succeeded',
    );
    assert.deepEqual([failures, told.filter((reason) => reason === 'QuotaExceeded')], [1, []]);
    assert.ok(told.includes('Starting'));
  });
});

describe('a session whose pod did not start, and whose last turn cannot be ended for it at once', () => {
  test('tells no other reason than its turn', async () => {
    const world = new QuietWorld();
    await world.start();
    const terminated = { exitCode: 1, reason: 'Error' };
    let lost = 0;
    let failures = 0;
    const told: unknown[][] = [];
    world.lose = ({ verb, resource }) => {
      if (verb !== 'create' || resource !== 'pods' || lost > 0) return undefined;
      lost++;
      return UNAVAILABLE;
    };
    const statuses = () => ['first', 'second'].map((name) => world.server.get(turnKind, 'team', name)?.status);
    world.refuse = ({ verb, resource, name, object }) => {
      const turn = statuses().find((status) => status && !isTerminal(status.phase));
      if (verb !== 'replace' || !turn) return undefined;
      if (resource === 'sessions')
        told.push([reasonOf((object as Session).status ?? {}, 'Ready'), reasonOf(turn, 'Finished')]);
      if (name !== 'second' || (object as Turn).status?.phase !== 'Failed' || failures > 0) return undefined;
      failures++;
      return UNAVAILABLE;
    };
    await world.session('broken', { suspend: true }, 'Suspended');
    for (const name of ['first', 'second']) await world.give(name, { ms: 10, output: 1 }, 'broken');
    await world.edit('broken', { suspend: false });
    await world.until('the pod', () => lost > 0);
    const [pod] = world.server.list(pods);
    const status = { phase: 'Failed', containerStatuses: [{ name: CONTAINER, state: { terminated } }] };
    await world.server.admin.replace(pods, { ...pod, status } as Pod, { subresource: 'status' });
    await world.until('the end of both turns', () => statuses().every((status) => status?.phase === 'Failed'));
    await world.pass(5_000);
    assert.equal(failures, 1);
    assert.ok(
      told.some(([reason]) => reason === 'StartFailed'),
      JSON.stringify(told),
    );
    assert.deepEqual(
      told.filter(([reason, ofTurn]) => reason === 'StartFailed' && ofTurn !== 'StartFailed'),
      [],
    );
  });
});

describe('a pod that was kept from starting and has taken a turn', () => {
  const at = new Date(NOW - 60_000).toISOString();
  const unschedulable: SessionStatus = {
    ...RUNNING_STATUS,
    phase: 'Starting',
    conditions: [
      { type: 'Admitted', status: 'True', reason: 'Admitted', message: '', lastTransitionTime: at },
      { type: 'Ready', status: 'False', reason: 'Unschedulable', message: '0/2 nodes', lastTransitionTime: at },
    ],
  };
  const session = aSession({ status: unschedulable });
  const pod = aPod({ deleting: true });
  const link = aLink({ phase: 'Opening', delivery: { result: aResult('t-a') } });
  const ready = (turns: CachedTurn[], delivers = true) =>
    reasonOf(
      decide(aWorld({ session, pod, link: delivers ? link : aLink({ phase: 'Opening' }), turns })).status,
      'Ready',
    );
  const behind = aTurn({ name: 'b', status: { index: 2, phase: 'Queued' } });

  test('keeps its session from starting no more, although it was never shown ready', () => {
    assert.equal(ready([runningTurn('a'), behind]), 'Starting', 'as its turn ends');
    const ended = { phase: 'Succeeded' as const, startedAt: at };
    assert.equal(ready([runningTurn('a', { status: ended }), behind], false), 'Starting', 'after its turn has ended');
  });
  test('else the session keeps the reason until its next start', () => {
    assert.equal(ready([behind], false), 'Unschedulable');
    const neverRan = { phase: 'Failed' as const };
    assert.equal(ready([runningTurn('a', { status: neverRan }), behind], false), 'Unschedulable');
    const other = { podUID: `${POD_UID}-other`, phase: 'Succeeded' as const, startedAt: at };
    assert.equal(ready([runningTurn('a', { status: other }), behind], false), 'Unschedulable');
  });
});

describe('a turn that another writer has changed', () => {
  const turn = aTurn({ status: { index: 1, phase: 'Queued' } });
  const status = { ...turn.status, conditions: [] };

  /** Error of a write of what the turn waits for, and the versions that the cache was given. */
  async function written(answer: () => unknown) {
    const seen: unknown[] = [];
    const api = {
      replace: async () => {
        throw new ApiError({ code: 409, reason: 'Conflict', message: 'the object has been modified' });
      },
      get: async () => answer(),
    };
    const context = {
      key: 'team/notes',
      memory: aMemory(),
      signal: new AbortController().signal,
      world: aWorld({ turns: [turn] }),
      effects: { ...writesOver(api, (object) => seen.push(object)), log: silentLogger },
    } as unknown as ReconcileContext;
    const error = await Promise.resolve(perform({ do: 'ShowWait', turn, status }, context)).catch((e: unknown) => e);
    return { seen, code: (error as ApiError).code };
  }

  test('is read, so that the next decision knows what it says however late the watch is', async () => {
    const live = { ...turn, status: { ...status, phase: 'Queued' } };
    assert.deepEqual(await written(() => live), { seen: [live], code: 409 });
  });
  test('is left to the watch where it cannot be read', async () => {
    const fails = () => {
      throw UNAVAILABLE;
    };
    assert.deepEqual(await written(fails), { seen: [], code: 409 });
  });
});
