import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { Activity } from './activity.ts';
import { type Facts, LEASES, TURNS } from './facts.ts';

const NEVER = { api: Number.POSITIVE_INFINITY, runner: Number.POSITIVE_INFINITY };
const at = (ms: number) => new Date(ms).toISOString();

/** Activity of a session whose turn was created at 1 s and deleted at `deletedAt`, under a leader since 20 s. */
function withTurn(deletedAt: number): Activity {
  let now = 0;
  let process: string | undefined;
  const clock = { now: () => now };
  const facts = {
    server: { clock },
    kubelets: {
      get now() {
        return now;
      },
    },
    callBehind: () => process && { process },
  };
  const activity = new Activity(facts as unknown as Facts);
  const owner = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 's', uid: 'session' };
  const turn = { metadata: { uid: 'turn', creationTimestamp: at(1_000), ownerReferences: [owner] }, spec: {} };
  const events: [number, Partial<Change>, string?][] = [
    [1_000, { storage: TURNS, type: 'ADDED', object: turn as never }],
    [20_000, { storage: LEASES, type: 'MODIFIED', object: { spec: { holderIdentity: 'b' } } as never }, 'b'],
    [deletedAt, { storage: TURNS, type: 'DELETED', object: turn as never }],
  ];
  for (const [time, change, by] of events.sort(([a], [b]) => a - b)) {
    [now, process] = [time, by];
    activity.committed(change as Change);
  }
  now = 60_000;
  return activity;
}

test('a turn that was deleted before its leader led is no activity that it knows of', () => {
  assert.equal(withTurn(10_000).restedMs('session', NEVER, 'b'), 60_000);
  assert.equal(withTurn(40_000).restedMs('session', NEVER, 'b'), 59_000);
});
