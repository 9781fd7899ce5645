import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
import {
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  RUNNING_STATUS,
  reasonOf,
  stepsOf,
} from '../../../support/world.ts';

/** A session that takes one turn, without an input, a minute old. */
const withoutTurn = (change: Parameters<typeof aSession>[0] = {}) =>
  aSession({ ...change, spec: { turns: 'One', ...change.spec } });
const younger = NOW - 1;
const input = { digest: 'd'.repeat(64), bytes: 7 };

describe('a session that takes one turn, and has neither input nor turn', () => {
  test('is started ahead of its turn in its first minute', () => {
    const world = aWorld({ session: withoutTurn(), now: younger });
    const decision = decide(world);
    assert.deepEqual(stepsOf(decision), ['Admit']);
    assert.equal(decision.wakeAt, NOW);
  });
  test('takes no slot after that, and says what to do', () => {
    const { actions, waiting, status } = decide(aWorld({ session: withoutTurn() }));
    assert.deepEqual([actions, waiting, status.phase], [[], false, 'Suspended']);
    assert.equal(reasonOf(status, 'Ready'), 'InvalidSpec');
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    assert.match(ready?.message ?? '', /^spec\.input: is not set, but spec\.turns is One.*create its Turn/);
  });
  test('gives up its pod after that, also where nothing of it is stored', () => {
    const bound = { pod: aPod(), link: aLink() };
    const status = RUNNING_STATUS;
    assert.deepEqual(does({ ...bound, session: withoutTurn({ status }), now: younger }), []);
    assert.deepEqual(does({ ...bound, session: withoutTurn({ status }) }), ['SuspendRunner']);
    const forgetful = { persistence: { state: false } };
    const session = withoutTurn({ status, spec: forgetful });
    assert.deepEqual(does({ ...bound, session }), ['SuspendRunner']);
    const decision = decide(aWorld({ ...bound, session }));
    const suspended = decision.status.conditions?.find(({ type }) => type === 'Suspended');
    assert.match(suspended?.message ?? '', /It takes one turn, and none has come\.$/);
  });
  test('leaves the queue after that', () => {
    const slot = { waiting: 'AtCapacity', message: 'full', position: 3 } as const;
    assert.equal(decide(aWorld({ session: withoutTurn(), slot, now: younger })).waiting, true);
    const { waiting, status } = decide(aWorld({ session: withoutTurn(), slot }));
    assert.deepEqual([waiting, status.queue], [false, undefined]);
  });
  test('starts when its turn comes, however late', () => {
    assert.deepEqual(does({ session: withoutTurn(), turns: [aTurn()] }), ['Admit']);
    const suspended = withoutTurn({ status: { phase: 'Suspended', incarnation: 1 } });
    assert.deepEqual(does({ session: suspended, turns: [aTurn()] }), ['Admit']);
    assert.deepEqual(does({ session: withoutTurn(), turns: [aTurn({ owner: null })] }), ['AdoptTurn', 'Admit']);
  });
  test('is none of those while its turns are not known, or where its turn is counted', () => {
    assert.deepEqual(does({ session: withoutTurn(), memory: { knowsTurns: false } }), ['Admit']);
    const lastTurn = { name: 'a', index: 1, phase: 'Succeeded' as const };
    const { status } = decide(aWorld({ session: withoutTurn({ status: { phase: 'Finished', lastTurn } }) }));
    assert.equal(reasonOf(status, 'Ready'), 'RunSucceeded');
  });
  test('is none of those with an input, or if it takes many', () => {
    const memory = { firstTurnProblem: undefined };
    assert.deepEqual(does({ session: withoutTurn({ spec: { input } }), memory }), ['CreateFirstTurn', 'Admit']);
    assert.deepEqual(does({ session: aSession() }), ['Admit']);
  });
  test('leaves its only slot to others, and runs its turn when that comes', async () => {
    const world = new QuietWorld({ maxRunning: 1 });
    await world.start();
    const waiting = await world.session('waiting', { turns: 'One' });
    const { status } = await world.sessionUntil('waiting', (session) => session.status?.phase === 'Suspended');
    assert.deepEqual([status?.podName, reasonOf(status ?? {}, 'Ready')], [undefined, 'InvalidSpec']);
    await world.session('other');
    await world.edit('other', { suspend: true });
    assert.equal((await world.turn(waiting, 'at-last', { ms: 10, output: 1 })).status?.phase, 'Succeeded');
    await world.sessionUntil('waiting', (session) => session.status?.phase === 'Finished');
  });
});
