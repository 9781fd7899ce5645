import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  acknowledged,
  answered,
  bindSent,
  cancelRefused,
  cancelSent,
  delivered,
  recognized,
  resumeSent,
  silent,
  started,
  suspendSent,
  turnRefused,
  turnSent,
} from '../../../../controller/link/view.ts';
import type { Pong, Ready, Refused } from '../../../../core/frames/messages.ts';
import { aLink, aResult } from '../../../support/world.ts';

describe('a refused turn', () => {
  const view = aLink({ active: 't-2', sent: new Set(['t-1', 't-2']) });
  test('counts as not sent, so that it is sent again', () => {
    const after = turnRefused(view, 'Busy');
    assert.deepEqual([...after.sent], ['t-1']);
    assert.equal(after.suspended, false);
  });
  test('of a suspended runner says that the runner is suspended', () => {
    assert.equal(turnRefused(view, 'Suspended').suspended, true);
    assert.equal(turnRefused({ ...view, suspended: true }, 'Busy').suspended, true);
  });
  test('that has started all the same stays with the runner', () => {
    const started = { ...view, started: { turn: 't-2' } as NonNullable<typeof view.started> };
    assert.equal(turnRefused(started, 'Busy'), started);
  });
});

const refusal = (code: Refused['code']): Refused => ({ n: 1, code }) as Refused;
const aPong = (change: Partial<Pong> = {}): Pong => ({ n: 4, suspended: false, idleMs: 500, ...change }) as Pong;
const facts = { isOurs: true, changeNumber: 3, now: 10_000 };

describe('a control line', () => {
  test('that binds takes back the refusal before it', () => {
    const view = bindSent(aLink({ phase: 'Unbound', refused: refusal('NotRestored') }), 5);
    assert.deepEqual([view.phase, view.bindSentAt, view.refused], ['Binding', 5, undefined]);
  });
  test('that gives a turn makes it the active one, with the request that it decides and no other', () => {
    const resumed = turnSent(aLink({ sent: new Set(['t-1']) }), 't-2', 'r-1');
    assert.deepEqual([[...resumed.sent], resumed.active, resumed.lastDecided], [['t-1', 't-2'], 't-2', 'r-1']);
    assert.equal('lastDecided' in turnSent(resumed, 't-3'), false);
  });
  test('that cancels a turn takes back the refusal of an earlier one only', () => {
    const codes = (['UnknownTurn', 'Suspended'] as const).map(
      (code) => cancelSent(aLink({ refused: refusal(code) }), 't-1', { at: 1 }).refused?.code,
    );
    assert.deepEqual(codes, [undefined, 'Suspended']);
  });
  test('that suspends asks for a new snapshot; one that resumes keeps a turn that is sent still', () => {
    const snapshot = { seq: 4 } as NonNullable<ReturnType<typeof aLink>['snapshot']>;
    const asked = suspendSent(aLink({ snapshot, active: 't-1', sent: new Set(['t-1']) }));
    assert.deepEqual([asked.suspendSent, 'snapshot' in asked, asked.active], [true, false, 't-1']);
    assert.equal(resumeSent(asked).active, 't-1');
    assert.equal('active' in resumeSent({ ...asked, sent: new Set() }), false);
  });
});

describe('an answer to a ping', () => {
  test('shows a turn as lost that the runner does not name', () => {
    const view = aLink({ active: 't-1', sent: new Set(['t-1']) });
    assert.equal('active' in answered(view, aPong(), facts), false);
  });
  test('that is older than the last turn sent says nothing of it', () => {
    const view = aLink({ active: 't-1', sent: new Set(['t-1']) });
    assert.equal(answered(view, aPong({ n: 2 }), facts).active, 't-1');
  });
  test('proves that the runner obeys this leader only where this leader has asked', () => {
    assert.equal(answered(aLink(), aPong(), facts).answered, true);
    assert.equal('answered' in answered(aLink(), aPong(), { ...facts, isOurs: false }), false);
  });
  test("tells the last activity by the controller's clock", () => {
    assert.equal(answered(aLink(), aPong(), facts).lastActivity, 9_500);
    const after = answered(aLink(), aPong({ commandIdleMs: 2_000 }), facts);
    assert.equal(after.commandActivity, 8_000);
    assert.equal('commandActivity' in answered(after, aPong(), facts), false);
  });
  test('tells that clients cannot enter as long as the runner says so', () => {
    const closed = answered(aLink(), aPong({ closedToClients: true }), facts);
    assert.equal(closed.closedToClients, true);
    assert.equal('closedToClients' in answered(closed, aPong(), facts), false);
  });
});

test('the first ready of an attach tells the protocol and the version, and keeps the phase of a known runner', () => {
  const ready = { protocol: 1, runnerVersion: '2.0.0' } as Ready;
  const { protocol, runnerVersion, phase, resumed } = recognized(aLink(), ready, { resumed: true });
  assert.deepEqual({ protocol, runnerVersion, phase, resumed }, { ...ready, phase: 'Bound', resumed: true });
  assert.equal(recognized(aLink(), ready, { phase: 'Foreign' }).phase, 'Foreign');
});

test('a turn that starts ends the lack of a state, and no other refusal', () => {
  const codes = (['NotRestored', 'StaleEpoch'] as const).map(
    (code) => started(aLink({ refused: refusal(code) }), 't-1', 0).refused?.code,
  );
  assert.deepEqual(codes, [undefined, 'StaleEpoch']);
});

test('only the refused cancellation of the active turn shows that it does not run', () => {
  const view = aLink({ active: 't-2' });
  assert.equal(cancelRefused(view, 't-1', 'UnknownTurn'), view);
  assert.equal('active' in cancelRefused(view, 't-2', 'UnknownTurn'), false);
});

describe('a cancellation that the runner refused', () => {
  const view = ['t-1', 't-2'].reduce((before, turn) => cancelSent(before, turn, { at: 1 }), aLink());
  const unknown = ({ cancelSent }: ReturnType<typeof aLink>) =>
    [...(cancelSent ?? [])].flatMap(([turn, sent]) => (sent.unknown ? [turn] : []));
  test('because it never had the turn says so of that turn alone', () => {
    assert.deepEqual(unknown(cancelRefused(view, 't-1', 'UnknownTurn')), ['t-1']);
    assert.deepEqual(unknown(cancelRefused(view, 't-1', 'AlreadyDone')), []);
    assert.deepEqual(unknown(cancelRefused(view, 't-3', 'UnknownTurn')), []);
  });
  test('is forgotten when the turn is given all the same', () => {
    const refused = cancelRefused(view, 't-1', 'UnknownTurn');
    assert.deepEqual([...(turnSent(refused, 't-1').cancelSent ?? []).keys()], ['t-2']);
    assert.equal(turnSent(refused, 't-2').cancelSent, refused.cancelSent);
  });
  test('or not is forgotten with the end of its turn', () => {
    const delivery = { result: aResult('t-2') };
    const after = acknowledged({ ...view, delivery }, delivery.result.seq);
    assert.deepEqual([...(after.cancelSent ?? []).keys()], ['t-1']);
  });
});

test('an acknowledged result is dropped with its turn; the next that waits follows it', () => {
  const result = aResult('t-1');
  const view = aLink({ active: 't-1', sent: new Set(['t-1']), delivery: { result } });
  assert.equal(acknowledged(view, result.seq - 1).delivery?.result, result);
  const after = acknowledged(view, result.seq);
  assert.deepEqual(['delivery' in after, 'active' in after, after.sent.size], [false, false, 0]);
  const asking = { request: { seq: 9 } } as NonNullable<typeof view.asking>;
  const next = delivered(view, { asking });
  assert.deepEqual(['delivery' in next, next.asking], [false, asking]);
});

test('a silence that is the same leaves the view as it is, so that its end is not taken for a change', () => {
  const view = silent(aLink(), { silentSince: 3, unreachableMs: 2_000, othersAnswer: false });
  assert.deepEqual([view.silentSince, view.unreachableMs, view.othersAnswer], [3, 2_000, false]);
  assert.equal(silent(view, { silentSince: 3, unreachableMs: 2_000, othersAnswer: true }), view);
  const over = silent(view, { silentSince: undefined, unreachableMs: 0, othersAnswer: true });
  assert.deepEqual([over.silentSince, 'unreachableMs' in over, 'othersAnswer' in over], [undefined, false, false]);
});
