import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide, policiesFor } from '../../../../controller/decide/decide.ts';
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
  runningTurn,
  written,
} from '../../../support/world.ts';

const bound = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink() };

describe('a slot and a pod', () => {
  test('a new session takes the next incarnation at once', () => {
    assert.deepEqual(does({}), ['Admit']);
  });
  test('a new session that is held takes none', () => {
    const decision = decide(aWorld({ session: aSession({ spec: { suspend: true } }) }));
    assert.deepEqual(decision.actions, []);
    assert.equal(decision.status.phase, 'Suspended');
  });
  test('without a slot the session waits and says since when and why', () => {
    const slot = { waiting: 'AtCapacity', message: 'full', position: 3 } as const;
    const decision = decide(aWorld({ slot }));
    assert.equal(decision.waiting, true);
    assert.equal(decision.status.phase, 'Queued');
    const since = new Date(NOW - 60_000).toISOString();
    assert.deepEqual(decision.status.queue, { position: 3, since, reason: 'AtCapacity' });
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Admitted')?.message, 'full');
  });
  test('the pod is created only after the incarnation is owned', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    assert.deepEqual(does({ session: aSession({ status: owned }) }), ['CreatePod']);
  });
  test('a pod that a committed turn names is not created a second time', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const turn = aTurn({ status: { index: 1, phase: 'Succeeded', incarnation: 1, podUID: POD_UID } });
    assert.deepEqual(does({ session: aSession({ status: owned }), turns: [turn] }), ['ConfirmGone']);
  });
  test('that a turn had a pod is still known when the turn is counted, and forgotten by that', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const turn = aTurn({ status: { index: 1, phase: 'Succeeded', incarnation: 1, podUID: POD_UID } });
    const { status } = decide(aWorld({ session: aSession({ status: owned }), turns: [turn] }));
    assert.equal(status.lastTurn?.index, 1);
    assert.deepEqual(does({ session: aSession({ status }) }), ['ConfirmGone']);
  });
  test('a suspended session starts only for a turn that is not held', () => {
    const status = { phase: 'Suspended', incarnation: 1 } as const;
    assert.deepEqual(does({ session: aSession({ status }) }), []);
    assert.deepEqual(does({ session: aSession({ status }), turns: [aTurn()] }), ['Admit']);
    const held = decide(aWorld({ session: aSession({ status, spec: { suspend: true } }), turns: [aTurn()] }));
    assert.deepEqual(
      written(held.actions).map(({ phase, conditions }) => [phase, conditions?.[0]?.reason]),
      [['Queued', 'Held']],
    );
  });
  test('pods of earlier incarnations are deleted', () => {
    const stray = aPod({ name: 's-old-0', uid: 'p-0', incarnation: 0 });
    assert.deepEqual(does({ ...bound, otherPods: [stray] }), ['DeletePod']);
  });
});

describe('a turn on its way to the runner', () => {
  test('is written Running with the pod before it is sent', () => {
    assert.deepEqual(does({ ...bound, turns: [aTurn()] }), ['WriteTurn', 'StartTurn']);
  });
  test('is written Running when its runner answers, beside the binding and before it is sent', () => {
    const turns = [aTurn({ age: 1 })];
    assert.deepEqual(does({ ...bound, link: undefined, turns }), ['OpenLink']);
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Opening' }), turns }), []);
    const decision = decide(aWorld({ ...bound, link: aLink({ phase: 'Unbound' }), turns }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['Bind', 'WriteTurn', 'StartTurn'],
    );
    const [status] = written(decision.actions);
    assert.deepEqual([status?.phase, status?.podUID], ['Running', POD_UID]);
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Binding' }), turns }), ['WriteTurn', 'StartTurn']);
  });
  test('is not written Running for a runner that could not be bound the last time', () => {
    const startProblem = { reason: 'StateUnavailable' as const, message: 'the store fails' };
    const world = { ...bound, link: aLink({ phase: 'Unbound' }), turns: [aTurn()], memory: { startProblem } };
    const { actions } = decide(aWorld(world));
    assert.deepEqual(
      actions.map((action) => action.do),
      ['ShowWait', 'Bind'],
    );
    assert.deepEqual(
      written(actions).map(({ phase }) => phase),
      ['Queued'],
    );
  });
  test('goes out together with the binding', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Unbound' }), turns: [runningTurn('a')] }), [
      'Bind',
      'StartTurn',
    ]);
  });
  test('waits for the one before it', () => {
    const decision = decide(
      aWorld({ ...bound, link: aLink({ active: 't-a' }), turns: [aTurn({ name: 'b' }), runningTurn('a')] }),
    );
    assert.deepEqual(
      written(decision.actions).map(({ phase, index }) => [phase, index]),
      [['Queued', 2]],
    );
  });
  test('is sent again when the runner of its living pod does not have it', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ sent: new Set(['t-a']) }), turns: [runningTurn('a')] }), [
      'StartTurn',
    ]);
  });
  test('is not bound before the status has the last committed state', () => {
    const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 4, inline: 'AA==' };
    const ended = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', state } });
    const decision = decide(aWorld({ ...bound, link: aLink({ phase: 'Unbound' }), turns: [ended] }));
    assert.deepEqual(decision.actions, []);
    assert.deepEqual(decision.status.state, state);
  });
  test('several turns without an index get theirs in the order of creation', () => {
    const turns = [aTurn({ name: 'late', age: 1 }), aTurn({ name: 'early', age: 9 })];
    const decision = decide(aWorld({ ...bound, turns }));
    const indexes = decision.actions.flatMap((action) =>
      action.do === 'WriteTurn' ? [[action.turn.metadata.name, action.status.index]] : [],
    );
    assert.deepEqual(indexes, [
      ['early', 1],
      ['late', 2],
    ]);
  });
  test('no two turns keep one index, though a deposed leader gave it late', () => {
    const queued = (name: string, index: number, age: number) =>
      aTurn({ name, age, status: { index, phase: 'Queued', conditions: [waits] } });
    const waits = {
      type: 'Finished',
      status: 'False' as const,
      reason: 'Queued',
      message: '',
      lastTransitionTime: new Date(NOW).toISOString(),
    };
    const indexes = (change: Parameters<typeof aWorld>[0]) =>
      decide(aWorld({ ...bound, link: aLink({ active: 't-runs' }), ...change })).actions.flatMap((action) =>
        action.do === 'WriteTurn' ? [[action.turn.metadata.name, action.status.index]] : [],
      );
    const runs = runningTurn('runs', { status: { index: 3 } });
    assert.deepEqual(indexes({ turns: [runs, queued('a', 3, 9), queued('b', 4, 8)] }), [['a', 5]]);
    assert.deepEqual(indexes({ turns: [runs, queued('a', 4, 9), queued('b', 4, 8)] }), [['b', 5]]);
    const status = { ...RUNNING_STATUS, lastTurn: { name: 'x', index: 4, phase: 'Succeeded' as const } };
    const idle = { session: aSession({ status }), link: aLink() };
    assert.deepEqual(indexes({ ...idle, turns: [queued('a', 4, 9)] }), [['a', 5]]);
    const ended = aTurn({ name: 'x', status: { index: 5, phase: 'Succeeded' } });
    assert.deepEqual(indexes({ ...idle, turns: [ended, queued('a', 5, 9)] }), [['a', 6]]);
  });
  test('the index of a turn that was deleted is not given again where a request to suspend knows it', () => {
    const suspendHandled = { id: 'now', afterTurn: 7 };
    const status = { ...RUNNING_STATUS, suspendHandled };
    const session = aSession({ spec: { suspendRequest: 'now' }, status });
    const [turn] = written(decide(aWorld({ ...bound, session, turns: [aTurn()] })).actions);
    assert.equal(turn?.index, 8);
  });
  test('a turn that a session of one turn refuses has no index', () => {
    const session = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const turns = [runningTurn('a'), aTurn({ name: 'b', age: 1 }), aTurn({ spec: { cancel: true }, age: 1 })];
    const refused = written(decide(aWorld({ ...bound, session, turns })).actions);
    assert.deepEqual(
      refused.map(({ phase, index }) => [phase, index]),
      [
        ['Failed', undefined],
        ['Cancelled', undefined],
      ],
    );
  });
});

describe('the queue of a session', () => {
  const queued = (index: number) => aTurn({ name: `q-${index}`, status: { index, phase: 'Queued' }, age: 99 - index });
  const ended = (turns: ReturnType<typeof aTurn>[], limits: { maxQueuedTurns?: number }) =>
    written(decide(aWorld({ ...bound, turns, class: aClass({ limits }) })).actions)
      .filter(({ phase }) => phase === 'Failed')
      .map(({ error, index }) => [error?.code, index, error?.message]);

  test('takes as many turns as the class allows; another ends as QueueFull without an index', () => {
    const running = runningTurn('a', { status: { index: 1 } });
    const turns = [running, queued(2), queued(3), aTurn({ name: 'new', age: 1 })];
    assert.deepEqual(ended(turns, { maxQueuedTurns: 3 }), []);
    const [refused, ...others] = ended(turns, { maxQueuedTurns: 2 });
    assert.deepEqual([refused?.[0], refused?.[1], others], ['QueueFull', undefined, []]);
    assert.match(
      String(refused?.[2]),
      /^2 turns of session "notes" wait, which is the most that class "default" allows/,
    );
  });
  test('keeps the turns that it took when the limit is lowered', () => {
    assert.deepEqual(ended([queued(2), queued(3), queued(4)], { maxQueuedTurns: 1 }), []);
  });
  test('does not count turns that are refused themselves', () => {
    const cancelled = aTurn({ name: 'c', spec: { cancel: true }, age: 5 });
    assert.deepEqual(ended([queued(2), cancelled, aTurn({ name: 'new', age: 1 })], { maxQueuedTurns: 2 }), []);
  });
  test('takes 256 turns where the class does not say', () => {
    const turns = Array.from({ length: 258 }, (_, i) =>
      aTurn({ name: `n-${String(i).padStart(3, '0')}`, age: 300 - i }),
    );
    assert.equal(ended(turns, {}).length, 2);
  });
});

describe('turns that cannot run', () => {
  const refusals: [string, Parameters<typeof aWorld>[0], string][] = [
    ['cancelled while queued', { turns: [aTurn({ spec: { cancel: true } })] }, 'Cancelled'],
    [
      'without the input that its agent needs',
      { class: aClass({ agent: { input: 'Text' } }), turns: [aTurn({ noInput: true })] },
      'InputMissing',
    ],
    [
      'without the input that its agent needs, also while it is held',
      {
        session: aSession({ spec: { suspend: true } }),
        class: aClass({ agent: { input: 'Args' } }),
        turns: [aTurn({ noInput: true })],
      },
      'InputMissing',
    ],
    ['with too large an input', { turns: [aTurn({ bytes: 131_073 })] }, 'InputTooLarge'],
    [
      'second of a session that takes one',
      { session: aSession({ spec: { turns: 'One' } }), turns: [aTurn({ age: 9 }), aTurn({ age: 1 })] },
      'SessionFinished',
    ],
    ['older than its session', { turns: [aTurn({ owner: null, age: 600 })] }, 'SessionReplaced'],
    [
      'of a session that sets what its class forbids',
      { session: aSession({ spec: { image: 'x' } }), turns: [aTurn()] },
      'NotAllowed',
    ],
    [
      'with a timeout that its class lets nobody set',
      { class: aClass({ overrides: [] }), turns: [aTurn({ spec: { timeout: '1s' } })] },
      'NotAllowed',
    ],
    [
      'with a longer timeout than its class allows',
      {
        class: aClass({ overrides: ['timeouts'], maxTimeouts: { turn: '1h' } }),
        turns: [aTurn({ spec: { timeout: '999h' } })],
      },
      'NotAllowed',
    ],
    ['of a session without a command', { session: aSession({ spec: { agent: {} } }), turns: [aTurn()] }, 'InvalidSpec'],
    [
      'whose class has not come for ten minutes',
      { class: undefined, turns: [aTurn({ age: 601 })], memory: { cannotStartSince: NOW - 600_000 } },
      'ClassNotFound',
    ],
  ];
  for (const [what, world, reason] of refusals) {
    test(`a turn ${what} ends with ${reason}`, () => {
      const reasons = written(decide(aWorld(world)).actions)
        .filter((status) => status.conditions?.some(({ type, status }) => type === 'Finished' && status === 'True'))
        .map((status) => status.conditions?.find(({ type }) => type === 'Finished')?.reason);
      assert.deepEqual(reasons, [reason]);
    });
  }
  test('a turn without an input runs where its agent needs none, and where a running pod has begun it', () => {
    const turns = [aTurn({ noInput: true })];
    assert.ok(!written(decide(aWorld({ turns })).actions).some(({ phase }) => phase === 'Failed'));
    const begun = {
      ...bound,
      class: aClass({ agent: { input: 'Text' } }),
      turns: [runningTurn('a', { noInput: true })],
    };
    assert.ok(!written(decide(aWorld(begun)).actions).some(({ phase }) => phase === 'Failed'));
  });
  const invalid = aClass({ redact: ['('] });
  const forbidding = aClass({ overrides: [] });
  const away: [string, Parameters<typeof aWorld>[0]][] = [
    ['is away', { class: undefined }],
    ['cannot work', { class: invalid }],
    ['forbids what it allowed', { class: forbidding }],
  ];
  for (const [what, world] of away) {
    const turns = [aTurn({ age: 3600, status: { index: 1, phase: 'Queued' } })];
    const phases = (change: Parameters<typeof aWorld>[0]) =>
      written(decide(aWorld({ ...world, turns, ...change })).actions).map(({ phase }) => phase);
    test(`a turn that has waited for long waits on while its class ${what} for a moment, and is not for ever held up by it`, () => {
      const { wakeAt, actions } = decide(aWorld({ ...world, turns, memory: { cannotStartSince: NOW - 60_000 } }));
      assert.ok(!written(actions).some(({ phase }) => phase === 'Failed'));
      assert.equal(wakeAt, NOW + 540_000);
      assert.ok(!phases({}).includes('Failed'), 'nor where a new leader does not know since when');
      assert.deepEqual(phases({ memory: { cannotStartSince: NOW - 600_000 } }), ['Failed']);
    });
    test(`a turn that is held does not fail while its class ${what}`, () => {
      const session = aSession({ spec: { suspend: true } });
      assert.ok(!phases({ session, memory: { cannotStartSince: NOW - 3_600_000 } }).includes('Failed'));
    });
  }
  test('an ownerless turn as old as its session is adopted', () => {
    assert.deepEqual(does({ turns: [aTurn({ owner: null, age: 60 })] })[0], 'AdoptTurn');
  });
  test('a turn waits for a class that may still come', () => {
    const decision = decide(aWorld({ class: undefined, turns: [aTurn()] }));
    assert.deepEqual(
      written(decision.actions).map(({ phase }) => phase),
      ['Queued'],
    );
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Admitted')?.reason, 'ClassNotFound');
    assert.equal(decision.wakeAt, NOW + 600_000);
  });
});

describe('a result', () => {
  const delivery = (change = {}) => ({ result: aResult('t-a', change) });
  test('is committed for the turn that runs', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ delivery: delivery() }), turns: [runningTurn('a')] }), ['Commit']);
  });
  test('of another attempt is acknowledged and has no other effect', () => {
    const world = {
      ...bound,
      link: aLink({ active: 't-a', delivery: delivery({ attempt: 2 }) }),
      turns: [runningTurn('a')],
    };
    assert.deepEqual(does(world), ['Acknowledge']);
  });
  test('counts in the session once, and the decision names it then', () => {
    const turn = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', output: 'x' } });
    const { status: first, counted } = decide(aWorld({ ...bound, turns: [turn] }));
    assert.deepEqual(counted, [turn]);
    assert.deepEqual(first.turns, { total: 1, succeeded: 1, failed: 0 });
    assert.deepEqual(first.lastTurn, { name: 'a', index: 1, phase: 'Succeeded', output: 'x' });
    const again = decide(aWorld({ ...bound, session: aSession({ status: first }), turns: [turn] }));
    assert.deepEqual([again.status.turns, again.counted], [first.turns, []]);
  });
  test('of a turn that was cancelled in the queue counts after those before it', () => {
    const cancelled = aTurn({ name: 'b', status: { index: 2, phase: 'Cancelled' } });
    const { status, counted } = decide(
      aWorld({ ...bound, link: aLink({ active: 't-a' }), turns: [runningTurn('a'), cancelled] }),
    );
    assert.deepEqual([status.turns?.total, counted], [0, []]);
  });
});

describe('facts that a new leader does not know yet', () => {
  const opening = aLink({ phase: 'Opening', fresh: false });
  test('a turn of a pod that it has not heard of is not taken for one that never ran', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const world = { session: aSession({ status: RUNNING_STATUS }), memory, link: opening, turns: [runningTurn('a')] };
    assert.equal(written(decide(aWorld(world)).actions)[0]?.phase, 'Failed');
  });
  test('a cancelled turn of such a pod is not ended before the runner was asked', () => {
    const turn = runningTurn('a', { spec: { cancel: true } });
    const session = aSession({ status: { ...RUNNING_STATUS, conditions: [] } });
    assert.deepEqual(does({ ...bound, session, link: opening, turns: [turn] }), []);
  });
  test('a turn of a runner that it found unbound may have been given to it since, until that answers it', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const session = aSession({ status: { ...RUNNING_STATUS, conditions: [] } });
    const lost = (link: ReturnType<typeof aLink>) =>
      written(decide(aWorld({ session, memory, link, turns: [runningTurn('a')] })).actions)[0]?.phase;
    const turns = [runningTurn('a', { spec: { cancel: true } })];
    for (const phase of ['Unbound', 'Binding', 'Bound'] as const) {
      const link = aLink({ phase, fresh: false });
      assert.equal(lost(link), 'Failed', phase);
      assert.ok(!does({ ...bound, session, link, turns }).includes('WriteTurn'), phase);
    }
    const answered = aLink({ fresh: false, answered: true });
    assert.equal(lost(answered), 'Queued');
    assert.deepEqual(does({ ...bound, session, link: answered, turns }), ['WriteTurn']);
  });
  test('a result is that of the turn it names, also where an earlier one is still written as Running', () => {
    const turns = [runningTurn('a'), runningTurn('b', { status: { ...runningTurn('b').status, index: 2 } })];
    const delivery = { result: aResult('t-b') };
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-b', delivery }), turns }), ['Commit']);
  });
  test('a pod of a later incarnation than the cache shows is left alone', () => {
    const later = aPod({ name: 's-later', uid: 'p-2', incarnation: 2 });
    assert.deepEqual(does({ ...bound, otherPods: [later] }), []);
  });
});

describe('turns that end out of order', () => {
  test('do not keep the first one from being bound', () => {
    const turns = [runningTurn('a'), aTurn({ name: 'b', status: { index: 2, phase: 'Cancelled' } })];
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Unbound' }), turns }), ['Bind', 'StartTurn']);
  });
  test('do not finish a session that takes one turn, nor change how it finished', () => {
    const refused = aTurn({ name: 'b', status: { phase: 'Cancelled' } });
    const one = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const first = decide(
      aWorld({ ...bound, session: one, link: aLink({ active: 't-a' }), turns: [runningTurn('a'), refused] }),
    );
    assert.notEqual(first.status.phase, 'Finished');
    const done = { ...RUNNING_STATUS, lastTurn: { name: 'a', index: 1, phase: 'Succeeded' as const } };
    const later = decide(aWorld({ session: aSession({ spec: { turns: 'One' }, status: done }), turns: [refused] }));
    assert.equal(later.status.lastTurn?.name, 'a');
  });
});

describe('sessions that must not get stuck', () => {
  test('a run is finished by its first turn, also beside one that was given meanwhile and has no index yet', () => {
    const session = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const finishedAt = new Date(NOW).toISOString();
    const first = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', finishedAt } });
    const decision = decide(aWorld({ ...bound, session, turns: [first, aTurn({ name: 'b' })] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'SessionFinished');
  });
  test('a run whose turn in spec.input was deleted is finished by the next one, whatever its index', () => {
    const session = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const finishedAt = new Date(NOW).toISOString();
    const second = aTurn({ name: 'a', status: { index: 2, phase: 'Succeeded', finishedAt } });
    const decision = decide(aWorld({ ...bound, session, turns: [second, aTurn({ name: 'b' })] }));
    assert.deepEqual(
      written(decision.actions).map(({ phase, error }) => [phase, error?.code]),
      [['Failed', 'SessionFinished']],
    );
    assert.equal(decision.status.phase, 'Finished');
  });
  test('a turn whose pod went under an earlier leader is lost, whatever the kubelet had said of the pod', () => {
    const world = { session: aSession({ status: RUNNING_STATUS }), turns: [runningTurn('a')], pod: undefined };
    const memory = { confirmedGone: { podUID: POD_UID }, lastPod: aPod({ status: { phase: 'Pending' } }) };
    assert.equal(written(decide(aWorld({ ...world, memory })).actions)[0]?.error?.code, 'PodLost');
  });
  test('a runner that works on a turn that is gone is stopped, then given up with its pod', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-gone' }) }), ['CancelTurn']);
    const cancelSent = new Map([['t-gone', { at: NOW - 21_000 }]]);
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-gone', cancelSent }) }), ['DeletePod']);
  });
  test('a cancelled turn ends before it ran where its runner never had it, and not where it never had another', () => {
    const turns = [runningTurn('a', { spec: { cancel: true } })];
    const phases = (unknown: string) => {
      const sent = ['t-a', 't-before'].map((turn) => [turn, turn === unknown ? { at: NOW, unknown } : { at: NOW }]);
      const refused = { n: 1, code: 'UnknownTurn', message: '' } as const;
      const link = aLink({ active: 't-a', sent: new Set(['t-a']), refused, cancelSent: new Map(sent as never) });
      return written(decide(aWorld({ ...bound, turns, link })).actions).map(({ phase }) => phase);
    };
    assert.deepEqual([phases('t-a'), phases('t-before')], [['Cancelled'], []]);
  });
  test('a cancelled turn whose process was stopped after it had asked is told as one that waited for a decision', () => {
    const since = new Date(NOW).toISOString();
    const approval = { id: 'r', prompt: '?', since, process: 'Alive', incarnation: 1, seq: 1, ranMs: 1 } as const;
    const turns = [runningTurn('a', { spec: { cancel: true }, status: { phase: 'AwaitingApproval', approval } })];
    const link = aLink({ sent: new Set(['t-a']), cancelSent: new Map([['t-a', { at: NOW, unknown: true as const }]]) });
    const [status] = written(decide(aWorld({ ...bound, turns, link })).actions);
    assert.deepEqual(
      [status?.phase, status?.error?.message],
      ['Cancelled', 'The turn was cancelled while it waited for a decision.'],
    );
  });
  test('a cancelled turn behind a turn that is gone has both stopped, each once', () => {
    const turns = [runningTurn('a', { spec: { cancel: true } })];
    const sent = new Set(['t-a', 't-gone']);
    const cancelSent = new Map<string, { at: number }>();
    const asked = () =>
      decide(aWorld({ ...bound, turns, link: aLink({ active: 't-gone', sent, cancelSent }) })).actions.flatMap(
        (action) => (action.do === 'CancelTurn' ? [action.turn] : []),
      );
    const all: string[] = [];
    for (let turns = asked(); turns.length > 0 && all.length < 5; turns = asked()) {
      all.push(...turns);
      for (const turn of turns) cancelSent.set(turn, { at: NOW });
    }
    assert.deepEqual(all.sort(), ['t-a', 't-gone']);
  });
  test('a pod that the API server forbids fails the turns and frees the slot', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const memory = { startProblem: { reason: 'PodForbidden' as const, message: 'violates PodSecurity' } };
    const decision = decide(aWorld({ session: aSession({ status: owned }), memory, turns: [aTurn()] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodForbidden');
    assert.equal(decision.status.podName, undefined);
  });
  test('a refusal that may be temporary holds a slot for a minute, and another failure until timeouts.start', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const failing = (seconds: number, passes: { passes?: true }) => {
      const startProblem = { reason: 'StartFailed' as const, message: 'not yet', ...passes };
      const memory = { startProblem, createFailingSince: NOW - seconds * 1000 };
      return decide(aWorld({ session: aSession({ status: owned }), memory, turns: [aTurn()] }));
    };
    for (const [seconds, passes] of [
      [59, { passes: true }],
      [61, {}],
    ] as const) {
      assert.deepEqual(
        failing(seconds, passes).actions.map((action) => action.do),
        ['ShowWait', 'CreatePod'],
      );
    }
    const decision = failing(60, { passes: true });
    assert.equal(written(decision.actions)[0]?.error?.code, 'StartFailed');
    assert.equal(decision.status.podName, undefined);
  });
});

describe('a lost pod', () => {
  const status = RUNNING_STATUS;
  test('counts as lost only after live reads', () => {
    assert.deepEqual(does({ session: aSession({ status }), turns: [runningTurn('a')] }), ['ConfirmGone']);
  });
  test('makes the running turn PodLost and lets go of the pod', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(aWorld({ session: aSession({ status }), memory, turns: [runningTurn('a')] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodLost');
    assert.equal(decision.status.podName, undefined);
  });
  test('that never saw the turn puts it back into the queue without an attempt', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(
      aWorld({ session: aSession({ status }), memory, link: aLink({ phase: 'Opening' }), turns: [runningTurn('a')] }),
    );
    const [turn] = written(decision.actions);
    assert.deepEqual([turn?.phase, turn?.attempt, turn?.podUID], ['Queued', undefined, undefined]);
  });
  test('that an earlier leader may have sent the turn to is not taken for one that never saw it', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(
      aWorld({ session: aSession({ status }), memory, link: aLink({ resumed: true }), turns: [runningTurn('a')] }),
    );
    assert.equal(written(decision.actions)[0]?.phase, 'Failed');
  });
  test('whose container ended is asked for its log before the turn is given up', () => {
    const ended = aPod({ status: { phase: 'Failed' } });
    const link = aLink({ sent: new Set(['t-a']) });
    assert.deepEqual(does({ ...bound, link, pod: ended, turns: [runningTurn('a')] }), ['ReadLog']);
    const memory = { logRead: { podUID: POD_UID } };
    const decision = decide(aWorld({ ...bound, link, pod: ended, memory, turns: [runningTurn('a')] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodLost');
  });
  test('that ended by itself before it was bound fails the turns with what the kubelet says', () => {
    const state = { terminated: { exitCode: 127, reason: 'Error', message: 'no such file' } };
    const pod = aPod({
      status: { phase: 'Failed', containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state }] },
    });
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const world = {
      session: aSession({ status: { ...owned, phase: 'Starting' } }),
      pod,
      link: aLink({ phase: 'Opening' }),
      memory: { logRead: { podUID: POD_UID } },
    };
    const decision = decide(aWorld({ ...world, turns: [runningTurn('a')] }));
    assert.match(written(decision.actions)[0]?.error?.message ?? '', /127.*no such file/);
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Ready')?.reason, 'StartFailed');
  });
  test('that does not answer is deleted after the patience has ended', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ silentSince: NOW - 31_000 }) }), ['DeletePod']);
    assert.equal(decide(aWorld({ ...bound, link: aLink({ silentSince: NOW - 29_000 }) })).wakeAt, NOW + 1000);
  });
  test('that does not answer while none of its node does is deleted after the longer of that patience and BERTH_NODE_GRACE', () => {
    const link = (ago: number) => aLink({ silentSince: NOW - ago, nodeSilent: true });
    assert.equal(decide(aWorld({ ...bound, link: link(59_000) })).wakeAt, NOW + 1000);
    assert.deepEqual(does({ ...bound, link: link(60_000) }), ['DeletePod']);
    const world = aWorld({ ...bound, link: link(29_000) });
    const installation = { ...world.installation, nodeGraceMs: 5_000 };
    assert.equal(decide({ ...world, installation }).wakeAt, NOW + 1000);
  });

  test('hours for which all machines slept are not counted as time in which the runner was silent or did not stop', () => {
    const slept = { ...bound, now: NOW + 8 * 3_600_000, monotonic: NOW };
    const silent = decide(aWorld({ ...slept, link: aLink({ silentSince: NOW - 1000 }) }));
    assert.deepEqual([silent.actions.map((action) => action.do), silent.wakeAt - slept.now], [[], 29_000]);
    const cancelSent = new Map([['t-gone', { at: NOW - 1000 }]]);
    assert.deepEqual(does({ ...slept, link: aLink({ active: 't-gone', cancelSent }) }), []);
  });
  test('that was bound and cannot be attached for BERTH_NODE_GRACE while others answer, or for timeouts.start, is deleted', () => {
    const approval = { id: 'r', prompt: '?', since: new Date(NOW).toISOString(), process: 'Ended' as const, ranMs: 0 };
    const decided = { decision: 'Approve' as const, approval: 'a', at: new Date(NOW).toISOString() };
    const waits = aTurn({
      name: 'a',
      status: { index: 1, phase: 'AwaitingApproval', approval: { ...approval, incarnation: 1, seq: 3, decided } },
    });
    const cases = [{}, { turns: [runningTurn('a')] }, { turns: [waits] }, { turns: [aTurn({ name: 'b' })] }];
    const lastTransitionTime = new Date(NOW).toISOString();
    const ready = { type: 'Ready' as const, status: 'True' as const, reason: 'Ready', message: '', lastTransitionTime };
    const status = { ...RUNNING_STATUS, conditions: [ready] };
    const held = aSession({ spec: { suspend: true }, status });
    for (const change of [...cases, { session: held }]) {
      const world = { session: aSession({ status }), pod: aPod(), ...change };
      for (const phase of ['Opening', 'Bound', 'Ended'] as const) {
        const deleted = (unreachableMs: number, othersAnswer: boolean) => {
          const link = aLink({ phase, unreachableMs, othersAnswer, fresh: false, sent: new Set(['t-a']) });
          return does({ ...world, link }).includes('DeletePod');
        };
        const looks = [deleted(59_000, true), deleted(60_000, true), deleted(599_000, false), deleted(600_000, false)];
        assert.deepEqual(looks, [false, true, false, true], `${phase} ${JSON.stringify(change)}`);
      }
    }
  });
  test('that cannot be attached while it starts has all of timeouts.start', () => {
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } });
    const world = { session, pod: aPod(), turns: [aTurn({ name: 'a' })] };
    assert.ok(!does({ ...world, link: aLink({ phase: 'Opening', unreachableMs: 90_000 }) }).includes('DeletePod'));
  });
});

describe('clocks', () => {
  test('a pod that runs is asked by a new leader before it is given up, however long it has been there', () => {
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } });
    const containerStatuses = [{ name: 'session', ready: true, restartCount: 0, state: { running: {} } }];
    const pod = aPod({ age: 3600, status: { phase: 'Running', containerStatuses } });
    const world = { session, pod, turns: [aTurn({ name: 'a', status: { index: 1, phase: 'Queued' } })] };
    const opening = (ago: number) => aLink({ phase: 'Opening', fresh: false, openedAt: NOW - ago });
    assert.ok(does(world).includes('OpenLink'));
    assert.ok(!does({ ...world, link: opening(29_000) }).includes('DeletePod'));
    assert.ok(does({ ...world, link: opening(30_000) }).includes('DeletePod'));
  });
  test('a pod that is not bound within timeouts.start is given up with the reason that Kubernetes gives', () => {
    const waiting = { reason: 'ErrImagePull', message: 'no such image' };
    const pod = aPod({
      age: 601,
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state: { waiting } }],
      },
    });
    const world = {
      session: aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } }),
      pod,
      link: aLink({ phase: 'Opening' }),
    };
    const decision = decide(aWorld({ ...world, turns: [runningTurn('a')] }));
    assert.match(written(decision.actions)[0]?.error?.message ?? '', /no such image/);
    assert.ok(decision.actions.some((action) => action.do === 'DeletePod'));
  });
  test('a pod whose uid is not written yet is not deleted before it is', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const pod = aPod({ status: { phase: 'Failed' } });
    const first = decide(aWorld({ session: aSession({ status: owned }), pod }));
    assert.ok(!first.actions.some((action) => action.do === 'DeletePod'));
    assert.equal(first.status.podUID, pod.metadata.uid);
    assert.ok(does({ session: aSession({ status: first.status }), pod }).includes('DeletePod'));
  });
  test('a turn past its timeout and grace is ended and its pod deleted', () => {
    const started = { turn: 't-a', at: new Date(NOW - 30 * 60_000 - 21_000).toISOString() };
    const decision = decide(aWorld({ ...bound, link: aLink({ started, active: 't-a' }), turns: [runningTurn('a')] }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['DeletePod', 'WriteTurn'],
    );
    assert.equal(written(decision.actions)[0]?.phase, 'TimedOut');
  });
  test('a turn whose start is not reported is judged from when this leader opened its link or gave it, not by a clock that was set since', () => {
    const hour = 3_600_000;
    const lastTransitionTime = new Date(NOW - 5 * hour).toISOString();
    const running = { type: 'Running', status: 'True', reason: 'Running', message: '', lastTransitionTime } as const;
    const ends = (openedAgoMs: number, gaveAgoMs?: number) => {
      const link = aLink({ active: 't-a', openedAt: NOW - openedAgoMs });
      const turns = [runningTurn('a', { status: { conditions: [running] } })];
      const memory = gaveAgoMs === undefined ? {} : { gaveAt: NOW - gaveAgoMs };
      return does({ ...bound, link, turns, memory }).includes('WriteTurn');
    };
    assert.deepEqual([ends(hour), ends(1000), ends(hour, 1000), ends(hour, hour)], [true, false, false, true]);
  });
  test('a running turn that is cancelled is cancelled by its runner', () => {
    const turn = runningTurn('a', { spec: { cancel: true } });
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-a', sent: new Set(['t-a']) }), turns: [turn] }), [
      'CancelTurn',
    ]);
  });
  test('a turn shows in the session once it has run a second', () => {
    const at = (ms: number) => new Date(NOW - ms).toISOString();
    const status = (ms: number) =>
      decide(
        aWorld({
          ...bound,
          link: aLink({ active: 't-a', started: { turn: 't-a', at: at(ms) } }),
          turns: [runningTurn('a')],
        }),
      ).status;
    assert.equal(status(900).currentTurn, undefined);
    assert.equal(status(1000).currentTurn, 'a');
    assert.equal(status(1000).phase, 'Running');
  });
});

describe('a class', () => {
  const message = (world: Parameters<typeof aWorld>[0]) =>
    decide(aWorld(world)).status.conditions?.find(({ type }) => type === 'Admitted')?.message ?? '';
  test('names the field that it does not allow', () => {
    assert.match(message({ session: aSession({ spec: { image: 'x' } }) }), /^spec\.image: /);
  });
  test('names the Secret that it does not allow', () => {
    const env = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'other', key: 'k' } } }];
    assert.match(
      message({ session: aSession({ spec: { agent: { command: ['a'], env } } }) }),
      /spec\.agent\.env\[0\]\.valueFrom\.secretKeyRef\.name: .*"other"/,
    );
  });
  test('names the ceiling of a timeout', () => {
    const session = aSession({ spec: { timeouts: { turn: '2h' } } });
    assert.match(message({ session, class: aClass({ maxTimeouts: { turn: '1h' } }) }), /spec\.timeouts\.turn: 2h .*1h/);
  });
});

describe('the list of policies', () => {
  const namesFor = (isRunnerless: boolean, isDeleted: boolean) =>
    policiesFor({ isRunnerless, isDeleted }).map(({ name }) => name);

  test('under a deletionTimestamp only takes care of pods that exist, and starts nothing', () => {
    const [withRunner, runnerless] = [namesFor(false, true), namesFor(true, true)];
    assert.deepEqual(withRunner, [
      'otherPods',
      'collect',
      'deadNode',
      'gone',
      'over',
      'deletionPending',
      'connect',
      'leave',
    ]);
    assert.deepEqual(runnerless, ['otherPods', 'deadNode', 'gone', 'read', 'deletionPending', 'leave']);
  });
  test('asks a runner for nothing where there is none', () => {
    const names = namesFor(true, false);
    for (const name of ['collect', 'cancel', 'connect', 'suspend', 'bind']) assert.ok(!names.includes(name), name);
    for (const name of ['read', 'stop', 'run']) assert.ok(!namesFor(false, false).includes(name), name);
  });
  test('names the policy that stopped it', () => {
    assert.equal(decide(aWorld({})).stoppedBy, 'admit');
    assert.equal(decide(aWorld(bound)).stoppedBy, undefined);
  });
});

describe('the status shows, of several problems,', () => {
  const readyOf = (world: Parameters<typeof aWorld>[0]) =>
    decide(aWorld(world)).status.conditions?.find(({ type }) => type === 'Ready');

  test('why the runner is not bound before why its pod has not started', () => {
    const conditions = [
      { type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable', message: '0/3 nodes' },
    ];
    const starting = {
      session: aSession({ status: RUNNING_STATUS }),
      pod: aPod({ onNode: false, status: { phase: 'Pending', conditions } }),
      link: aLink({ phase: 'Unbound' }),
    };
    assert.equal(readyOf(starting)?.reason, 'Unschedulable');
    const startProblem = { reason: 'StateKeyUnknown', message: 'no such key' } as const;
    assert.equal(readyOf({ ...starting, memory: { startProblem } })?.reason, 'StateKeyUnknown');
  });
  test('why its first turn cannot be created before what is wrong with its settings', () => {
    const session = aSession({ spec: { input: { digest: 'd', bytes: 1 } } });
    assert.equal(readyOf({ session, class: undefined })?.reason, 'ClassNotFound');
    const firstTurnProblem = { reason: 'TurnExists', message: 'exists' } as const;
    assert.equal(readyOf({ session, class: undefined, memory: { firstTurnProblem } })?.reason, 'TurnExists');
  });
});
