import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { SuspensionReason } from '../../../../controller/decide/actions.ts';
import { type Recheck, suspensionVeto } from '../../../../controller/decide/suspension-veto.ts';
import type { CachedApproval } from '../../../../controller/observed/world.ts';
import { defined } from '../../../../core/defined.ts';
import { aClass, aSession, aTurn, NOW, RUNNING_STATUS } from '../../../support/world.ts';

const ASKED = NOW - 5_000;
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
type Live = Recheck['session'];
const session = (spec: object = {}) => aSession({ spec, status: { ...RUNNING_STATUS, lastTurn: counted } });
const counted = { name: 'counted', index: 1, phase: 'Succeeded' } as const;
const live = (change: { spec?: object; metadata?: object } = {}): Live => {
  const present = session(change.spec);
  return { ...present, metadata: { ...present.metadata, ...change.metadata } } as Live;
};
const touched = (seconds: number) => ({ annotations: { 'berth.dev/touched-at': at(seconds) } });
const asking = aTurn({
  name: 'asks',
  status: {
    index: 2,
    phase: 'AwaitingApproval',
    approval: { id: 'r1', prompt: '?', since: at(-60), process: 'Alive', incarnation: 1, seq: 3, ranMs: 0 },
  },
});
const approval = (requestId: string) =>
  ({
    metadata: { name: 'yes', namespace: 'team', uid: 'a1', resourceVersion: '1', creationTimestamp: at(-1) },
    spec: { turn: 'asks', requestId, decision: 'Approve' },
    responseBytes: 0,
  }) as CachedApproval;
const endedTurn = (index: number, seconds: number) =>
  aTurn({ name: `ended-${index}`, status: { index, phase: 'Succeeded', finishedAt: at(seconds) } });

const shown = {
  type: 'Finished',
  status: 'False',
  reason: 'GroupLimit',
  message: '',
  lastTransitionTime: at(-60),
} as const;
const limited = aTurn({ name: 'limited', status: { index: 2, phase: 'Queued', conditions: [shown] } });
const noRoom = { ...shown, reason: 'StoreShareUsed' } as const;
const short = aTurn({ name: 'short', status: { index: 2, phase: 'Queued', conditions: [noRoom] } });

const rows: {
  title: string;
  reason: SuspensionReason;
  spec?: object;
  recheck?: Partial<Recheck>;
  lastActivity?: number;
  commandActivity?: number;
  veto: string | undefined;
}[] = [
  { title: 'nothing new', reason: 'Idle', veto: undefined },
  {
    title: 'a session of the same name',
    reason: 'Held',
    recheck: { session: live({ metadata: { uid: 'other' } }) },
    veto: 'another session has the name',
  },
  {
    title: 'a request that was taken back',
    reason: 'Requested',
    spec: { suspendRequest: 'a' },
    veto: 'it was asked for otherwise',
  },
  { title: 'a turn that waits', reason: 'Requested', recheck: { turns: [aTurn({ name: 'new' })] }, veto: 'turn new' },
  {
    title: 'a turn that waits while turns are held',
    reason: 'Held',
    spec: { suspend: true },
    recheck: { session: live({ spec: { suspend: true } }), turns: [aTurn({ name: 'new' })] },
    veto: undefined,
  },
  {
    title: 'a turn without an owner',
    reason: 'Requested',
    recheck: { turns: [aTurn({ name: 'free', owner: null })] },
    veto: 'turn free',
  },
  {
    title: "another session's turn",
    reason: 'Idle',
    recheck: { turns: [aTurn({ name: 'theirs', owner: 'other' })] },
    veto: undefined,
  },
  ...(['RunnerOutdated', 'Restart'] as const).flatMap((reason) => [
    {
      title: 'a turn that waits for the next pod',
      reason,
      recheck: { turns: [aTurn({ name: 'new' })] },
      veto: undefined,
    },
    {
      title: 'a turn that was given to the runner meanwhile',
      reason,
      recheck: { turns: [aTurn({ name: 'new' }), aTurn({ name: 'runs', status: { index: 1, phase: 'Running' } })] },
      veto: 'turn runs',
    },
    {
      title: 'the decision on what a turn asks',
      reason,
      recheck: { turns: [asking], approvals: [approval('r1')] },
      veto: undefined,
    },
    { title: 'activity that the runner told of', reason, lastActivity: NOW - 1_000, veto: undefined },
  ]),
  { title: 'a turn that asks', reason: 'Preempted', recheck: { turns: [asking] }, veto: undefined },
  { title: 'a turn that asks', reason: 'Idle', recheck: { turns: [asking] }, veto: 'turn asks' },
  { title: 'a turn that waits for its group', reason: 'Preempted', recheck: { turns: [limited] }, veto: undefined },
  { title: 'a turn that waits for room', reason: 'Preempted', recheck: { turns: [short] }, veto: undefined },
  { title: 'a turn that waits for its group', reason: 'Idle', recheck: { turns: [limited] }, veto: 'turn limited' },
  {
    title: 'a turn that its group admits by now',
    reason: 'Preempted',
    recheck: { turns: [limited, aTurn({ name: 'runs', status: { index: 1, phase: 'Running' } })] },
    veto: 'turn limited',
  },
  {
    title: 'the decision on what a turn asks',
    reason: 'Preempted',
    recheck: { turns: [asking], approvals: [approval('r1')] },
    veto: 'the decision on request r1',
  },
  {
    title: 'a decision on an earlier request',
    reason: 'Preempted',
    recheck: { turns: [asking], approvals: [approval('r0')] },
    veto: undefined,
  },
  {
    title: 'a change of the spec',
    reason: 'Idle',
    recheck: { session: live({ metadata: { generation: 2 } }) },
    veto: 'the session was changed',
  },
  {
    title: 'a change of the spec',
    reason: 'Requested',
    recheck: { session: live({ metadata: { generation: 2 } }) },
    veto: undefined,
  },
  {
    title: 'a touch since it was asked',
    reason: 'Preempted',
    recheck: { session: live({ metadata: touched(-1) }) },
    veto: 'activity',
  },
  {
    title: 'a touch before it was asked',
    reason: 'Preempted',
    recheck: { session: live({ metadata: touched(-9) }) },
    veto: undefined,
  },
  {
    title: 'a touch within timeouts.idle',
    reason: 'Idle',
    recheck: { session: live({ metadata: touched(-9) }) },
    veto: 'activity',
  },
  { title: 'activity that the runner told of', reason: 'Moves', lastActivity: NOW - 1_000, veto: 'activity' },
  { title: 'activity that the runner told of', reason: 'Requested', lastActivity: NOW - 1_000, veto: undefined },
  { title: 'a command of a client', reason: 'Idle', commandActivity: NOW - 1_000, veto: 'activity' },
  { title: 'a command of a client', reason: 'Moves', commandActivity: NOW - 1_000, veto: undefined },
  { title: 'a command of a client', reason: 'Preempted', commandActivity: NOW - 1_000, veto: undefined },
  { title: 'the end of a turn since', reason: 'Moves', recheck: { turns: [endedTurn(2, -1)] }, veto: 'activity' },
  { title: 'the end of a counted turn', reason: 'Moves', recheck: { turns: [endedTurn(1, -1)] }, veto: undefined },
];

describe('a suspension', () => {
  for (const { title, reason, spec, recheck, lastActivity, commandActivity, veto } of rows) {
    test(`as ${reason} ${veto === undefined ? 'goes on in spite of' : 'is undone because of'} ${title}`, () => {
      const link = defined({ lastActivity, commandActivity });
      const world = { session: session(spec), class: aClass(), link };
      const found = suspensionVeto(world, reason, ASKED, {
        now: NOW,
        session: live(),
        turns: [],
        approvals: [],
        ...recheck,
      });
      assert.equal(found, veto);
    });
  }
});
