import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { GarbageTools } from '../../../../controller/garbage/context.ts';
import { sweepOrphans } from '../../../../controller/garbage/sweep-orphans.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { aPod, SESSION_UID } from '../../../support/world.ts';

/** A pod without a session that is known, in each of two namespaces; `live` is what has become of them since. */
function sweep(closed: (namespace: string) => boolean, live: object = {}) {
  const deleted: string[] = [];
  const orphan = (namespace: string) => {
    const pod = aPod();
    const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: SESSION_UID };
    const labels = {
      'app.kubernetes.io/managed-by': 'berth',
      'berth.dev/session-uid': SESSION_UID,
      'berth.dev/incarnation': '1',
    };
    return { ...pod, metadata: { ...pod.metadata, namespace, uid: namespace, labels, ownerReferences: [owner] } };
  };
  const tools = {
    api: {
      list: async (_resource: unknown, { namespace }: { namespace: string }) => {
        if (namespace === 'lost') throw new ApiError({ code: 403, reason: 'Forbidden', message: 'no' });
        return { metadata: {}, items: [] };
      },
      get: async (_resource: unknown, { namespace }: { namespace: string }) => {
        const pod = orphan(namespace);
        return { ...pod, metadata: { ...pod.metadata, ...live } };
      },
      delete: async (_resource: unknown, { namespace }: { namespace: string }) => void deleted.push(namespace),
    },
    caches: {
      allSessions: () => [],
      allPods: () => [orphan('lost'), orphan('team')],
      closed: (namespace: string) => (closed(namespace) ? 'no' : undefined),
      node: () => undefined,
    },
    store: { list: async () => [] },
    clock: systemClock,
    ownTime: () => systemClock.now(),
    log: silentLogger,
    nodeGraceMs: 60_000,
    namespaces: ['lost', 'team'],
  };
  const done = sweepOrphans(tools as unknown as GarbageTools, new AbortController().signal);
  return { done, deleted };
}

test('no pod of a namespace that cannot be read counts as one without a session, and the other namespaces are swept', async () => {
  const { done, deleted } = sweep((namespace) => namespace === 'lost');
  await done;
  assert.deepEqual(deleted, ['team']);
});

test('a pod that is another one, or not a session’s any more, by the time it would be deleted stays', async () => {
  const job = { apiVersion: 'batch/v1', kind: 'Job', name: 'mine', uid: 'mine' };
  for (const [live, expected] of [
    [{ uid: 'another' }, []],
    [{ ownerReferences: [job] }, []],
    [{ labels: {} }, []],
    [{}, ['team']],
  ] as const) {
    const { done, deleted } = sweep((namespace) => namespace === 'lost', live);
    await done;
    assert.deepEqual(deleted, expected, JSON.stringify(live));
  }
});

test('a namespace that is closed in the middle of a sweep loses no pod by it', async () => {
  let looks = 0;
  const { done, deleted } = sweep((namespace) => namespace === 'lost' && looks++ > 1);
  await assert.rejects(done, /no/);
  assert.deepEqual(deleted, []);
});
