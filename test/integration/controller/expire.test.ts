import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { expire } from '../../../controller/act/expire.ts';
import { slimSession } from '../../../controller/caches/caches.ts';
import { isConflict, isNotFound } from '../../../core/kube/errors.ts';
import { type Session, type StoredSession, sessions, type Turn, turns } from '../../../core/resources/kinds.ts';
import { silentLogger } from '../../../core/system.ts';
import { type BerthServer, berthServer } from '../../support/berth-server.ts';

const namespace = 'test';
const HOUR = 3_600_000;

describe('the live read before a session is deleted', () => {
  let berth: BerthServer;
  beforeAll(async () => {
    berth = await berthServer();
  });
  afterAll(() => berth.close());

  const make = (name: string) =>
    berth.admin.create(sessions, { metadata: { name, namespace }, spec: {} as Session['spec'] });
  const exists = (name: string) =>
    berth.admin.get(sessions, { namespace, name }).then(
      () => true,
      (error) => !isNotFound(error),
    );
  const events: string[] = [];
  function expiring(session: StoredSession, ownTime = Date.now()): Promise<void> {
    const effects = {
      api: berth.admin,
      caches: { sawTurn() {}, isLeftOut: () => false },
      log: silentLogger,
      ownTime: () => ownTime,
      aside: (work: () => unknown) => work(),
      notify: (_session: unknown, { reason }: { reason: string }) => events.push(reason),
    };
    const pass = {
      effects,
      key: `${namespace}/${session.metadata.name}`,
      world: { session: slimSession(session) },
      signal: new AbortController().signal,
    } as unknown as ReconcileContext;
    return expire(pass, { field: 'ttlAfterSuspended', since: Date.now() - HOUR, ttlMs: HOUR - 1000 });
  }

  test('finds nothing, and the session goes with an event', async () => {
    await expiring(await make('old'));
    assert.equal(await exists('old'), false);
    assert.deepEqual(events, ['Expired']);
  });
  test('finds a turn that the cache does not show, and the session stays', async () => {
    const session = await make('asked');
    await berth.admin.create(turns, {
      metadata: { name: 'asked-1', namespace },
      spec: { session: 'asked' } as Turn['spec'],
    });
    await expiring(session);
    assert.equal(await exists('asked'), true);
  });
  test('does not delete what has been woken since', async () => {
    const session = await make('woken');
    const status = { incarnation: 1, podName: 'p', phase: 'Starting' as const };
    await berth.admin.replace(sessions, { ...session, status }, { subresource: 'status' });
    await assert.rejects(expiring(session), isConflict);
    assert.equal(await exists('woken'), true);
  });
  test('does not delete another session of the same name', async () => {
    const session = await make('twice');
    await berth.admin.delete(sessions, { namespace, name: 'twice' });
    await make('twice');
    await assert.rejects(expiring(session), isConflict);
    assert.equal(await exists('twice'), true);
  });
  test('does not delete what by our own clock still has time', async () => {
    await expiring(await make('early'), Date.now() - 10_000);
    assert.equal(await exists('early'), true);
  });
});
