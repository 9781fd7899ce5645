import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError } from '../../../../core/kube/errors.ts';
import { startGarbage } from '../../../support/garbage.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aPod, aTurn, SESSION_UID } from '../../../support/world.ts';

const HOUR = 3_600_000;

/** Lets sweeps of orphans run for some hours. The patch of the first of two late Approvals fails with `error`. */
async function sweep(error: ApiError) {
  const clock = new VirtualClock();
  const ended = new AbortController();
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: SESSION_UID };
  const labels = {
    'app.kubernetes.io/managed-by': 'berth',
    'berth.dev/session-uid': SESSION_UID,
    'berth.dev/incarnation': '1',
  };
  const pod = { ...aPod(), metadata: { ...aPod().metadata, labels, ownerReferences: [owner] } };
  const approval = (name: string) => ({
    metadata: { name, namespace: 'team', uid: name, resourceVersion: '1' },
    spec: { turn: 't-1', requestId: 'r1', decision: 'Approve' },
  });
  const adopted = new Set<string>();
  const deleted = new Set<string>();
  startGarbage(clock, {
    api: {
      list: async () => ({ metadata: {}, items: [] }),
      get: async ({ plural }: { plural: string }) => (plural === 'pods' ? pod : aTurn()),
      patch: async (_resource: unknown, { name }: { name: string }) => {
        if (name === 'a-late') throw error;
        adopted.add(name);
      },
      delete: async (_resource: unknown, { name }: { name: string }) => void deleted.add(name),
    },
    caches: {
      allSessions: () => [],
      allPods: () => [pod],
      allApprovals: () => [approval('a-late'), approval('b-late')],
      turn: () => undefined,
      closed: () => undefined,
      node: () => undefined,
    },
    notify: () => undefined,
    nodeGraceMs: 60_000,
    ended: ended.signal,
  });
  await clock.advance(2 * HOUR);
  ended.abort();
  return { adopted: [...adopted], deleted: [...deleted], pod: pod.metadata.name };
}

const refusal = (code: number, reason: string) => new ApiError({ code, reason, message: 'no' });

describe('an Approval that no turn can be made the owner of', () => {
  test('keeps neither later ones nor pods without a session from being swept where the API server refuses it', async () => {
    for (const error of [refusal(403, 'Forbidden'), refusal(422, 'Invalid')]) {
      const { adopted, deleted, pod } = await sweep(error);
      assert.deepEqual([adopted, deleted], [['b-late'], [pod]], error.reason);
    }
  });

  test('keeps no pod without a session from being swept whatever the error is', async () => {
    const { deleted, pod } = await sweep(refusal(500, 'InternalError'));
    assert.deepEqual(deleted, [pod]);
  });
});
