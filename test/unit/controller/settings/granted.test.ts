import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { startTurn } from '../../../../controller/act/start-turn.ts';
import { storeDelivery } from '../../../../controller/act/store-delivery.ts';
import { bodyFacts } from '../../../../controller/caches/slim.ts';
import { decide } from '../../../../controller/decide/decide.ts';
import type { CachedTurn, World } from '../../../../controller/observed/world.ts';
import { grant } from '../../../../controller/settings/granted.ts';
import { awaiting, resumed } from '../../../../controller/status/approval-status.ts';
import { lostAttempt, queued, running } from '../../../../controller/status/turn-status.ts';
import type { Granted, TurnApproval } from '../../../../core/resources/turn.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import {
  aClass,
  aLink,
  aMemory,
  aPod,
  aResult,
  aSession,
  aTurn,
  aWorld,
  NOW,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
  written,
} from '../../../support/world.ts';

const MINUTE = 60_000;
const ago = (ms: number) => new Date(NOW - ms).toISOString();
const session = aSession({ status: RUNNING_STATUS });
const PROMISED: Granted = { timeout: '4h', stall: '1h', start: '30m', approval: '72h', persist: '20m' };
const ceilings = { turn: '1s', stall: '1s', start: '1s', approval: '1s', persist: '1s' };
/** Changes of a class while a turn of it runs. */
const CHANGES: [string, World['class']][] = [
  ['deleted', undefined],
  ['made invalid', aClass({ redact: ['(a+)+b'] })],
  ['given lower ceilings', aClass({ maxTimeouts: ceilings })],
  ['given shorter timeouts', aClass({ timeouts: ceilings })],
  ['no longer allowing what the session sets', aClass({ overrides: [] })],
];
const approval: TurnApproval = {
  id: 'a',
  prompt: 'May I?',
  since: ago(0),
  process: 'Ended',
  incarnation: 1,
  seq: 1,
  ranMs: 0,
};

describe('a turn that begins', () => {
  const beginning = (world: WorldChange, turn = aTurn({ name: 'a' })) => {
    const decision = decide(aWorld({ session, pod: aPod(), link: aLink(), turns: [turn], ...world }));
    const status = written(decision.actions).find(({ phase }) => phase === 'Running');
    assert.ok(status, 'it begins');
    return status.granted;
  };
  const builtIn = { timeout: '30m', start: '10m', approval: '24h', persist: '5m' };
  test('keeps who may not decide on what it asks: those who asked for it, where its class refuses that', () => {
    const own = aSession({ status: RUNNING_STATUS, spec: { requester: 'ann' } });
    const notBy = (selfApproval: 'Allowed' | 'Refused' | undefined, requester?: string) =>
      beginning({ session: own, class: aClass({ selfApproval }) }, aTurn({ name: 'a', spec: { requester } }))?.notBy;
    assert.deepEqual(notBy('Refused', 'bob'), ['bob', 'ann']);
    assert.deepEqual(notBy('Refused', 'ann'), ['ann']);
    assert.deepEqual([notBy('Allowed', 'bob'), notBy(undefined, 'bob')], [undefined, undefined]);
  });

  test('is granted the timeouts of the moment in the write that makes it Running, as they were written', () => {
    assert.deepEqual(beginning({}), builtIn);
    const own = aSession({ spec: { timeouts: { turn: '90m', stall: '5m' } }, status: RUNNING_STATUS });
    const byClass = aClass({ timeouts: { approval: '72h', turn: '1m' }, maxTimeouts: { persist: '2m', stall: '1h' } });
    const granted = { timeout: '90m', stall: '5m', start: '10m', approval: '72h', persist: '2m' };
    assert.deepEqual(beginning({ session: own, class: byClass }), granted);
    assert.equal(beginning({ class: aClass({ maxTimeouts: { stall: '1h' } }) })?.stall, '1h');
  });
  test('is granted its own timeout', () => {
    const waits = { type: 'Finished', status: 'False', reason: 'Queued', message: '', lastTransitionTime: ago(0) };
    const status = { index: 1, phase: 'Queued', conditions: [waits] } as const;
    const turn = () => aTurn({ name: 'a', spec: { timeout: '4h' }, status: status as never });
    const maxTimeouts = { turn: '5h' };
    assert.equal(beginning({ class: aClass({ overrides: ['timeouts'], maxTimeouts }) }, turn())?.timeout, '4h');
    assert.equal(beginning({ class: undefined }, turn())?.timeout, '4h');
  });
  const admitted = { type: 'Admitted', status: 'True' as const, reason: 'Admitted', message: '' };
  const conditions = [{ ...admitted, lastTransitionTime: ago(MINUTE) }];
  const starting = { ...RUNNING_STATUS, phase: 'Starting' as const, conditions };
  const pending = (age: number) => ({
    pod: aPod({ age, status: { phase: 'Pending' } }),
    link: aLink({ phase: 'Opening' }),
  });

  test('that has waited for its pod is granted anew, but the time of the start while it waits', () => {
    const hour = aSession({ status: starting, spec: { timeouts: { start: '1h' } } });
    const [waits] = written(decide(aWorld({ session: hour, ...pending(60), turns: [aTurn({ name: 'a' })] })).actions);
    assert.deepEqual([waits?.phase, waits?.granted], ['Queued', { ...builtIn, start: '1h' }]);
    const waiting = () => aTurn({ name: 'a', status: waits ?? {} });
    for (const [, sessionClass] of CHANGES) {
      const world = { session: aSession({ status: starting }), class: sessionClass, turns: [waiting()] };
      assert.deepEqual(written(decide(aWorld({ ...world, ...pending(59 * 60) })).actions), []);
      assert.equal(written(decide(aWorld({ ...world, ...pending(61 * 60) })).actions)[0]?.error?.code, 'StartFailed');
    }
    assert.deepEqual(beginning({}, waiting()), builtIn);
    const again = aTurn({ status: queued(waiting(), 1, 'AtCapacity', NOW) });
    assert.equal(again.status.granted, undefined, 'a turn without a pod has no grant');
  });
  test('again after a lost attempt keeps what it was granted first', () => {
    const status = { index: 1, phase: 'Queued', attempt: 1, granted: PROMISED } as const;
    const again = aTurn({ name: 'a', spec: { timeout: '4h' }, status });
    assert.deepEqual(
      beginning({ class: aClass({ overrides: ['agent.command'], maxTimeouts: ceilings }) }, again),
      PROMISED,
    );
    const session = aSession({ status: starting });
    const [waits] = written(decide(aWorld({ session, ...pending(60), turns: [again] })).actions);
    assert.deepEqual([waits?.phase, waits?.granted], ['Queued', PROMISED], 'also while it waits for its pod');
  });
  test('is refused by a class that was edited while it waited for its first pod', () => {
    const waiting = aTurn({
      name: 'a',
      spec: { timeout: '4h' },
      status: { index: 1, phase: 'Queued', granted: builtIn },
    });
    const maxTimeouts = { turn: '1h' };
    const world = { session: aSession({ status: starting }), ...pending(60), turns: [waiting] };
    const { actions } = decide(aWorld({ ...world, class: aClass({ overrides: ['timeouts'], maxTimeouts }) }));
    assert.equal(written(actions)[0]?.error?.code, 'NotAllowed');
  });
});

describe('the grant of a turn', () => {
  const turn = runningTurn('a', { status: { granted: PROMISED } });
  test('stays with it while it waits, goes on, or is tried again', () => {
    const waits = awaiting(turn, approval, {}, NOW);
    const decided = { decision: 'Approve', approval: 'x', at: ago(0) } as const;
    const goesOn = resumed({ ...turn, status: waits }, decided, { incarnation: 1, podUID: 'p-1' }, NOW);
    const lost = lostAttempt(turn, { reason: 'PodLost', message: '' }, NOW);
    const facts = { index: 1, incarnation: 1, podUID: 'p-1', granted: PROMISED };
    const retried = running({ ...turn, status: lost }, facts, NOW);
    for (const { granted } of [waits, goesOn, lost, retried]) assert.deepEqual(granted, PROMISED);
  });
  test('is forgotten where it goes back without having been begun, and kept where an earlier attempt was', () => {
    assert.equal(queued(turn, 1, 'Queued', NOW).granted, undefined);
    const second = runningTurn('a', { status: { granted: PROMISED, attempt: 2 } });
    assert.deepEqual(queued(second, 1, 'Queued', NOW).granted, PROMISED);
  });
});

for (const [change, sessionClass] of CHANGES) {
  describe(`while a turn runs and its class is ${change}`, () => {
    const at = (turn: CachedTurn, world: WorldChange) =>
      decide(aWorld({ session, pod: aPod(), class: sessionClass, turns: [turn], ...world }));
    const granted = PROMISED;

    test('the turn has until the timeout that it was granted', () => {
      const turn = runningTurn('a', { status: { granted } });
      const started = (ms: number) => ({ link: aLink({ active: 't-a', started: { turn: 't-a', at: ago(ms) } }) });
      const early = at(turn, started(239 * MINUTE));
      assert.deepEqual([early.actions.map((action) => action.do), early.wakeAt], [[], NOW + MINUTE + 20_000]);
      const late = at(turn, started(241 * MINUTE));
      assert.equal(written(late.actions)[0]?.phase, 'TimedOut');
    });
    test('a turn whose start nobody has told yet has what its pod was granted for that besides', () => {
      const given = (ms: number) => ({
        type: 'Running',
        status: 'True' as const,
        reason: 'Running' as const,
        message: '',
        lastTransitionTime: ago(ms),
      });
      const link = { link: aLink({ active: 't-a', openedAt: NOW - 300 * MINUTE }) };
      const turn = (minutes: number) =>
        runningTurn('a', { status: { granted, conditions: [given(minutes * MINUTE)] } });
      assert.deepEqual(at(turn(269), link).actions, []);
      assert.equal(written(at(turn(271), link).actions)[0]?.phase, 'TimedOut');
    });
    test('a pod that was begun for it has the granted time to start', () => {
      const turn = runningTurn('a', { status: { granted } });
      const opening = (age: number) => ({
        pod: aPod({ age, status: { phase: 'Pending' } }),
        link: aLink({ phase: 'Opening' }),
      });
      assert.deepEqual(written(at(turn, opening(29 * 60)).actions), []);
      assert.equal(written(at(turn, opening(31 * 60)).actions)[0]?.phase, 'Failed');
    });
    test('a turn that asks waits as long as it was granted', () => {
      const waits = (hours: number) =>
        runningTurn('a', {
          status: { phase: 'AwaitingApproval', granted, approval: { ...approval, since: ago(hours * 60 * MINUTE) } },
        });
      assert.deepEqual(written(at(waits(71), { link: aLink() }).actions), []);
      const read = { link: aLink(), memory: { approvalsReadFor: approval.id } };
      assert.equal(written(at(waits(73), read).actions)[0]?.error?.code, 'ApprovalTimeout');
    });
    test('a pod without a runner has until the timeout that its turn was granted', () => {
      const turn = runningTurn('a', { status: { granted } });
      const pod = (ms: number) => {
        const made = aPod({
          status: {
            phase: 'Running',
            containerStatuses: [
              { name: 'session', ready: true, restartCount: 0, state: { running: { startedAt: ago(ms) } } },
            ],
          },
        });
        const labels = { ...made.metadata.labels, 'berth.dev/runner': 'None', 'berth.dev/turn-uid': 't-a' };
        return { ...made, metadata: { ...made.metadata, labels } };
      };
      const ended = (ms: number) => written(at(turn, { pod: pod(ms) }).actions).filter(({ error }) => error);
      assert.deepEqual(ended(239 * MINUTE), []);
      assert.equal(ended(241 * MINUTE)[0]?.phase, 'TimedOut');
    });
    test('every leader tells the runner the granted timeouts', async () => {
      const sent: object[] = [];
      const live = runningTurn('a', { status: { granted, inputDigest: bodyFacts('x').digest } });
      const context = {
        key: 'team/notes',
        memory: aMemory(),
        signal: new AbortController().signal,
        world: aWorld({ session, class: sessionClass }),
        effects: {
          api: { get: async () => ({ ...live, spec: { ...live.spec, input: 'x' } }) },
          caches: { turnsNaming: () => [] },
          links: { get: () => ({ startTurn: (start: object) => sent.push(start) }) },
          clock: systemClock,
        },
      } as unknown as ReconcileContext;
      await startTurn(context, live);
      const [{ timeoutMs, stallMs } = {}] = sent as { timeoutMs?: number; stallMs?: number }[];
      assert.deepEqual([timeoutMs, stallMs], [240 * MINUTE, 60 * MINUTE]);
    });
    test('the result waits for a failing store as long as the turn was granted', async () => {
      const memory = aMemory();
      const after = async (minutes: number) => {
        memory.incarnation.commitProblem = { reason: 'StateNotStored', message: '', since: NOW - minutes * MINUTE };
        const context = {
          key: 'team/notes',
          memory,
          signal: new AbortController().signal,
          world: aWorld({ session, class: sessionClass }),
          effects: {
            clock: { ...systemClock, now: () => NOW },
            log: silentLogger,
            withoutWorker: (work: () => unknown) => work(),
            store: { put: () => Promise.reject(new Error('down')) },
          },
        } as unknown as ReconcileContext;
        const result = { result: aResult('t-a', { output: 'x'.repeat(20_000) }) };
        return storeDelivery(context, runningTurn('a', { status: { granted } }), result).then(
          ({ problems }) => problems.map(({ reason }) => reason),
          (error: Error) => error.message,
        );
      };
      assert.equal(await after(19), 'down');
      assert.deepEqual(await after(21), ['StoreFull']);
    });
  });
}

describe('a turn that a version without grants began', () => {
  test('is judged by the settings of the moment, as that version did', () => {
    const link = aLink({ active: 't-a', started: { turn: 't-a', at: ago(10 * MINUTE) } });
    const look = (sessionClass: World['class']) =>
      decide(aWorld({ session, pod: aPod(), link, class: sessionClass, turns: [runningTurn('a')] }));
    assert.equal(look(aClass()).wakeAt, NOW + 20 * MINUTE + 20_000);
    assert.equal(look(undefined).wakeAt, NOW + 20 * MINUTE + 20_000);
    const lowered = look(aClass({ maxTimeouts: { turn: '9m' } }));
    assert.equal(written(lowered.actions)[0]?.phase, 'TimedOut');
  });
  test('and a grant is what its rule gives', () => {
    assert.equal(grant(runningTurn('a'), { session, class: aClass({ timeouts: { turn: '7m' } }) }).timeout, '7m');
  });
});
