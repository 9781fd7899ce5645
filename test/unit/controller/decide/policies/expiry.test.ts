import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../../controller/decide/decide.ts';
import type { CachedSession } from '../../../../../controller/observed/world.ts';
import { retention } from '../../../../../controller/settings/retention.ts';
import { aClass, aPod, aSession, aTurn, aWorld, NOW, RUNNING_STATUS } from '../../../../support/world.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const overrides = ['agent.command', 'ttlAfterFinished', 'ttlAfterSuspended', 'history'] as const;
const sessionClass = aClass({ overrides: [...overrides] });

const condition = (type: string, age: number) => ({
  type,
  status: 'True' as const,
  reason: 'x',
  message: '',
  lastTransitionTime: new Date(NOW - age).toISOString(),
});
const finished = (age: number, spec: Partial<CachedSession['spec']> = {}) =>
  aSession({
    spec: { turns: 'One', ...spec },
    status: {
      phase: 'Finished',
      incarnation: 1,
      conditions: [condition('Finished', age)],
      lastTurn: { name: 'notes', index: 1, phase: 'Succeeded' },
    },
  });
const suspended = (age: number, spec: Partial<CachedSession['spec']> = {}, status: CachedSession['status'] = {}) =>
  aSession({
    spec,
    status: { phase: 'Suspended', incarnation: 1, conditions: [condition('Suspended', age)], ...status },
  });
const decided = (session: CachedSession, change: Parameters<typeof aWorld>[0] = {}) =>
  decide(aWorld({ session, class: sessionClass, ...change }));
const expires = (...world: Parameters<typeof decided>) =>
  decided(...world).actions.some((action) => action.do === 'Expire');

describe('a session expires', () => {
  test('a day after it finished with turns: One', () => {
    assert.equal(expires(finished(DAY)), true);
    const early = decided(finished(DAY - 1000));
    assert.deepEqual([early.actions, early.wakeAt], [[], NOW + 1000]);
  });
  test('after thirty days of suspension', () => {
    assert.equal(expires(suspended(30 * DAY)), true);
    assert.equal(decided(suspended(30 * DAY - 1000)).wakeAt, NOW + 1000);
  });
  test('after its own time, where its class allows one', () => {
    assert.equal(expires(finished(HOUR, { ttlAfterFinished: '1h' })), true);
    assert.equal(expires(finished(DAY, { ttlAfterFinished: '25h' })), false);
    assert.equal(expires(suspended(HOUR, { ttlAfterSuspended: '1h' })), true);
  });
  test('after it finished with turns: One, whatever turns it was given and refused since', () => {
    const refused = aTurn({ status: { phase: 'Failed' } });
    assert.equal(expires(finished(DAY), { turns: [refused] }), true);
  });
  test('not before thirty days have passed since its last activity', () => {
    const lastActiveAt = new Date(NOW - DAY).toISOString();
    assert.equal(expires(suspended(30 * DAY, {}, { lastActiveAt })), false);
  });
  test('not before thirty days have passed since it was touched, be that in its status or not', () => {
    const touched = (days: number) => {
      const session = suspended(31 * DAY, {}, { lastActiveAt: new Date(NOW - 31 * DAY).toISOString() });
      session.metadata.annotations = { 'berth.dev/touched-at': new Date(NOW - days * DAY).toISOString() };
      return expires(session);
    };
    assert.deepEqual([touched(2), touched(30)], [false, true]);
  });
  test('not while a turn waits, though it is held and whoever owns it', () => {
    assert.equal(expires(suspended(60 * DAY, { suspend: true }), { turns: [aTurn()] }), false);
    assert.equal(expires(suspended(60 * DAY), { turns: [aTurn({ owner: null })] }), false);
    assert.equal(expires(suspended(60 * DAY, { suspend: true })), true);
  });
  test('not while a turn that has ended is not counted', () => {
    const turn = aTurn({ status: { index: 2, phase: 'Succeeded' } });
    assert.equal(expires(suspended(60 * DAY), { turns: [turn] }), false);
  });
  test('not while it has a pod, is being deleted, or by what only this pass has found out', () => {
    assert.equal(expires(suspended(60 * DAY, {}, { podName: 'p', phase: 'Ready' })), false);
    const deleting = { ...finished(60 * DAY) };
    deleting.metadata = { ...deleting.metadata, deletionTimestamp: new Date(NOW).toISOString() };
    assert.equal(expires(deleting), false);
  });
  test('and is thought of again when it was not deleted', () => {
    assert.equal(decided(finished(DAY)).wakeAt, NOW + 60_000);
  });
});

describe('retention settings', () => {
  const kept = (spec: Partial<CachedSession['spec']>, change: Parameters<typeof aClass>[0] | null = {}) =>
    retention(aSession({ spec }), change ? aClass({ overrides: [...overrides], ...change }) : undefined);
  test('a day or a week finished, thirty days suspended, a hundred turns, a mebibyte', () => {
    assert.deepEqual(kept({}), {
      finishedMs: 7 * DAY,
      suspendedMs: 30 * DAY,
      history: { turns: 100, bytes: 2 ** 20, stored: 2 ** 24 },
    });
    assert.equal(kept({ turns: 'One' }).finishedMs, DAY);
  });
  test('the class says otherwise, the session more so, field by field', () => {
    const ofClass = { ttlAfterFinished: '1h', history: { turns: 5, bytes: '2Mi' } };
    assert.deepEqual(kept({}, ofClass), {
      finishedMs: HOUR,
      suspendedMs: 30 * DAY,
      history: { turns: 5, bytes: 2 ** 21, stored: 2 ** 24 },
    });
    assert.deepEqual(kept({ history: { turns: 7 } }, ofClass).history, { turns: 7, bytes: 2 ** 21, stored: 2 ** 24 });
  });
  test('a session may not say otherwise where its class does not allow it', () => {
    assert.equal(kept({ ttlAfterFinished: '1s' }, { overrides: [] }).finishedMs, 7 * DAY);
    const { status } = decided(aSession({ spec: { ttlAfterFinished: '1s' } }), { class: aClass() });
    assert.equal(status.conditions?.find(({ type }) => type === 'Admitted')?.reason, 'NotAllowed');
  });
  test('a session whose class is gone is kept with its history, whatever it says itself', () => {
    const { POSITIVE_INFINITY: ever } = Number;
    const everything = { finishedMs: ever, suspendedMs: ever, history: { turns: ever, bytes: ever, stored: ever } };
    assert.deepEqual(kept({ ttlAfterFinished: '1h', history: { turns: 1 } }, null), everything);
    const gone = decided(suspended(400 * DAY), { class: undefined });
    assert.deepEqual([gone.actions, gone.wakeAt], [[], ever]);
  });
});

describe('a class that is edited', () => {
  const edited = (generation: number) => ({ ...sessionClass, metadata: { ...sessionClass.metadata, generation } });
  const running = aSession({ status: { ...RUNNING_STATUS, classGeneration: 1 } });
  const outdated = (world: Parameters<typeof aWorld>[0]) =>
    decide(aWorld(world)).status.conditions?.find(({ type }) => type === 'Outdated');
  test('makes a session with a pod Outdated until its next incarnation', () => {
    const before = { session: running, pod: aPod() };
    assert.equal(outdated({ ...before, class: edited(1) }), undefined);
    const now = outdated({ ...before, class: edited(2) });
    assert.deepEqual([now?.status, now?.reason], ['True', 'ClassChanged']);
    const next = aSession({
      status: { ...RUNNING_STATUS, incarnation: 2, classGeneration: 2, conditions: [condition('Outdated', HOUR)] },
    });
    assert.equal(outdated({ session: next, pod: aPod({ incarnation: 2 }), class: edited(2) })?.status, 'False');
  });
  test('does not concern a session without a pod', () => {
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1, classGeneration: 1 } });
    assert.equal(outdated({ session, class: edited(5) }), undefined);
  });
});
