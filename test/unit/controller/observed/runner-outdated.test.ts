import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import {
  aClass,
  aLink,
  aPod,
  aResult,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  reasonOf,
  runningTurn,
  type WorldChange,
} from '../../../support/world.ts';

const READY = {
  ...RUNNING_STATUS,
  conditions: [{ type: 'Ready', status: 'True' as const, reason: 'Ready', message: '', lastTransitionTime: '' }],
};
const BEFORE = PROTOCOL_VERSION - 2;

/** The world of a session whose pod an earlier controller has bound, with a runner of this protocol. */
const world = (protocol: number, { link = {}, ...change }: Omit<WorldChange, 'link'> & { link?: object } = {}) => ({
  session: aSession({ status: READY }),
  pod: aPod(),
  link: aLink({ resumed: true, protocol, lastActivity: NOW, ...link }),
  ...change,
});

const parked = (change: Partial<TurnStatus['approval']> = {}) =>
  runningTurn('asks', {
    status: {
      phase: 'AwaitingApproval',
      approval: { id: 'r1', prompt: '', since: new Date(NOW).toISOString(), ranMs: 1, process: 'Alive', ...change },
    } as TurnStatus,
  });

describe('a runner that an earlier release has bound', () => {
  for (const [apart, suspended] of [
    [-3, true],
    [-2, true],
    [-1, false],
    [0, false],
    [1, false],
    [2, true],
  ] as const) {
    test(`${apart} protocol versions from the controller’s is ${suspended ? 'suspended' : 'kept'}`, () => {
      const { actions, status } = decide(aWorld(world(PROTOCOL_VERSION + apart)));
      assert.deepEqual(
        actions.map((action) => action.do),
        suspended ? ['SuspendRunner'] : [],
      );
      assert.equal(reasonOf(status, 'Outdated'), suspended ? 'RunnerOutdated' : undefined);
      assert.equal(status.phase, suspended ? 'Suspending' : 'Ready');
    });
  }

  test('ends its turn first, and the next one is not given to it', () => {
    const next = aTurn({ name: 'next', status: { index: 2, phase: 'Queued', conditions: [] } });
    const runs = world(BEFORE, { turns: [runningTurn('a'), next], link: { active: 't-a', sent: new Set(['t-a']) } });
    assert.ok(!does(runs).includes('SuspendRunner'));
    assert.equal(reasonOf(decide(aWorld(runs)).status, 'Outdated'), 'RunnerOutdated');
    const delivered = { ...runs, link: { ...runs.link, delivery: { result: aResult('t-a') } } };
    assert.deepEqual(does(delivered).at(-1), 'Commit');
    const after = does(world(BEFORE, { turns: [next] }));
    assert.ok(after.includes('SuspendRunner') && !after.includes('StartTurn'), `${after}`);
  });

  test('gets no turn either while the status does not have its last state yet', () => {
    const state = { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 4, inline: '' };
    const ended = aTurn({
      name: 'a',
      status: { index: 1, phase: 'Succeeded', podUID: POD_UID, incarnation: 1, state },
    });
    const next = aTurn({ name: 'next', status: { index: 2, phase: 'Queued', conditions: [] } });
    const change = { turns: [ended, next] };
    assert.deepEqual(does(world(BEFORE, change)), []);
    assert.deepEqual(does(world(PROTOCOL_VERSION, change)), ['WriteTurn', 'StartTurn']);
  });

  test('that waits for a decision is suspended with its request, and is not told the decision', () => {
    assert.ok(does(world(BEFORE, { turns: [parked()] })).includes('SuspendRunner'));
    const decided = { by: '', decision: 'Approve' as const, at: '' };
    const told = does(world(BEFORE, { turns: [parked({ decided } as never)] }));
    assert.ok(told.includes('SuspendRunner') && !told.includes('Consume'), `${told}`);
  });

  test('says why in the conditions', () => {
    const { status } = decide(aWorld(world(BEFORE)));
    const words = `speaks protocol ${BEFORE}, the controller ${PROTOCOL_VERSION}`;
    for (const type of ['Outdated', 'Suspended'])
      assert.match(status.conditions?.find((one) => one.type === type)?.message ?? '', new RegExp(words), type);
    const silent = decide(aWorld(world(BEFORE, { session: aSession({ status }), link: { phase: 'Opening' } }))).status;
    assert.equal(reasonOf(silent, 'Outdated'), 'RunnerOutdated');
  });

  test('takes turns while its suspension is backed off, and goes on being told as outdated', () => {
    const problem = { reason: 'StateNotStored' as const, message: '' };
    const memory = { suspensionFailed: { problem, count: 1, againAt: NOW + 1, generation: 1 } };
    const { actions, status } = decide(aWorld(world(BEFORE, { memory, turns: [aTurn()] })));
    assert.ok(actions.some((action) => action.do === 'StartTurn'));
    assert.equal(reasonOf(status, 'Outdated'), 'RunnerOutdated');
  });

  test('keeps its pod where its session keeps no state', () => {
    const change = { class: aClass({ persistence: { state: false }, timeouts: { lifetime: '1h' } }), turns: [aTurn()] };
    assert.ok(does(world(BEFORE, change)).includes('StartTurn'));
  });
});

describe('a new leader', () => {
  const turns = [aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } })];

  test('gives a turn to a pod that was bound before it only once its runner has said its version', () => {
    const opening = world(BEFORE, { turns, link: { phase: 'Opening', protocol: undefined, fresh: false } });
    assert.deepEqual(does(opening), []);
    assert.deepEqual(does({ ...opening, link: undefined as never }), ['OpenLink']);
    assert.deepEqual(does(world(PROTOCOL_VERSION, { turns })), ['WriteTurn', 'StartTurn']);
  });

  const unbound = { phase: 'Unbound', resumed: false };
  const cold = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } });
  const other = aPod();
  other.spec.containers = [{ name: 'session', image: 'runner:0' }];

  test('deletes an unbound pod of another release that it does not understand, and binds one that it does', () => {
    const change = { session: cold, turns, link: unbound };
    assert.deepEqual(does(world(BEFORE, { ...change, pod: other })), ['CloseLink', 'DeletePod']);
    assert.ok(does(world(PROTOCOL_VERSION - 1, { ...change, pod: other })).includes('Bind'));
  });

  test('waits for one that the next pod would be like, and for the second in a row', () => {
    assert.ok(does(world(BEFORE, { session: cold, turns, link: unbound })).includes('Bind'));
    const startFailures = { count: 1, reason: 'PodLost', message: '', since: '', at: '', incarnation: 0 };
    const again = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting', startFailures } });
    assert.ok(does(world(BEFORE, { session: again, turns, link: unbound, pod: other })).includes('Bind'));
  });
});
