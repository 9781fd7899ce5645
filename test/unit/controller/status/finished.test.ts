import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { slimTurn } from '../../../../controller/caches/slim.ts';
import { decide } from '../../../../controller/decide/decide.ts';
import { awaitsFirstTurn } from '../../../../controller/decide/policies/turns.ts';
import type { CachedTurn } from '../../../../controller/observed/world.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import { type Ending, ended } from '../../../../controller/status/turn-status.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import { type Reason, reasons } from '../../../../core/resources/reasons.ts';
import {
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  RUNNING_STATUS,
  reasonOf,
  type WorldChange,
} from '../../../support/world.ts';

/** Ends of the only turn: phase, code of its error, reason of the session's conditions Finished and Ready. */
const ENDS: [Ending['phase'], string | undefined, string][] = [
  ['Succeeded', undefined, 'RunSucceeded'],
  ['Cancelled', 'Cancelled', 'Cancelled'],
  ['TimedOut', 'TurnTimedOut', 'TurnTimedOut'],
  ['TimedOut', 'LifetimeExceeded', 'LifetimeExceeded'],
  ['Failed', 'AgentFailed', 'AgentFailed'],
  ['Failed', 'StartFailed', 'StartFailed'],
  ['Failed', 'OfALaterRelease', 'RunFailed'],
];

describe('a session of one turn', () => {
  const spec = { turns: 'One' as const, input: { digest: 'd'.repeat(64), bytes: 7 } };
  /** The turn as the caches have it. */
  const over = (phase: Ending['phase'], code: string | undefined) => {
    const turn = aTurn({ name: 'a', status: { index: 1 } });
    const status = ended(turn, { phase, reason: (code ?? 'Succeeded') as Reason, message: 'as it was' }, NOW);
    return slimTurn({ ...turn, spec: { ...turn.spec, input: 1 }, status } as StoredTurn);
  };

  for (const [phase, code, reason] of ENDS) {
    test(`whose turn ended ${phase}/${code ?? ''} is finished as ${reason}, also once the turn is out of sight`, () => {
      const session = aSession({ spec, status: RUNNING_STATUS });
      const first = decide(aWorld({ session, turns: [over(phase, code)] })).status;
      const later = decide(aWorld({ session: aSession({ spec, status: first }) })).status;
      for (const status of [first, later]) {
        assert.equal(status.phase, 'Finished');
        assert.deepEqual([reasonOf(status, 'Finished'), reasonOf(status, 'Ready')], [reason, reason]);
        const finished = status.conditions?.find(({ type }) => type === 'Finished');
        assert.equal(finished?.status, 'True');
        if (phase !== 'Succeeded')
          assert.equal(finished?.message, `The turn ended ${phase}. ${reasons[reason as 'Cancelled']}`);
      }
      assert.equal(later.lastTurn?.code, code);
    });
  }
  test('that an earlier release has counted is finished as RunFailed', () => {
    const lastTurn = { name: 'a', index: 1, phase: 'Cancelled' as const };
    const session = aSession({ spec, status: { phase: 'Finished', lastTurn } });
    assert.equal(reasonOf(decide(aWorld({ session })).status, 'Finished'), 'RunFailed');
  });
  test('has one event of its own for the end of its turn, which says how that ended', () => {
    const events = (...end: Parameters<typeof over>) => {
      const session = aSession({ spec, status: RUNNING_STATUS });
      const { status } = decide(aWorld({ session, turns: [over(...end)] }));
      assert.deepEqual(noteworthy(status, { ...status, phase: 'Finished' }), [], 'once');
      return noteworthy(session.status, status).map(({ type, reason, message }) => [type, reason, message]);
    };
    assert.deepEqual(events('Succeeded', undefined), [['Normal', 'Finished', reasons.RunSucceeded]]);
    const failed = `StartFailed: The turn ended Failed. ${reasons.StartFailed}`;
    assert.deepEqual(events('Failed', 'StartFailed'), [['Normal', 'Finished', failed]]);
  });
  test('takes the turn in its input, although another came before that could be created', () => {
    const exists = { type: 'Ready', status: 'False' as const, reason: 'TurnExists', message: '' };
    const conditions = [{ ...exists, lastTransitionTime: new Date(NOW).toISOString() }];
    const waits = { session: aSession({ spec, status: { phase: 'Queued', conditions } }) };
    const runs = { session: aSession({ spec, status: RUNNING_STATUS }), pod: aPod(), link: aLink() };
    const other = aTurn({ name: 'other', age: 9 });
    const own = aTurn({ name: waits.session.metadata.name, age: 1 });
    const codes = (world: WorldChange, ...turns: CachedTurn[]) => {
      const { actions } = decide(aWorld({ ...world, turns, memory: { firstTurnProblem: undefined } }));
      const writes = actions.flatMap((action) => (action.do === 'WriteTurn' ? [action] : []));
      return Object.fromEntries(writes.map(({ turn, status }) => [turn.metadata.name, status.error?.code]));
    };
    const refused = { other: 'SessionFinished' };
    assert.deepEqual(codes(waits, other), refused);
    for (const world of [waits, runs]) {
      assert.deepEqual(codes(world, other, own), { ...refused, [own.metadata.name]: undefined });
    }
    assert.deepEqual(codes(runs, other), { other: undefined }, 'its own was deleted');
  });
  test('whose turn had too deep an input is given no other', () => {
    const session = aSession({ spec, status: RUNNING_STATUS });
    const { status } = decide(aWorld({ session, turns: [over('Failed', 'InputTooDeep')] }));
    assert.equal(reasonOf(status, 'Ready'), 'InputTooDeep');
    assert.equal(awaitsFirstTurn(status), false);
  });
});
