import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type ClaimableFacts, isClaimable, isStarting } from '../../../../controller/pools/claimable.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import { aLink, aPod, NOW } from '../../../support/world.ts';

const HASH = 'hash';
const aWarmPod = (age = 60) => {
  const pod = aPod({ age });
  pod.metadata.labels = { 'berth.dev/template': HASH };
  return pod;
};
const link = aLink({ phase: 'Unbound', protocol: PROTOCOL_VERSION });
const facts: ClaimableFacts = { pod: aWarmPod(), link, node: undefined, now: NOW, protocol: PROTOCOL_VERSION };

const unfit: Record<string, Partial<ClaimableFacts>> = {
  'is being deleted': {
    pod: { ...aWarmPod(), metadata: { ...aWarmPod().metadata, deletionTimestamp: new Date(NOW).toISOString() } },
  },
  'has ended': { pod: { ...aWarmPod(), status: { phase: 'Failed' } } },
  'was made with other settings': { pod: aPod() },
  'is an hour old': { pod: aWarmPod(3600) },
  'is on a cordoned node': { node: { cordoned: true, ready: true } },
  'is on a node that is not ready': { node: { cordoned: false, ready: false } },
  'has no link': { link: undefined },
  'has not answered': { link: aLink({ phase: 'Opening' }) },
  'is bound': { link: aLink({ phase: 'Bound', protocol: PROTOCOL_VERSION }) },
  'owes an answer': { link: { ...link, silentSince: 1 } },
  'cannot be attached': { link: { ...link, unreachableMs: 1 } },
  'waits to be attached again': { link: { ...link, queued: true } },
  'speaks a protocol that is not understood': { link: { ...link, protocol: PROTOCOL_VERSION + 2 } },
};

test('a pod of a pool can be claimed while its runner waits, on a node that takes pods, for less than an hour', () => {
  assert.equal(isClaimable(facts, HASH), true);
  assert.equal(isClaimable({ ...facts, pod: aWarmPod(3599), node: { cordoned: false, ready: true } }, HASH), true);
});
for (const [what, change] of Object.entries(unfit)) {
  test(`a pod of a pool that ${what} cannot be claimed`, () => {
    assert.equal(isClaimable({ ...facts, ...change }, HASH), false);
  });
}

describe('a pod of a pool that still starts', () => {
  const starting: ClaimableFacts = { ...facts, pod: aWarmPod(9), link: aLink({ phase: 'Opening' }) };
  const unschedulable = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' } as const;
  const others: Record<string, Partial<ClaimableFacts>> = {
    'has answered': { link },
    'is ten seconds old': { pod: aWarmPod(10) },
    'finds no node': {
      pod: { ...aWarmPod(9), spec: { containers: [] }, status: { phase: 'Pending', conditions: [unschedulable] } },
    },
    'was made with other settings': { pod: aPod({ age: 9 }) },
    'is on a cordoned node': { node: { cordoned: true, ready: true } },
    'has no link': { link: undefined },
  };

  test('can be claimed, as it is ready before a new one would be', () => {
    assert.deepEqual([isStarting(starting, HASH), isClaimable(starting, HASH)], [true, false]);
  });
  for (const [what, change] of Object.entries(others)) {
    test(`and ${what} is not claimed as such`, () => {
      assert.equal(isStarting({ ...starting, ...change }, HASH), false);
    });
  }
});
