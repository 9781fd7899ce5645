import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { perform } from '../../../../controller/act/perform.ts';
import type { CachedTurn } from '../../../../controller/observed/world.ts';
import type { StoredPod } from '../../../../core/kube/builtin.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { KubeObject, Resource } from '../../../../core/kube/types.ts';
import { LABEL_MANAGED_BY, LABEL_SESSION_UID, MANAGED_BY, poolPodName } from '../../../../core/resources/names.ts';
import { silentLogger } from '../../../../core/system.ts';
import {
  aMemory,
  aPod,
  aSession,
  aTurn,
  aWorld,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  SESSION_UID,
} from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const POOL_UID = '00000000-0000-4000-8000-00000000000a';
const NAME = poolPodName(POOL_UID, 0);

/** A pod of a pool as it is for the session with this uid; empty: for none. */
function ofPool(session: string, owner: { kind: string; uid: string } | undefined, uid = POD_UID): StoredPod {
  const pod = aPod({ name: NAME, uid });
  pod.metadata.labels = { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_SESSION_UID]: session };
  pod.metadata.ownerReferences = owner
    ? [{ apiVersion: 'berth.dev/v1alpha1', name: 'o', controller: true, ...owner }]
    : [];
  return pod;
}

/** Confirms that the session's pod is gone, where the API server has `live`. */
async function confirm(live: StoredPod | undefined, turns: CachedTurn[] = []) {
  const memory = aMemory();
  const seen: string[] = [];
  const get = async ({ plural }: Resource, { name }: { name: string }) => {
    if (plural === 'turns') return { metadata: { name } };
    if (!live) throw new ApiError({ code: 404, reason: 'NotFound', message: name });
    return live;
  };
  const status = { ...RUNNING_STATUS, podName: live?.metadata.name ?? NAME };
  const context = {
    memory,
    world: aWorld({ session: aSession({ status }), turns }),
    signal: new AbortController().signal,
    effects: {
      log: silentLogger,
      ...writesOver({ get }, ({ metadata }: KubeObject) => seen.push(metadata.name ?? '')),
    },
  } as unknown as ReconcileContext;
  const failed = await Promise.resolve(perform({ do: 'ConfirmGone', podUID: POD_UID }, context)).catch(
    (error) => error,
  );
  return { failed, seen, isGone: memory.incarnation.confirmedGone?.podUID === POD_UID };
}

const ours = ofPool(SESSION_UID, { kind: 'Session', uid: SESSION_UID });

describe('a pod that the cache does not show', () => {
  test('is gone where the API server has none, and its turns that have not ended are read again', async () => {
    const turns = [
      runningTurn('running'),
      aTurn({ name: 'ended', status: { index: 1, phase: 'Succeeded', podUID: POD_UID } }),
      aTurn({ name: 'waiting' }),
    ];
    assert.deepEqual(await confirm(undefined, turns), { failed: undefined, seen: ['running'], isGone: true });
  });

  test('is not gone where the API server has it: the cache is told, and it is looked at again', async () => {
    const { failed, seen, isGone } = await confirm(ours);
    assert.ok(failed instanceof TransportError);
    assert.deepEqual([seen, isGone], [[NAME], false]);
  });

  const others: Record<string, StoredPod> = {
    'another pod has its name': ofPool(SESSION_UID, { kind: 'Session', uid: SESSION_UID }, 'another'),
    'no session has claimed it': ofPool('', { kind: 'SessionPool', uid: POOL_UID }),
    'another session has claimed it': ofPool('other', { kind: 'Session', uid: 'other' }),
    'it has no owner and the labels of another session': ofPool('other', undefined),
  };
  for (const [what, live] of Object.entries(others)) {
    test(`is gone for its session where ${what}`, async () => {
      assert.deepEqual(await confirm(live), { failed: undefined, seen: [NAME], isGone: true });
    });
  }

  test('is not gone where it has no owner any more, and the labels of the session', async () => {
    assert.equal((await confirm(ofPool(SESSION_UID, undefined))).isGone, false);
  });
});
