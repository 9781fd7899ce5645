import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { changes, type Fact, learn } from '../../../../controller/observed/memory.ts';
import {
  aMemory,
  aPod,
  aSession,
  aTurn,
  type MemoryChange,
  NOW,
  POD_UID,
  RUNNING_STATUS,
} from '../../../support/world.ts';

const problem = { reason: 'StartFailed', message: 'no' } as const;
const state = (incarnation: number, seq: number) => ({
  digest: `${incarnation}-${seq}`,
  keyId: 'k',
  bytes: 1,
  incarnation,
  seq,
});

const endedPod = aPod({ status: { phase: 'Failed' } });
const otherPod = { ...endedPod, metadata: { ...endedPod.metadata, uid: 'other' } };

const rows: { title: string; before?: MemoryChange; fact: Fact; after: MemoryChange }[] = [
  {
    title: 'a pod that is gone is remembered as it was last seen, which may be after the last reconcile',
    before: { lastPod: aPod() },
    fact: { fact: 'PodGone', pod: endedPod },
    after: { lastPod: endedPod },
  },
  {
    title: 'a pod of an earlier incarnation that is gone says nothing of the present one',
    before: { lastPod: aPod() },
    fact: { fact: 'PodGone', pod: otherPod },
    after: { lastPod: aPod() },
  },
  {
    title: 'the first failure of a creation says since when it fails',
    before: { createFailingSince: 5 },
    fact: { fact: 'CreationFailed', problem, since: 9 },
    after: { startProblem: problem, createFailingSince: 5 },
  },
  {
    title: 'settings have been invalid since the first reconcile that found them so',
    before: { cannotStartSince: 5 },
    fact: { fact: 'SettingsChecked', canStart: false, at: 9 },
    after: { cannotStartSince: 5 },
  },
  {
    title: 'settings that work end that time',
    before: { cannotStartSince: 5 },
    fact: { fact: 'SettingsChecked', canStart: true, at: 9 },
    after: { cannotStartSince: undefined },
  },
  {
    title: 'a log that cannot be read again keeps the time of the first failure',
    before: { logFailing: { podUID: POD_UID, since: 5 } },
    fact: { fact: 'LogUnreadable', podUID: POD_UID, at: 9 },
    after: {},
  },
  {
    title: 'the log of another pod begins anew',
    before: { logFailing: { podUID: 'former', since: 5 } },
    fact: { fact: 'LogUnreadable', podUID: POD_UID, at: 9 },
    after: { logFailing: { podUID: POD_UID, since: 9 } },
  },
  {
    title: 'suspensions that fail in a row are tried again after pauses that double',
    before: { suspensionFailed: { problem, count: 2, againAt: 0, generation: 1 } },
    fact: { fact: 'SuspensionFailed', problem, generation: 1, at: NOW },
    after: { suspensionFailed: { problem, count: 3, againAt: NOW + 20_000, generation: 1 } },
  },
  {
    title: 'an input that was sent is forgotten, and no other',
    before: {
      inputs: new Map([
        ['a', 1],
        ['b', 2],
      ]),
    },
    fact: { fact: 'InputSent', turn: 'a', at: 5 },
    after: { inputs: new Map([['b', 2]]), gaveAt: 5 },
  },
  {
    title: 'a state of an earlier incarnation does not replace a later one',
    before: { committed: state(2, 1) },
    fact: { fact: 'TurnCommitted', state: state(1, 9) },
    after: { committed: state(2, 1) },
  },
  {
    title: 'a pod that is gone is remembered as it was last seen',
    before: { lastPod: aPod() },
    fact: { fact: 'Observed', session: aSession(), turns: [], pod: undefined },
    after: { lastPod: aPod(), uncounted: [], turnCreatedAt: 0, committed: undefined },
  },
  {
    title: 'a broken turn that has not ended stays broken',
    before: { broken: new Map([['t-live', 'why']]) },
    fact: {
      fact: 'Observed',
      session: aSession(),
      turns: [aTurn({ name: 'live', owner: null }), aTurn({ name: 'over', owner: null, status: { phase: 'Failed' } })],
      pod: undefined,
    },
    after: {
      lastPod: undefined,
      uncounted: [],
      turnCreatedAt: 0,
      committed: undefined,
      broken: new Map([['t-live', 'why']]),
    },
  },
  {
    title: 'a broken turn that has ended is broken no longer',
    before: { broken: new Map([['t-gone', 'why']]) },
    fact: { fact: 'Observed', session: aSession(), turns: [], pod: undefined },
    after: { lastPod: undefined, uncounted: [], turnCreatedAt: 0, committed: undefined, broken: new Map() },
  },
];

describe('the memory of a session', () => {
  for (const { title, before, fact, after } of rows) {
    test(title, () => {
      const known = aMemory(before);
      const copy = structuredClone(known);
      assert.deepEqual({ ...known, ...changes(known, fact) }, aMemory({ ...before, ...after }));
      assert.deepEqual(known, copy, 'the reducer assigns nothing');
    });
  }
  test('keeps a turn that was deleted before it was counted, until it is counted', () => {
    const known = aMemory();
    const session = aSession({ status: RUNNING_STATUS });
    const turn = aTurn({ name: 'ended', status: { index: 1, phase: 'Succeeded', state: state(1, 4) } });
    learn(known, { fact: 'Observed', session, turns: [turn], pod: aPod() });
    learn(known, { fact: 'Observed', session, turns: [], pod: aPod() });
    assert.deepEqual(known.uncounted, [turn]);
    assert.deepEqual(known.committed, turn.status.state);
    const lastTurn = { name: 'ended', index: 1, phase: 'Succeeded' } as const;
    const written = aSession({ status: { ...RUNNING_STATUS, lastTurn, state: state(1, 4) } });
    learn(known, { fact: 'Observed', session: written, turns: [], pod: aPod() });
    assert.deepEqual(known.uncounted, []);
    assert.equal(known.committed, undefined);
  });
  test('has nothing of the former incarnation once the next is owned', () => {
    const podUID = POD_UID;
    const known = aMemory({ confirmedGone: { podUID }, logRead: { podUID }, startProblem: problem, lastPod: aPod() });
    learn(known, { fact: 'IncarnationOwned', since: 5 });
    assert.deepEqual(known, aMemory({ ownedSince: 5 }));
  });
});
