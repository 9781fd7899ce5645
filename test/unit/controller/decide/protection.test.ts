import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import type { Bound } from '../../../../core/frames/messages.ts';
import { PROTECTIONS, type Protection } from '../../../../core/resources/sandbox.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
  written,
} from '../../../support/world.ts';

const FULL: Bound = { runnerVersion: '1', protocol: 1, containment: 'Keeper', hardened: true };
const OPEN: Bound = { ...FULL, hardened: false };
const LOOSE: Bound = { ...FULL, containment: 'ProcessGroup' };
/** Status of a session whose pod has not become ready yet. */
const STARTING: SessionStatus = { ...RUNNING_STATUS, phase: 'Starting' };

const requiring = (...require: Protection[]) => aClass({ sandbox: { require } });
const condition = ({ conditions }: SessionStatus, type: string) => {
  const found = conditions?.find((one) => one.type === type);
  return found && `${found.status}/${found.reason}`;
};

function world(bound: Bound | undefined, change: WorldChange & { status?: SessionStatus; link?: LinkView } = {}) {
  const { status = STARTING, ...rest } = change;
  const link = aLink(bound ? { bound } : {});
  return aWorld({ session: aSession({ status }), pod: aPod(), link, turns: [aTurn({ name: 'first' })], ...rest });
}

const embedded = { ...aWorld().installation, imagesArePrograms: true };

describe('what a runner reports of its protection', () => {
  for (const [title, bound, expected] of [
    ['of an image of Berth', FULL, ['True/RunnerHardened', 'True/AgentContained']],
    ['whose Node can be read', OPEN, ['False/RunnerNotHardened', 'True/AgentContained']],
    ['without a keeper', LOOSE, ['True/RunnerHardened', 'False/AgentNotContained']],
  ] as const) {
    test(`becomes conditions: a runner ${title}`, () => {
      const { status } = decide(world(bound));
      assert.deepEqual(
        PROTECTIONS.map((type) => condition(status, type)),
        expected,
      );
    });
  }

  test('warns by one event for each incarnation', () => {
    const first = decide(world(OPEN)).status;
    const warned = (before: SessionStatus, after: SessionStatus) =>
      noteworthy(before, after).map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(warned(STARTING, first), ['Warning RunnerNotHardened']);
    assert.deepEqual(warned(first, decide(world(OPEN, { status: first })).status), []);
    const memory = { confirmedGone: { podUID: POD_UID } };
    const gone = decide(world(OPEN, { status: first, pod: undefined, memory })).status;
    assert.equal(gone.podName, undefined);
    assert.equal(condition(gone, 'RunnerHardened'), 'Unknown/NotBound');
    const next = { ...STARTING, incarnation: 2, podName: 's-2', podUID: 'p-2', conditions: gone.conditions };
    const pod = aPod({ name: 's-2', uid: 'p-2', incarnation: 2 });
    const link = aLink({ podUID: 'p-2', bound: OPEN });
    const second = decide(world(OPEN, { status: next, pod, link })).status;
    assert.deepEqual(warned(next, second), ['Warning RunnerNotHardened']);
  });

  test('stays told while a new leader has not heard the runner', () => {
    const { status } = decide(world(OPEN));
    const later = decide(world(undefined, { status, link: aLink({ phase: 'Opening' }) }));
    assert.equal(condition(later.status, 'RunnerHardened'), 'False/RunnerNotHardened');
  });

  test('is a condition and no event on the embedded cluster, which isolates nothing', () => {
    const { status } = decide(world(OPEN, { installation: embedded }));
    assert.equal(condition(status, 'RunnerHardened'), 'False/EmbeddedCluster');
    assert.deepEqual(noteworthy(STARTING, status), []);
  });

  test('does not keep a session from its turns where the class requires nothing', () => {
    const { actions, status } = decide(world({ ...OPEN, containment: 'ProcessGroup' }));
    assert.deepEqual(
      actions.map((action) => action.do),
      ['WriteTurn', 'StartTurn'],
    );
    assert.equal(condition(status, 'Ready'), 'True/Ready');
  });
});

describe('a class that requires protections', () => {
  test('gives no turn to a pod before its runner has reported', () => {
    const sessionClass = requiring('RunnerHardened');
    for (const phase of ['Unbound', 'Binding'] as const) {
      const { actions, status } = decide(
        world(undefined, { class: sessionClass, link: aLink({ phase, protocol: 3 }) }),
      );
      assert.ok(!actions.some((action) => action.do === 'StartTurn'), phase);
      assert.equal(condition(status, 'Ready')?.startsWith('False'), true, phase);
    }
  });

  test('fails no turn without an index before the leader has settled, as an earlier leader may give that index', () => {
    const change = { class: requiring('RunnerHardened') };
    const { actions, status } = decide(world(OPEN, { ...change, leaderIsReady: false }));
    assert.deepEqual(actions, []);
    assert.equal(condition(status, 'Ready'), 'False/RunnerNotHardened');
    const turns = [aTurn({ name: 'first', status: { index: 3 } })];
    for (const [readiness, index] of [
      [{}, 1],
      [{ leaderIsReady: false, turns }, 3],
    ] as const) {
      const [failed] = written(decide(world(OPEN, { ...change, ...readiness })).actions);
      assert.deepEqual([failed?.phase, failed?.index], ['Failed', index]);
    }
  });

  test('gives turns to a pod whose runner reports them', () => {
    const { actions, status } = decide(world(FULL, { class: requiring(...PROTECTIONS) }));
    assert.deepEqual(
      actions.map((action) => action.do),
      ['WriteTurn', 'StartTurn'],
    );
    assert.equal(condition(status, 'Ready'), 'True/Ready');
  });

  for (const [title, bound, lacks, code] of [
    ['hardened', OPEN, 'RunnerHardened', 'RunnerNotHardened'],
    ['contained', LOOSE, 'AgentContained', 'AgentNotContained'],
  ] as const) {
    test(`fails the turns that wait for a pod that is not ${title}, with the reason, and deletes the pod`, () => {
      const turns = [aTurn({ name: 'first' }), aTurn({ name: 'second', age: 5 })];
      const { actions, status } = decide(world(bound, { class: requiring(lacks), turns }));
      assert.deepEqual(
        actions.map((action) => action.do),
        ['WriteTurn', 'WriteTurn', 'WriteTurn', 'WriteTurn', 'CloseLink', 'DeletePod'],
      );
      const ends = written(actions).filter(({ phase }) => phase === 'Failed');
      assert.deepEqual(
        ends.map(({ error, index }) => [error?.code, index]),
        [
          [code, 1],
          [code, 2],
        ],
      );
      assert.match(ends[0]?.error?.message ?? '', new RegExp(`Class "default" requires ${lacks}`));
      assert.equal(condition(status, 'Ready'), `False/${code}`);
      assert.equal(noteworthy(STARTING, status).filter(({ reason }) => reason === code).length, 1);
    });
  }

  test('fails them on the embedded cluster too, and says that it isolates nothing', () => {
    const { actions } = decide(world(OPEN, { class: requiring('RunnerHardened'), installation: embedded }));
    const [end] = written(actions).filter(({ phase }) => phase === 'Failed');
    assert.equal(end?.error?.code, 'RunnerNotHardened');
    assert.match(end?.error?.message ?? '', /embedded cluster/);
  });

  test('starts no further pod for a session that has no turn left', () => {
    const failed = decide(world(OPEN, { class: requiring('RunnerHardened'), turns: [] }));
    const memory = { confirmedGone: { podUID: POD_UID } };
    const gone = decide(
      world(undefined, { status: failed.status, pod: undefined, link: undefined as never, turns: [], memory }),
    );
    assert.equal(gone.status.podName, undefined);
    assert.equal(condition(gone.status, 'Ready'), 'False/RunnerNotHardened');
    const next = decide(aWorld({ session: aSession({ status: gone.status }), class: requiring('RunnerHardened') }));
    assert.deepEqual(next.actions, []);
  });

  test('leaves a pod alone that was ready before the class was edited', () => {
    const { status } = decide(world(OPEN));
    const turn = runningTurn('first');
    const { actions } = decide(world(OPEN, { status, class: requiring('RunnerHardened'), turns: [turn] }));
    assert.ok(!actions.some((action) => action.do === 'DeletePod'));
    const idle = decide(world(OPEN, { status, class: requiring('RunnerHardened') }));
    assert.ok(idle.actions.some((action) => action.do === 'StartTurn'));
  });

  test('counts what the last leader wrote of the report', () => {
    const { status } = decide(world(FULL, { class: requiring('RunnerHardened'), turns: [] }));
    const notReady = status.conditions?.filter(({ type }) => type !== 'Ready');
    const resumed = aLink({ resumed: true });
    const { actions } = decide(
      world(undefined, {
        status: { ...status, conditions: notReady },
        class: requiring('RunnerHardened'),
        link: resumed,
      }),
    );
    assert.ok(actions.some((action) => action.do === 'StartTurn'));
  });

  test('asks a bound runner for its report again, now and then, where nobody knows it any more', () => {
    const sessionClass = requiring('RunnerHardened');
    const does = (link: LinkView) => {
      const { actions, wakeAt } = decide(
        world(undefined, { class: sessionClass, link, turns: [runningTurn('first')] }),
      );
      return { actions: actions.map((action) => action.do), wakeAt };
    };
    assert.deepEqual(does(aLink({ resumed: true })).actions, ['Bind']);
    const asked = does(aLink({ resumed: true, bindSentAt: NOW - 1_000 }));
    assert.deepEqual(asked.actions, []);
    assert.ok(asked.wakeAt <= NOW + 4_000);
    assert.deepEqual(does(aLink({ resumed: true, bindSentAt: NOW - 5_000 })).actions, ['Bind']);
  });
});
