import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { claimPod } from '../../../../controller/act/claim-pod.ts';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { decide } from '../../../../controller/decide/decide.ts';
import type { CachedTurn, Problem } from '../../../../controller/observed/world.ts';
import type { EventFacts } from '../../../../controller/status/events.ts';
import type { StoredPod } from '../../../../core/kube/builtin.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { podName } from '../../../../core/resources/names.ts';
import { silentLogger } from '../../../../core/system.ts';
import {
  aLink,
  aMemory,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  runningTurn,
  SESSION_UID,
  type WorldChange,
  written,
} from '../../../support/world.ts';

const POOL_UID = '00000000-0000-4000-8000-00000000000a';
const NAME = `p-${POOL_UID}-01`;
const UID = 'warm';

function aWarmPod(session?: string): StoredPod {
  const pod = aPod({ name: NAME, uid: UID, age: 600 });
  const owner = session
    ? { kind: 'Session', uid: session, name: 's' }
    : { kind: 'SessionPool', uid: POOL_UID, name: 'default' };
  pod.metadata.labels = {
    'berth.dev/session-uid': session ?? '',
    'berth.dev/incarnation': '1',
    'berth.dev/pool': 'default',
    'berth.dev/pool-uid': POOL_UID,
  };
  pod.metadata.ownerReferences = [{ apiVersion: 'berth.dev/v1alpha1', controller: true, ...owner }];
  return pod;
}

const admitted = {
  type: 'Admitted',
  status: 'True',
  reason: 'Admitted',
  message: '',
  lastTransitionTime: new Date(NOW - 1000).toISOString(),
} as const;
const status = {
  phase: 'Starting',
  incarnation: 1,
  podName: NAME,
  podUID: UID,
  observedGeneration: 1,
  conditions: [admitted],
} as const;
const session = aSession({ status: { ...status, conditions: [admitted] } });
const claimed = (change: WorldChange = {}): WorldChange => ({
  session,
  pod: aWarmPod(SESSION_UID),
  turns: [aTurn({ name: 't' })],
  ...change,
});

describe('a session with a pool', () => {
  test('takes a ready pod with the write that owns its incarnation, and one of its own where none is ready', () => {
    const warm = { pool: 'default', fits: true, pods: [aWarmPod()], starting: new Set<string>() };
    const { admission, status: next } = decide(aWorld({ warm }));
    assert.deepEqual([admission?.pod, admission?.claim?.metadata.name], [NAME, NAME]);
    assert.deepEqual([next.podName, next.podUID], [NAME, UID]);
    const cold = decide(aWorld({ warm: { ...warm, pods: [] } }));
    const own = podName(SESSION_UID, 1);
    assert.deepEqual(cold.admission, { incarnation: 1, pod: own });
    assert.deepEqual([cold.status.podName, cold.status.podUID], [own, undefined]);
  });
  test('claims the pod that its status names, once no earlier leader can claim it', () => {
    assert.deepEqual(does({ session, unclaimed: aWarmPod() }), ['ClaimPod']);
    assert.deepEqual(does({ session, unclaimed: aWarmPod(), leaderIsReady: false }), []);
    assert.deepEqual(does({ session }), ['ClaimPod'], 'a pod that the cache does not show is looked up');
  });
  test('that has lost the pod starts with one of its own at once, deletes nothing and counts no attempt', () => {
    const memory = { claimLost: { podUID: UID, why: 'was claimed by another session' } };
    const turns = [aTurn({ name: 't' })];
    const lost = decide(aWorld({ session, turns, memory }));
    assert.deepEqual([lost.actions, lost.status.podName, lost.status.podUID], [[], undefined, undefined]);
    assert.equal(lost.status.startFailures?.reason, 'ClaimLost');
    assert.deepEqual(does({ session: aSession({ status: lost.status }), turns }), ['Admit']);
  });
});

describe('a claimed pod', () => {
  test('is bound while its turn is written Running, and is given the turn only once its runner has answered', () => {
    const does_ = (link: Parameters<typeof aLink>[0], turns?: CachedTurn[]) =>
      does(claimed({ link: aLink({ podUID: UID, ...link }), ...(turns ? { turns } : {}) }));
    const begun = [runningTurn('a', { status: { podUID: UID } })];
    assert.deepEqual(does_({ phase: 'Unbound' }), ['Bind', 'WriteTurn']);
    assert.deepEqual(does_({ phase: 'Binding', bindSentAt: NOW - 100 }), ['WriteTurn']);
    assert.deepEqual(does_({ phase: 'Binding', bindSentAt: NOW - 100 }, begun), []);
    assert.deepEqual(does_({ phase: 'Bound' }, begun), ['StartTurn']);
    assert.deepEqual(does_({ phase: 'Bound' }), ['WriteTurn', 'StartTurn']);
  });
  test('that does not answer the bind within a second is given up, and the session starts with a pod of its own', () => {
    const link = aLink({ podUID: UID, phase: 'Binding', bindSentAt: NOW - 1_000 });
    assert.equal(
      decide(aWorld(claimed({ link: { ...link, bindSentAt: NOW - 999 } }))).status.podName !== undefined,
      true,
    );
    const { actions, status: next } = decide(aWorld(claimed({ link })));
    assert.deepEqual(
      actions.map(({ do: what }) => what),
      ['CloseLink', 'DeletePod'],
    );
    assert.deepEqual([next.podName, next.startFailures?.reason], [undefined, 'ClaimLost']);
  });
  describe('that has not answered', () => {
    /** The name in the status after the decision, where it was claimed and its link was opened so long ago. */
    const podName = (claimedMs: number, openedMs: number, pod: StoredPod, spec: object = {}) => {
      const link = aLink({ podUID: UID, phase: 'Opening', openedAt: NOW - openedMs });
      const lastTransitionTime = new Date(NOW - claimedMs).toISOString();
      const conditions = [{ ...admitted, lastTransitionTime }];
      const starting = aSession({ spec, status: { ...status, conditions } });
      return decide(aWorld(claimed({ session: starting, pod, link }))).status.podName;
    };
    const isPending: StoredPod = { ...aWarmPod(SESSION_UID), status: { phase: 'Pending' } };
    const main = { name: 'session', ready: true, restartCount: 0, state: { running: {} } };
    const runs = { ...isPending, status: { phase: 'Running' as const, containerStatuses: [main] } };

    test('is given up where a new leader cannot attach it within five seconds', () => {
      assert.deepEqual([podName(9_000, 4_999, runs), podName(9_000, 5_000, runs)], [NAME, undefined]);
    });
    test('as it was claimed while it started is given up after two minutes', () => {
      assert.deepEqual([podName(119_999, 121_000, isPending), podName(120_000, 121_000, isPending)], [NAME, undefined]);
      assert.deepEqual(
        [podName(6_000, 7_000, runs), podName(120_000, 121_000, runs)],
        [NAME, undefined],
        'its container may run by now',
      );
      assert.equal(podName(9_000, 6_000, isPending), NAME, 'a new leader waits for it, too');
    });
    test('is given up at once when it has a problem', () => {
      const scheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no room' } as const;
      const pod: StoredPod = { ...isPending, spec: { containers: [] } };
      pod.status = { phase: 'Pending', conditions: [scheduled] };
      assert.deepEqual([podName(1_000, 2_000, pod), podName(1_000, 2_000, isPending)], [undefined, NAME]);
    });
    test('is given up for a problem only until its runner answers, as the kubelet reports late', () => {
      const waiting = { reason: 'ErrImagePull', message: 'no' };
      const status = { phase: 'Pending' as const, containerStatuses: [{ ...main, state: { waiting } }] };
      const given = (phase: 'Opening' | 'Unbound') =>
        does(claimed({ pod: { ...isPending, status }, link: aLink({ podUID: UID, phase }) }));
      assert.deepEqual(given('Opening'), ['CloseLink', 'DeletePod']);
      assert.deepEqual(given('Unbound'), ['Bind', 'WriteTurn']);
    });
    test('is given up after half of timeouts.start, so that the session can still start with its own', () => {
      const timeouts = { start: '20s' };
      assert.deepEqual(
        [podName(9_999, 11_000, isPending, { timeouts }), podName(10_000, 11_000, isPending, { timeouts })],
        [NAME, undefined],
      );
    });
  });
  test('that does not answer the bind within timeouts.start is given up before a turn ends for it', () => {
    const podName = (claimedMs: number) => {
      const pod = { ...aWarmPod(SESSION_UID), status: { phase: 'Pending' as const } };
      pod.metadata.creationTimestamp = new Date(NOW - 6_000).toISOString();
      const link = aLink({ podUID: UID, phase: 'Binding', bindSentAt: NOW - 3_000 });
      const conditions = [{ ...admitted, lastTransitionTime: new Date(NOW - claimedMs).toISOString() }];
      const starting = aSession({ spec: { timeouts: { start: '5s' } }, status: { ...status, conditions } });
      return decide(aWorld(claimed({ session: starting, pod, link }))).status.podName;
    };
    assert.deepEqual([podName(4_999), podName(5_000)], [NAME, undefined]);
  });
  test('that was not bound within timeouts.start, as its claim took so long, is given up before a turn ends for it', () => {
    const decideAfter = (claimedMs: number, link: Parameters<typeof aLink>[0], problem?: Problem) => {
      const conditions = [{ ...admitted, lastTransitionTime: new Date(NOW - claimedMs).toISOString() }];
      const starting = aSession({ spec: { timeouts: { start: '5s' } }, status: { ...status, conditions } });
      const runs = [{ name: 'session', ready: true, restartCount: 0, state: { running: {} } }];
      const pod: StoredPod = { ...aWarmPod(SESSION_UID), status: { phase: 'Running', containerStatuses: runs } };
      const podRead = { podUID: UID };
      const memory = { podRead, ...(problem ? { startProblem: problem } : {}) };
      const opened = aLink({ podUID: UID, openedAt: NOW - 600_000, ...link });
      return decide(aWorld(claimed({ session: starting, pod, link: opened, memory })));
    };
    for (const phase of ['Unbound', 'Ended'] as const) {
      const { actions, status: next } = decideAfter(5_000, { phase });
      assert.deepEqual(written(actions), [], 'no turn ends');
      assert.deepEqual([next.podName, next.startFailures?.reason], [undefined, 'ClaimLost']);
      assert.match(next.startFailures?.message ?? '', /was not bound within timeouts\.start/);
      assert.equal(decideAfter(4_999, { phase }).status.podName, NAME);
    }
    // A problem that is not the pod's is told: another pod would have it too.
    const problem = { reason: 'PodConfigError', message: 'there is no Secret "s"' } as const;
    const { actions } = decideAfter(5_000, { phase: 'Unbound' }, problem);
    assert.deepEqual(
      written(actions).map(({ error }) => error?.code),
      ['PodConfigError'],
    );
  });

  test('that has just started has five seconds to answer the bind', () => {
    const podName = (ageAtBind: number, sinceMs: number) => {
      const pod = aWarmPod(SESSION_UID);
      pod.metadata.creationTimestamp = new Date(NOW - sinceMs - ageAtBind).toISOString();
      const link = aLink({ podUID: UID, phase: 'Binding', bindSentAt: NOW - sinceMs });
      return decide(aWorld(claimed({ pod, link }))).status.podName;
    };
    assert.deepEqual(
      [podName(9_999, 4_999), podName(9_999, 5_000), podName(10_000, 1_000)],
      [NAME, undefined, undefined],
    );
  });
  test('that does not answer gives back a turn that was written Running for it: no attempt is counted', () => {
    const turns = [runningTurn('a', { status: { podUID: UID, attempt: 1 } })];
    const given = (link: Parameters<typeof aLink>[0]) => {
      const late = aLink({ podUID: UID, phase: 'Binding', bindSentAt: NOW - 1_000, fresh: true, ...link });
      return decide(aWorld(claimed({ link: late, turns })));
    };
    const { actions, status: next } = given({});
    assert.deepEqual(
      actions.map(({ do: what }) => what),
      ['WriteTurn', 'CloseLink', 'DeletePod'],
    );
    const [queued] = written(actions);
    assert.deepEqual([queued?.phase, queued?.attempt, queued?.podUID], ['Queued', undefined, undefined]);
    assert.equal(queued?.conditions?.find(({ type }) => type === 'Finished')?.reason, 'ClaimLost');
    assert.equal(next.podName, undefined);
    // An earlier leader may have bound it, and given it the turn.
    assert.deepEqual(given({ fresh: false }).actions, []);
  });
  test('that ends before it is bound costs the session no turn', () => {
    const pod = aWarmPod(SESSION_UID);
    pod.status = { phase: 'Failed' };
    const { actions, status: next } = decide(aWorld(claimed({ pod, link: aLink({ podUID: UID, phase: 'Unbound' }) })));
    assert.deepEqual(
      actions.filter(({ do: what }) => what === 'WriteTurn'),
      [],
    );
    assert.equal(next.podName, undefined);
  });
  test('that was bound is lost like any other', () => {
    const link = aLink({ podUID: UID, phase: 'Ended', bound: {} as never });
    const pod = aWarmPod(SESSION_UID);
    pod.status = { phase: 'Failed' };
    assert.deepEqual(does(claimed({ pod, link, turns: [] })), ['CloseLink', 'DeletePod']);
  });
  test('older than timeouts.start is not given up for its age', () => {
    const pod = aWarmPod(SESSION_UID);
    pod.metadata.creationTimestamp = new Date(NOW - 40 * 60_000).toISOString();
    const did = does(claimed({ pod, link: aLink({ podUID: UID, phase: 'Unbound' }) }));
    assert.deepEqual(did, ['Bind', 'WriteTurn']);
  });
});

describe('the claim', () => {
  /** Claims with an API whose pod is `live`, and whose patches are answered one after the other. */
  async function claim(live: StoredPod | undefined, ...answers: (ApiError | 'OK')[]) {
    return claimOf('Unbound', live, ...answers);
  }
  /** The same for a pod whose link is in this phase. */
  async function claimOf(phase: 'Unbound' | 'Opening', live: StoredPod | undefined, ...answers: (ApiError | 'OK')[]) {
    const calls: string[] = [];
    const counted: string[] = [];
    const memory = aMemory();
    /** Assignments of the pod: true where a claim of this leader is noted by then. */
    const assigned: boolean[] = [];
    let claims = 0;
    const events: string[] = [];
    const api = {
      get: async () => {
        calls.push('get');
        if (!live) throw new ApiError({ code: 404, reason: 'NotFound', message: '' });
        return live;
      },
      patch: async (_kind: unknown, _ref: unknown, patch: { metadata: Partial<StoredPod['metadata']> }) => {
        calls.push(`patch ${patch.metadata.resourceVersion} ${patch.metadata.labels?.['berth.dev/session-uid']}`);
        const answer = answers.shift();
        if (answer !== 'OK') throw answer;
        return aWarmPod(SESSION_UID);
      },
      delete: async () => calls.push('delete'),
    };
    const effects = {
      api,
      links: {
        get: () => ({ view: { phase } }),
        claiming: () => {
          claims += 1;
          return () => {
            claims -= 1;
          };
        },
        assign: () => assigned.push(claims > 0),
      },
      pools: { count: (what: string) => counted.push(what) },
      notify: (_session: unknown, { reason }: EventFacts) => events.push(reason),
      clock: { monotonic: () => 0 },
      log: silentLogger,
    };
    const context = {
      effects,
      world: aWorld({ session }),
      memory,
      key: 'team/notes',
      signal: new AbortController().signal,
    };
    const action = { do: 'ClaimPod', podUID: UID, pod: aWarmPod() } as const;
    const error = await claimPod(context as unknown as ReconcileContext, action).catch((thrown: Error) => thrown);
    return { error, calls, assigned, events, counted, lost: memory.incarnation.claimLost?.why, claims };
  }
  const conflict = new ApiError({ code: 409, reason: 'Conflict', message: '' });

  test('is one write at the version in which nobody had the pod, and told by an event', async () => {
    const { calls, assigned, events, lost } = await claim(undefined, 'OK');
    assert.deepEqual([calls, assigned, lost], [[`patch 300 ${SESSION_UID}`], [true], undefined]);
    assert.deepEqual(events, ['PodClaimed']);
  });
  test('of a pod that starts counts as a start without a ready one', async () => {
    const counted = async (phase: 'Unbound' | 'Opening') => (await claimOf(phase, undefined, 'OK')).counted;
    assert.deepEqual([await counted('Unbound'), await counted('Opening')], [['claimed'], ['missed']]);
  });
  test('of a pod that another session has got meanwhile is lost, and changes nothing', async () => {
    const { calls, assigned, lost, claims } = await claim(aWarmPod('another'), conflict);
    assert.deepEqual([calls.slice(1), assigned, lost], [['get'], [], 'was claimed by another session']);
    assert.equal(claims, 0, 'it counts as none of this leader’s');
  });
  test('whose answer is lost is tried again, and counts as this leader’s own meanwhile', async () => {
    const failed = new ApiError({ code: 500, reason: 'InternalError', message: 'etcd timed out' });
    const { error, lost, claims } = await claim(undefined, failed);
    assert.deepEqual([error, lost, claims], [failed, undefined, 1]);
  });
  test('whose answer was lost is found again', async () => {
    const { calls, assigned, lost } = await claim(aWarmPod(SESSION_UID), conflict);
    assert.deepEqual([calls.slice(1), assigned, lost], [['get'], [false], undefined]);
  });
  test('is tried again where only others have written the pod, such as its kubelet', async () => {
    const { calls, lost } = await claim(aWarmPod(), conflict, 'OK');
    assert.deepEqual([calls.length, lost], [3, undefined]);
  });
  test('that the API server refuses is lost', async () => {
    const forbidden = new ApiError({ code: 403, reason: 'Forbidden', message: 'no' });
    const { lost, claims } = await claim(undefined, forbidden);
    assert.deepEqual([lost, claims], ['cannot be claimed: no', 0]);
  });
});
