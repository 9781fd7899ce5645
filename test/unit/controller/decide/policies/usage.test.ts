import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Effects, ReconcileContext } from '../../../../../controller/act/context.ts';
import { showUsage } from '../../../../../controller/act/write-turn.ts';
import { decide } from '../../../../../controller/decide/decide.ts';
import type { Figures } from '../../../../../controller/observed/link-view.ts';
import { awaiting, resumed } from '../../../../../controller/status/approval-status.ts';
import { lostAttempt } from '../../../../../controller/status/turn-status.ts';
import { ApiError } from '../../../../../core/kube/errors.ts';
import type { TurnStatus } from '../../../../../core/resources/turn.ts';
import { silentLogger } from '../../../../../core/system.ts';
import {
  aClass,
  aLink,
  aMemory,
  aPod,
  aResult,
  aSession,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
} from '../../../../support/world.ts';
import { writesOver } from '../../../../support/writes.ts';

const before = (ms: number) => new Date(NOW - ms).toISOString();

/** Usage that the runner of turn "a" has reported just now. */
const figures = (ranMs: number, change: Partial<Figures> = {}): Figures => ({
  turn: 't-a',
  attempt: 1,
  startedAt: before(ranMs),
  runningMs: ranMs,
  usage: { wallMs: ranMs, cpuSeconds: 1.5, peakMemoryBytes: 5_000_000, processes: 2 },
  at: NOW,
  ...change,
});
const given = (ms: number): TurnStatus['conditions'] => [
  { type: 'Running', status: 'True', reason: 'Running', message: '', lastTransitionTime: before(ms) },
];
const shown = (wall: number): TurnStatus => ({
  startedAt: before(40_000),
  usage: { wall, cpuSeconds: 1, peakMemoryBytes: 4_000_000, processes: 1 },
});

interface Case {
  figures: Figures;
  status?: TurnStatus;
  cancel?: boolean;
  link?: Parameters<typeof aLink>[0];
  world?: WorldChange;
}
const look = ({ figures, status = {}, cancel = false, link, world }: Case) =>
  decide(
    aWorld({
      session: aSession({ status: { ...RUNNING_STATUS, phase: 'Running', currentTurn: 'a' } }),
      pod: aPod(),
      turns: [runningTurn('a', { age: 60, spec: { cancel }, status: { conditions: given(41_000), ...status } })],
      link: aLink({ active: 't-a', sent: new Set(['t-a']), figures, ...link }),
      ...world,
    }),
  );
const statusShown = (one: Case) =>
  look(one).actions.flatMap((action) => (action.do === 'ShowUsage' ? [action.status] : []))[0];
const does = (one: Case) => look(one).actions.map((action) => action.do);

describe('usage of a running turn so far', () => {
  test('is shown with when it was started, from ten seconds on', () => {
    assert.equal(statusShown({ figures: figures(8_999) }), undefined);
    const status = statusShown({ figures: figures(10_000) });
    assert.deepEqual(status?.usage, { wall: 10, cpuSeconds: 1.5, peakMemoryBytes: 5_000_000, processes: 2 });
    assert.equal(status?.startedAt, before(10_000));
    assert.deepEqual([status?.phase, status?.podUID, status?.attempt], ['Running', POD_UID, 1]);
  });

  test('is shown again half a minute later, and when it was started stays as it was', () => {
    assert.equal(statusShown({ figures: figures(30_000), status: shown(10) }), undefined);
    const status = statusShown({ figures: figures(40_010), status: shown(10) });
    assert.deepEqual([status?.usage?.wall, status?.startedAt], [40.01, before(40_000)]);
  });

  test('does not go back to what was told earlier', () => {
    assert.equal(statusShown({ figures: figures(10_000), status: shown(40) }), undefined);
  });

  test('is not that of another turn, attempt or pod', () => {
    assert.equal(statusShown({ figures: figures(10_000, { turn: 't-b' }) }), undefined);
    assert.equal(statusShown({ figures: figures(10_000, { attempt: 2 }) }), undefined);
    assert.equal(statusShown({ figures: figures(10_000), status: { attempt: 2 } }), undefined);
    assert.equal(statusShown({ figures: figures(10_000), link: { podUID: 'p-0' } }), undefined);
  });

  test('is not shown of a turn that waits for a decision', () => {
    assert.equal(statusShown({ figures: figures(10_000), status: { phase: 'AwaitingApproval' } }), undefined);
  });

  test('is only its start where its runner does not say', () => {
    const { usage: _, ...rest } = figures(10_000);
    assert.deepEqual(
      [statusShown({ figures: rest })?.startedAt, statusShown({ figures: rest })?.usage],
      [before(10_000), undefined],
    );
    assert.equal(statusShown({ figures: rest, status: { startedAt: before(10_000) } }), undefined);
  });

  test('has a start by the clock of the cluster, whatever the clock of the runner says', () => {
    const startedAt = (at: string, runningMs = 10_000) =>
      statusShown({ figures: figures(10_000, { startedAt: at, runningMs }) })?.startedAt;
    assert.equal(startedAt(new Date(NOW + 3_600_000).toISOString()), before(10_000));
    assert.equal(startedAt(before(3_600_000)), before(10_000));
    assert.equal(startedAt('9999-12-31T23:59:59.999Z', Number.MAX_SAFE_INTEGER), before(41_000));
  });
});

describe('showing what a turn has used', () => {
  test('comes after its result, its cancellation, and everything else there is to do', () => {
    const asked = { figures: figures(10_000) };
    assert.deepEqual(does(asked), ['ShowUsage']);
    assert.deepEqual(does({ ...asked, link: { delivery: { result: aResult('t-a') } } }), ['Commit']);
    assert.deepEqual(does({ ...asked, cancel: true }), ['CancelTurn']);
    const cancelSent = new Map([['t-a', { at: NOW }]]);
    assert.deepEqual(does({ ...asked, cancel: true, link: { cancelSent } }), []);
    assert.deepEqual(
      does({ ...asked, world: { otherPods: [aPod({ name: 's-old-0', uid: 'p-0', incarnation: 0 })] } }),
      ['DeletePod'],
    );
  });

  /** A context whose write ends so; what it leaves in memory, and whether the figures are tried again. */
  async function written(outcome: object | Error) {
    const one: Case = { figures: figures(10_000) };
    const [action] = look(one).actions;
    assert.equal(action?.do, 'ShowUsage');
    const memory = aMemory();
    const saw: unknown[] = [];
    const calls: { deadlineMs?: number }[] = [];
    const replace = async (_resource: unknown, object: object, options: object) => {
      calls.push(options);
      if (outcome instanceof Error) throw outcome;
      return object;
    };
    const effects = { ...writesOver({ replace }, (turn) => saw.push(turn)), log: silentLogger };
    const context = {
      effects: effects as unknown as Effects,
      memory,
      key: 'team/notes',
      signal: AbortSignal.timeout(60_000),
    };
    await showUsage(context as ReconcileContext, action);
    const again = (figures: Figures) => does({ figures, world: { memory: memory.incarnation } }).includes('ShowUsage');
    return { saw, calls, same: again(one.figures), later: again(figures(40_000, { at: NOW + 30_000 })) };
  }

  test('is a write that a result need not wait for long, and that is seen at once', async () => {
    const { saw, calls } = await written({});
    assert.equal(saw.length, 1);
    assert.ok((calls[0]?.deadlineMs ?? Number.POSITIVE_INFINITY) <= 1_000);
  });
  test('fails without a word, and is tried again with later figures only', async () => {
    for (const error of [
      new ApiError({ code: 500, reason: 'InternalError', message: 'down' }),
      new ApiError({ code: 413, reason: 'RequestEntityTooLarge', message: 'too large' }),
    ]) {
      const { same, later } = await written(error);
      assert.deepEqual([same, later], [false, true]);
    }
  });
  test('is read again where somebody has written in between', async () => {
    const { same } = await written(new ApiError({ code: 409, reason: 'Conflict', message: 'changed' }));
    assert.equal(same, true);
  });
});

describe('usage that was shown of an attempt', () => {
  const approval = {
    id: '0123456789abcdef',
    prompt: 'go on?',
    since: before(0),
    incarnation: 1,
    seq: 7,
    ranMs: 45_000,
  };
  const turn = (status: TurnStatus = {}) => runningTurn('a', { status: { ...shown(40), ...status } });

  test('goes with the attempt', () => {
    const status = lostAttempt(turn(), { reason: 'PodLost', message: 'gone' }, NOW);
    assert.deepEqual([status.usage, status.startedAt], [undefined, undefined]);
  });
  test('stays while it waits for a decision, and goes on with its process alone', () => {
    for (const [process, podUID, wall] of [
      ['Alive', POD_UID, 40],
      ['Alive', 'p-2', undefined],
      ['Ended', POD_UID, undefined],
    ] as const) {
      const waits = awaiting(turn(), { ...approval, process }, {}, NOW);
      assert.equal(waits.usage?.wall, 40);
      const decided = { decision: 'Approve', approval: 'yes', at: before(0) } as const;
      const status = resumed(turn(waits), decided, { incarnation: 1, podUID }, NOW);
      assert.deepEqual([status.usage?.wall, status.startedAt], [wall, before(40_000)]);
    }
  });
});

test('a turn of a pod without a runner shows when its container was started, from ten seconds on', () => {
  const at = (seconds: number, status: TurnStatus = {}, memory = {}, laterMs = 0) => {
    const pod = aPod({
      status: {
        phase: 'Running',
        containerStatuses: [
          { name: 'session', ready: true, restartCount: 0, state: { running: { startedAt: before(seconds * 1000) } } },
        ],
      },
    });
    const labels = { ...pod.metadata.labels, 'berth.dev/runner': 'None', 'berth.dev/turn-uid': 't-a' };
    return decide(
      aWorld({
        session: aSession({
          spec: { agent: undefined } as never,
          status: { ...RUNNING_STATUS, phase: 'Running', currentTurn: 'a' },
        }),
        class: aClass({ runner: 'None', image: 'any:1', agent: { command: ['agent'] } }),
        pod: { ...pod, metadata: { ...pod.metadata, labels } },
        turns: [runningTurn('a', { age: 60, status: { conditions: given(41_000), ...status } })],
        memory: { inputGiven: { podUID: POD_UID }, ...memory },
        now: NOW + laterMs,
      }),
    );
  };
  const shows = (decision: ReturnType<typeof at>) =>
    decision.actions.flatMap((action) => (action.do === 'ShowUsage' ? [action.status.startedAt] : []));
  assert.deepEqual(shows(at(5)), []);
  assert.equal(at(5).wakeAt, NOW + 4_000);
  assert.deepEqual(shows(at(12)), [before(12_000)]);
  assert.deepEqual(shows(at(12, { startedAt: before(12_000) })), []);
  const [shown] = at(12).actions;
  assert.ok(shown?.do === 'ShowUsage');
  assert.deepEqual(shows(at(12, {}, { usageUnwritten: shown.of })), [], 'what could not be written may rest');
  assert.deepEqual(shows(at(12, {}, { usageUnwritten: shown.of }, 30_000)), [before(12_000)], 'and is tried again');
});
