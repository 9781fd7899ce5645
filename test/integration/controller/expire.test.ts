import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { expire } from '../../../controller/act/expire.ts';
import { slimSession } from '../../../controller/caches/slim.ts';
import { isConflict, isNotFound } from '../../../core/kube/errors.ts';
import {
  type Session,
  type SessionClass,
  type StoredSession,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../../../core/resources/kinds.ts';
import { silentLogger } from '../../../core/system.ts';
import { type BerthServer, berthServer } from '../../support/berth-server.ts';

const namespace = 'test';
const HOUR = 3_600_000;

describe('the live read before a session is deleted', () => {
  let berth: BerthServer;
  beforeAll(async () => {
    berth = await berthServer();
    await makeClass('brief', '59m');
    await makeClass('long', '9000h');
  });
  afterAll(() => berth.close());

  const makeClass = (name: string, ttlAfterSuspended: string) =>
    berth.admin.create(sessionclasses, {
      metadata: { name },
      spec: { agent: { command: ['agent'] }, ttlAfterSuspended } as SessionClass['spec'],
    });
  const make = (name: string, ofClass = 'brief') =>
    berth.admin.create(sessions, { metadata: { name, namespace }, spec: { class: ofClass } as Session['spec'] });
  const exists = (name: string) =>
    berth.admin.get(sessions, { namespace, name }).then(
      () => true,
      (error) => !isNotFound(error),
    );
  const events: string[] = [];
  function expiring(session: StoredSession, ownTime = Date.now()): Promise<void> {
    const effects = {
      api: berth.admin,
      caches: { saw() {}, isLeftOut: () => false },
      log: silentLogger,
      ownTime: () => ownTime,
      withoutWorker: (work: () => unknown) => work(),
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
  test('finds that its class keeps it for longer by now, or that there is no class, and the session stays', async () => {
    for (const ofClass of ['long', 'gone']) {
      await expiring(await make(`of-${ofClass}`, ofClass));
      assert.equal(await exists(`of-${ofClass}`), true);
    }
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
