import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { Activity } from './activity.ts';
import { type Facts, LEASES, TURNS } from './facts.ts';

const NEVER = { api: Number.POSITIVE_INFINITY, runner: Number.POSITIVE_INFINITY };

/** Activity of a session whose turn was created at 1 s and deleted at `deletedAt`, as it is at 60 s under a leader since 20 s. */
function withTurn(deletedAt: number): Activity {
  const kubelets = { now: 0 };
  const server = { clock: { now: () => kubelets.now } };
  const activity = new Activity({ server, kubelets, callBehind: () => ({ process: 'b' }) } as unknown as Facts);
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 's', uid: 'session' };
  const creationTimestamp = new Date(1_000).toISOString();
  const turn = { metadata: { uid: 'turn', creationTimestamp, ownerReferences: [owner] }, spec: {} };
  const events = [
    { at: 1_000, storage: TURNS, type: 'ADDED', object: turn },
    { at: 20_000, storage: LEASES, type: 'MODIFIED', object: { spec: { holderIdentity: 'b' } } },
    { at: deletedAt, storage: TURNS, type: 'DELETED', object: turn },
  ];
  for (const { at, ...change } of events.sort((a, b) => a.at - b.at)) {
    kubelets.now = at;
    activity.committed(change as unknown as Change);
  }
  kubelets.now = 60_000;
  return activity;
}

test('a turn that was deleted before its leader led is no activity that it knows of', () => {
  assert.equal(withTurn(10_000).restedMs('session', NEVER, 'b'), 60_000);
  assert.equal(withTurn(40_000).restedMs('session', NEVER, 'b'), 59_000);
});
