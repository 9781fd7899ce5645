import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { adoptApproval, commitRequest, consume } from '../../../../controller/act/approval.ts';
import { commit } from '../../../../controller/act/commit.ts';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { slimApproval, slimTurn } from '../../../../controller/caches/slim.ts';
import { decide } from '../../../../controller/decide/decide.ts';
import type { Asking } from '../../../../controller/observed/link-view.ts';
import type { CachedApproval, CachedTurn } from '../../../../controller/observed/world.ts';
import { resumed } from '../../../../controller/status/approval-status.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { ApprovalSpec } from '../../../../core/resources/approval.ts';
import { approvals, type StoredApproval, type StoredTurn, turns } from '../../../../core/resources/kinds.ts';
import type { TurnApproval, TurnStatus } from '../../../../core/resources/turn.ts';
import { StoreFullError } from '../../../../core/store/store.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { NO_FAULTS } from '../../../sim/api/faults.ts';
import { create } from '../../../sim/users/writes.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
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
  POD_UID,
  RUNNING_STATUS,
} from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const ID = '0123456789abcdef';
const at = new Date(NOW - 5_000).toISOString();
const request = (change: Partial<TurnApproval> = {}): TurnApproval => ({
  id: ID,
  prompt: 'May I?',
  since: at,
  process: 'Ended',
  incarnation: 1,
  seq: 7,
  ranMs: 100,
  ...change,
});
const decided = { decision: 'Approve', approval: 'a', at } as const;
const aTurnThat = (status: TurnStatus, spec = {}) =>
  aTurn({ name: 'a', spec, status: { index: 1, attempt: 1, incarnation: 1, podUID: POD_UID, ...status } });
const waiting = (change: Partial<TurnApproval> = {}, spec = {}) =>
  aTurnThat({ phase: 'AwaitingApproval', approval: request(change) }, spec);
const asking = (id = ID, seq = 7): Asking => ({
  request: {
    kind: 'approval',
    seq,
    binary: Buffer.alloc(0),
    message: {
      turn: 't-a',
      attempt: 1,
      id,
      prompt: 'May I?',
      process: 'Ended',
      at,
      startedAt: at,
      ranMs: 100,
      state: 'Unchanged',
    },
  },
});
const stored = (spec: Partial<ApprovalSpec> = {}, metadata: object = {}): StoredApproval => ({
  metadata: {
    name: 'yes',
    namespace: 'team',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: at,
    ...metadata,
  },
  spec: { turn: 'a', requestId: ID, decision: 'Approve', ...spec },
});
const owner = { kind: 'Turn', apiVersion: 'berth.dev/v1alpha1', name: 'a', uid: 't-a' };
const approval = (spec: Partial<ApprovalSpec> = {}, metadata: object = {}): CachedApproval =>
  slimApproval(stored(spec, { ownerReferences: [owner], ...metadata }));
const bound = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink({ fresh: false }) };
const does = (world: Parameters<typeof aWorld>[0]) => decide(aWorld({ ...bound, ...world })).actions;
const names = (world: Parameters<typeof aWorld>[0]) => does(world).map((action) => action.do);

describe('a request from a runner', () => {
  const link = (id?: string, seq?: number) => aLink({ asking: asking(id, seq) });
  const cases: [string, CachedTurn[], ReturnType<typeof link>, string][] = [
    ['of the running turn is committed', [aTurnThat({ phase: 'Running' })], link(), 'CommitRequest'],
    ['that is committed already is only acknowledged', [waiting()], link(), 'AcknowledgeRequest'],
    [
      'that was decided upon already is only acknowledged',
      [aTurnThat({ phase: 'Running', approval: request({ decided }) })],
      link(),
      'AcknowledgeRequest',
    ],
    [
      'from before the one that is committed is only acknowledged',
      [waiting({ id: 'f'.repeat(16), seq: 9 })],
      link(ID, 7),
      'AcknowledgeRequest',
    ],
    [
      'after one that was decided upon is committed',
      [aTurnThat({ phase: 'Running', approval: request({ id: 'f'.repeat(16), decided }) })],
      link(ID, 9),
      'CommitRequest',
    ],
    [
      'of another incarnation is compared by its id alone',
      [aTurnThat({ phase: 'Running', approval: request({ id: 'f'.repeat(16), incarnation: 0, seq: 99, decided }) })],
      link(ID, 7),
      'CommitRequest',
    ],
    ['of another attempt is nobody’s', [aTurnThat({ phase: 'Running', attempt: 2 })], link(), 'AcknowledgeRequest'],
    [
      'of a turn that another pod runs is nobody’s',
      [aTurnThat({ phase: 'Running', podUID: 'other', incarnation: 2 })],
      link(),
      'AcknowledgeRequest',
    ],
    ['of a turn that is gone is nobody’s', [], link(), 'AcknowledgeRequest'],
  ];
  for (const [name, turns, view, expected] of cases) {
    test(name, () => assert.deepEqual(names({ turns, link: view }), [expected]));
  }
  test('of a pod that is given up keeps it from nothing', () => {
    const memory = {
      inputs: new Map(),
      deletionPending: { podUID: POD_UID, why: 'its state was not stored', accepted: false },
    };
    assert.deepEqual(names({ turns: [], link: link(), memory }), ['DeletePod']);
  });
});

describe('a decision', () => {
  test('leaves nothing in the status but what belongs there', () => {
    const facts = { do: 'Consume', incarnation: 2, podUID: POD_UID };
    assert.equal('do' in resumed(waiting(), decided, facts, NOW), false);
  });
  test('is taken for the pod that is there, and nothing else is done in that pass', () => {
    const [action, ...rest] = does({ turns: [waiting()], approvals: [approval()] });
    assert.equal(action?.do, 'Consume');
    assert.deepEqual(rest, []);
    assert.ok(action?.do === 'Consume' && action.podUID === POD_UID && action.approval?.metadata.name === 'yes');
  });
  test('is given to the runner once it is written, and not again', () => {
    const running = aTurnThat({ phase: 'Running', approval: request({ decided }) });
    assert.deepEqual(names({ turns: [running] }), ['StartTurn']);
    const told = aLink({ active: 't-a', lastDecided: ID });
    assert.deepEqual(names({ turns: [running], link: told }), []);
  });
  test('is given again by a leader that does not know whether it was', () => {
    const running = aTurnThat({ phase: 'Running', approval: request({ process: 'Alive', decided }) });
    assert.deepEqual(names({ turns: [running], link: aLink({ active: 't-a', resumed: true }) }), ['StartTurn']);
  });
  test('wakes a session without a pod; without one nothing does, whatever waits behind', () => {
    const session = aSession({ status: { phase: 'AwaitingApproval', incarnation: 1 } });
    const world = { session, pod: undefined, link: undefined };
    const behind = aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [] } });
    const started = (approvals: CachedApproval[]) =>
      decide(aWorld({ ...world, turns: [waiting(), behind], approvals, slot: 'Available' })).admission !== undefined;
    assert.deepEqual([started([]), started([approval()])], [false, true]);
  });
  test('is not taken under a hold', () => {
    const session = aSession({ spec: { suspend: true }, status: RUNNING_STATUS });
    assert.ok(!names({ session, turns: [waiting()], approvals: [approval()] }).includes('Consume'));
  });
  test('that was taken for a pod that never saw it is taken again', () => {
    const status = { ...RUNNING_STATUS };
    const turn = aTurnThat({ phase: 'Running', approval: request({ decided }) });
    const actions = decide(
      aWorld({
        session: aSession({ status }),
        pod: undefined,
        link: aLink({ phase: 'Opening' }),
        turns: [turn],
        memory: { confirmedGone: { podUID: POD_UID } },
      }),
    ).actions;
    const [write] = actions;
    assert.ok(write?.do === 'WriteTurn');
    assert.deepEqual([write.status.phase, write.status.approval?.decided], ['AwaitingApproval', decided]);
    assert.deepEqual(names({ turns: [aTurnThat(write.status)] }), ['Consume']);
  });

  const ignored: [string, CachedApproval][] = [
    ['for another request', approval({ requestId: 'f'.repeat(16) })],
    ['of another turn', approval({ turn: 'b' })],
    ['that belongs to a former turn of the name', approval({}, { ownerReferences: [{ ...owner, uid: 'old' }] })],
    ['that was changed', approval({}, { generation: 2 })],
    ['with too large a response', approval({ response: 'x'.repeat(17_000) })],
    ['that is being deleted', approval({}, { deletionTimestamp: at })],
  ];
  for (const [name, one] of ignored) {
    test(`${name} counts for nothing`, () => {
      assert.ok(!names({ turns: [waiting()], approvals: [one] }).includes('Consume'));
    });
  }
  test('of whoever asked for the turn, or of nobody knows whom, counts for nothing where the class refuses that', () => {
    const status = { ...waiting().status, granted: { notBy: ['ann', 'bob'] } };
    const takes = (...approvals: CachedApproval[]) =>
      names({ turns: [aTurnThat(status)], approvals }).includes('Consume');
    const own = [approval({ requester: 'ann' }), approval({ requester: 'bob' }), approval()];
    assert.deepEqual(
      own.map((one) => takes(one)),
      [false, false, false],
    );
    assert.equal(takes(...own, approval({ requester: 'eve' })), true);
  });
  test('the first of several counts', () => {
    const earlier = approval(
      { decision: 'Deny' },
      { name: 'z', creationTimestamp: new Date(NOW - 60_000).toISOString() },
    );
    const [action] = does({ turns: [waiting()], approvals: [approval(), earlier] });
    assert.ok(action?.do === 'Consume' && action.approval?.metadata.name === 'z');
  });
});

describe('a wait for a decision', () => {
  const limited = aClass({ timeouts: { approval: '10s' } });
  test('ends the turn after timeouts.approval, and not before', () => {
    const early = decide(aWorld({ ...bound, class: limited, turns: [waiting()] }));
    assert.deepEqual([early.actions, early.wakeAt], [[], NOW + 5_000]);
    const late = { class: limited, now: NOW + 5_000, turns: [waiting()] };
    assert.deepEqual(names(late), ['ReadApprovals'], 'the cache may not show a decision yet');
    const request = waiting().status.approval?.id;
    const [ends] = does({ ...late, memory: { approvalsReadFor: request } });
    assert.ok(ends?.do === 'WriteTurn');
    assert.deepEqual([ends.status.phase, ends.status.error?.code], ['Failed', 'ApprovalTimeout']);
    assert.deepEqual(names({ ...late, memory: { approvalsReadFor: 'another' } }), ['ReadApprovals']);
  });
  test('counts a decision that came in time and that the controller has not seen at the end of it', async () => {
    let stalled = 0;
    const world = new QuietWorld({ rates: () => ({ ...NO_FAULTS, watchStalled: stalled }) });
    await world.start();
    await world.session('notes', { timeouts: { approval: '30s' } });
    await world.give('asks', { ms: 100, output: 10, asks: ['Ended'] }, 'notes');
    const status = () => world.server.get(turns, 'team', 'asks')?.status;
    await world.until('the request', () => status()?.phase === 'AwaitingApproval');
    const { id = '', since = '' } = status()?.approval ?? {};
    await world.until('the end', () => world.server.clock.now() >= Date.parse(since) + 28_500);
    stalled = 1;
    await create(world.server, approvals, 'team', 'yes', { turn: 'asks', requestId: id, decision: 'Approve' });
    await world.until('the decision', () => status()?.phase !== 'AwaitingApproval');
    assert.equal(status()?.phase, 'Running');
  });
  test('does not end it when somebody has decided', () => {
    assert.deepEqual(names({ class: limited, now: NOW + 60_000, turns: [waiting()], approvals: [approval()] }), [
      'Consume',
    ]);
  });
  test('is no running time: a turn that goes on has what it had left', () => {
    const since = new Date(NOW - 10_000).toISOString();
    const running = {
      type: 'Running',
      status: 'True',
      reason: 'Running',
      message: '',
      lastTransitionTime: since,
    } as const;
    const turn = aTurnThat(
      { phase: 'Running', approval: request({ process: 'Alive', ranMs: 90_000, decided }), conditions: [running] },
      { timeout: '100s' },
    );
    const link = aLink({
      active: 't-a',
      lastDecided: ID,
      started: { turn: 't-a', at: new Date(NOW - 1e7).toISOString() },
    });
    const { actions, wakeAt } = decide(aWorld({ ...bound, link, turns: [turn] }));
    assert.deepEqual([actions, wakeAt], [[], NOW + 20_000]);
  });
  test('shows in the session', () => {
    const { status } = decide(aWorld({ ...bound, turns: [waiting()] }));
    assert.equal(status.phase, 'AwaitingApproval');
    assert.equal(status.currentTurn, 'a');
    const pending = status.conditions?.find(({ type }) => type === 'ApprovalPending');
    assert.deepEqual([pending?.status, pending?.message], ['True', `Turn a asks (request ${ID}): May I?`]);
  });
  test('keeps an idle pod, and gives it up at capacity or when people ask for it', () => {
    const link = aLink({ lastActivity: NOW - 1e9 });
    const idle = { ...bound, link, class: aClass({ timeouts: { idle: '1s' } }), turns: [waiting()] };
    const suspends = (world: object) => names({ ...idle, ...world }).includes('SuspendRunner');
    const asked = aSession({
      spec: { suspendRequest: 'x' },
      status: { ...RUNNING_STATUS, suspendHandled: { id: 'x', afterTurn: 1 } },
    });
    assert.deepEqual(
      [suspends({}), suspends({ preemptFor: { for: 'other' } }), suspends({ session: asked })],
      [false, true, true],
    );
    assert.equal(suspends({ preemptFor: { for: 'other' }, approvals: [approval()] }), false);
    // A decision that comes while the runner is being asked undoes it.
    const asking = { ...idle, session: asked, link: aLink({ suspendSent: true, suspended: true }) };
    assert.deepEqual(names({ ...asking, approvals: [approval()] }), ['ResumeRunner', 'Consume']);
  });
  test('an Approval without an owner is given to its turn', () => {
    const ownerless = slimApproval(stored({ requestId: 'f'.repeat(16) }));
    assert.deepEqual(names({ turns: [waiting()], approvals: [ownerless] }), ['AdoptApproval']);
  });
});

describe('effects', () => {
  /** Context of an effect that records its calls in order in `done`; `fail` makes the status write fail. */
  function aContext(live: StoredApproval | undefined, fail?: Error) {
    const done: string[] = [];
    const notFound = new ApiError({
      kind: 'Status',
      status: 'Failure',
      code: 404,
      reason: 'NotFound',
      message: 'gone',
    } as never);
    const learned: StoredTurn[] = [];
    const api = {
      replace: async (_: unknown, object: { status: TurnStatus }) => {
        done.push(`write ${object.status.phase}`);
        if (fail) throw fail;
        return object;
      },
      get: async () => {
        if (!live) throw notFound;
        return live;
      },
    };
    const context = {
      key: 'team/notes',
      memory: aMemory(),
      signal: new AbortController().signal,
      world: aWorld(bound),
      effects: {
        ...writesOver(api, (object) => learned.push(object)),
        clock: systemClock,
        log: silentLogger,
        leader: { identity: 'ctl_1', epoch: () => 1 },
        links: { get: () => ({ acknowledge: (seq: number) => done.push(`acknowledge ${seq}`) }) },
        store: { put: async () => done.push('store') },
        withoutWorker: (work: () => unknown) => work(),
        notify: () => {},
      },
    } as unknown as ReconcileContext;
    return { context, done, api, learned };
  }
  const withState = (): Asking => {
    const digest = 'd'.repeat(64);
    const binary = Buffer.alloc(20_000);
    const state = { kind: 'state', seq: 6, binary, message: { turn: 't-a', digest, keyId: 'k', bytes: 9 } } as const;
    const one = asking();
    one.request.message.state = { seq: 6, digest };
    return { ...one, state };
  };

  test('a request is acknowledged after its state is stored and it is written', async () => {
    const { context, done } = aContext(undefined);
    await commitRequest(context, aTurnThat({ phase: 'Running' }), withState());
    assert.deepEqual(done, ['store', 'write AwaitingApproval', 'acknowledge 7']);
  });
  test('a request that is not written is not acknowledged', async () => {
    const { context, done } = aContext(undefined, new Error('no'));
    await assert.rejects(commitRequest(context, aTurnThat({ phase: 'Running' }), withState()));
    assert.deepEqual(done, ['store', 'write AwaitingApproval']);
  });
  test('a request that another leader has committed, and that was decided upon, is not asked again', async () => {
    const { context, done, api } = aContext(
      undefined,
      new ApiError({ code: 409, reason: 'Conflict', message: 'changed' } as never),
    );
    const live = aTurnThat({ phase: 'Running', approval: request({ decided }) });
    Object.assign(api, { get: async () => live });
    await assert.rejects(commitRequest(context, aTurnThat({ phase: 'Running' }), asking()));
    assert.deepEqual(done, ['write AwaitingApproval']);
  });
  test('a request that was committed by a write whose answer was lost ends no turn when the store fails afterwards', async () => {
    const conflict = new ApiError({ code: 409, reason: 'Conflict', message: 'changed' } as never);
    const { context, done, api } = aContext(undefined, conflict);
    const live = aTurnThat({ phase: 'AwaitingApproval', approval: request({}) });
    Object.assign(api, { get: async () => live });
    Object.assign(context.effects.store, {
      put: () => Promise.reject(new StoreFullError(9, 'team', { bytes: 8, share: 7 })),
    });
    await assert.rejects(commitRequest(context, aTurnThat({ phase: 'Running' }), withState()), /changed/);
    assert.deepEqual(done, ['write Failed']);
  });
  test('a result that comes after a request which the cache does not show yet leaves its state and its request with the turn', async () => {
    const { context, api, learned } = aContext(undefined);
    const state = { digest: 'S1', keyId: 'k', bytes: 5, incarnation: 1, seq: 6 };
    const { metadata, spec, status } = waiting({ process: 'Alive' });
    const live: StoredTurn = { metadata: { ...metadata, resourceVersion: '999' }, spec, status: { ...status, state } };
    const conflict = new ApiError({ code: 409, reason: 'Conflict', message: 'changed' } as never);
    Object.assign(api, {
      get: async () => live,
      replace: async (_: unknown, turn: StoredTurn) => {
        if (turn.metadata.resourceVersion !== '999') throw conflict;
        return { ...live, status: turn.status };
      },
    });
    const delivery = { result: aResult('t-a') };
    await assert.rejects(commit(context, aTurnThat({ phase: 'Running' }), delivery), /changed/);
    assert.deepEqual(learned, [live]);
    const again = does({ turns: [slimTurn(live)], link: aLink({ fresh: false, delivery }) });
    assert.deepEqual(again, [{ do: 'Commit', turn: slimTurn(live), delivery }]);
    await commit(context, slimTurn(live), delivery);
    const written = learned.at(-1)?.status;
    assert.deepEqual([written?.phase, written?.state, written?.approval?.id], ['Succeeded', state, ID]);
  });
  test('a decision is taken from the live object alone', async () => {
    const facts = { incarnation: 1, podUID: POD_UID };
    for (const [live, expected] of [
      [stored(), ['write Running']],
      [stored({}, { uid: 'another' }), []],
      [stored({}, { generation: 2 }), []],
      [undefined, []],
    ] as const) {
      const { context, done } = aContext(live);
      await consume(context, waiting(), approval(), facts);
      assert.deepEqual(done, expected);
    }
  });
});

test('an approval that may not be given to its turn keeps nothing from going on', async () => {
  const refusing = (code: number, reason: string) => {
    const patch = () => Promise.reject(new ApiError({ code, reason, message: 'no' } as never));
    const effects = { api: { patch }, log: silentLogger, notify: () => assert.fail('nobody is to be told') };
    return adoptApproval(
      { effects, world: aWorld() } as unknown as ReconcileContext,
      slimApproval(stored()),
      waiting(),
    );
  };
  await refusing(403, 'Forbidden');
  await refusing(409, 'Conflict');
  await assert.rejects(refusing(500, 'InternalError'));
});

describe('a turn that waits for a decision and is cancelled', () => {
  const session = aSession({ status: RUNNING_STATUS });
  const cancelled = (process: TurnApproval['process'], active: string | undefined) => {
    const link = aLink({ sent: new Set(['t-a']), ...(active ? { active } : {}) });
    const turns = [waiting({ process }, { cancel: true })];
    return decide(aWorld({ session, pod: aPod(), link, turns })).actions.flatMap((action) =>
      action.do === 'WriteTurn' ? [action.status.phase] : action.do === 'CancelTurn' ? ['told'] : [],
    );
  };

  test('ends at once where its process has ended', () => {
    assert.deepEqual(cancelled('Ended', undefined), ['Cancelled']);
  });
  test('is told to its runner where its process waits', () => {
    assert.deepEqual(cancelled('Alive', 't-a'), ['told']);
  });
});
