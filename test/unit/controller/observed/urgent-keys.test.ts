import assert from 'node:assert/strict';
import { test } from 'vitest';
import { urgentKeys } from '../../../../controller/observed/urgency.ts';
import { poolPodName } from '../../../../core/resources/names.ts';
import { aPod, aTurn, SESSION_UID } from '../../../support/world.ts';

const POOL_UID = '00000000-0000-4000-8000-00000000000a';

function ownedPod(name: string, labels: Record<string, string>, kind: string, uid: string, owner: string) {
  const pod = aPod({ name });
  const ownerReferences = [{ apiVersion: 'berth.dev/v1alpha1', kind, name: owner, uid }];
  return { ...pod, metadata: { ...pod.metadata, labels, ownerReferences } };
}

test('sessions with pods are the most urgent, then those with turns; a pod that no session has claimed is nobody’s', () => {
  const unclaimed = { 'berth.dev/session-uid': '', 'berth.dev/pool-uid': POOL_UID };
  const pods = [
    ownedPod(poolPodName(POOL_UID, 0), unclaimed, 'SessionPool', POOL_UID, 'warm'),
    ownedPod(`s-${SESSION_UID}-1`, { 'berth.dev/session-uid': SESSION_UID }, 'Session', SESSION_UID, 'notes'),
  ];
  const turns = ['first', 'notes', 'second', 'first'].map((session) => aTurn({ spec: { session } }));
  const keys = urgentKeys({ allPods: () => pods, allTurns: () => turns });
  assert.deepEqual([...keys], ['team/notes', 'team/first', 'team/second']);
});
