import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, test } from 'vitest';
import { type Caches, informerCaches } from '../../../controller/caches/caches.ts';
import type { GarbageTools } from '../../../controller/garbage/context.ts';
import type { StatePosition } from '../../../controller/garbage/facts.ts';
import { sweepApprovals } from '../../../controller/garbage/sweep-approvals.ts';
import { sweepOrphans } from '../../../controller/garbage/sweep-orphans.ts';
import { sweepSession } from '../../../controller/garbage/sweep-session.ts';
import { sweepStates } from '../../../controller/garbage/sweep-states.ts';
import type { CachedSession } from '../../../controller/observed/world.ts';
import { KubeClient } from '../../../core/kube/client.ts';
import { isNotFound } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import { ServerClock } from '../../../core/kube/server-clock.ts';
import {
  approvals,
  blobs,
  ownedBy,
  type Session,
  type SessionClass,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../../../core/resources/kinds.ts';
import { podName, storeKey } from '../../../core/resources/names.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import type { TurnStatus } from '../../../core/resources/turn.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import type { StoreKey } from '../../../core/store/store.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { type BerthServer, berthServer } from '../../support/berth-server.ts';
import { eventually } from '../../support/eventually.ts';

const HOUR = 3_600_000;
const never = new AbortController().signal;
const namespace = 'test';

async function filledCaches({ admin }: BerthServer): Promise<Caches> {
  const caches = informerCaches({
    api: admin,
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    nodes: false,
    agentFiles: false,
    sessionPools: false,
  });
  caches.start();
  await caches.synced(never);
  return caches;
}

describe('garbage collection', () => {
  let berth: BerthServer;
  let caches: Caches;
  const events: string[] = [];
  beforeAll(async () => {
    berth = await berthServer();
    const spec = { agent: { command: ['agent'] }, overrides: ['history'] } as unknown as SessionClass['spec'];
    await berth.admin.create(sessionclasses, { metadata: { name: 'default' }, spec });
  });
  afterAll(() => berth.close());
  beforeEach(async () => {
    caches = await filledCaches(berth);
  });
  afterEach(() => caches.stop());

  /** Tools of a sweep whose clocks are ahead: the API server's by `ms`, our own by `ownMs`. */
  function later(ms: number, ownMs = ms): GarbageTools & { store: BlobStore } {
    const clock = { ...systemClock, now: () => Date.now() + ms };
    const store = new BlobStore({ api: berth.admin, clock, ceilingBytes: 1e9 });
    return {
      api: berth.admin,
      caches,
      store,
      clock,
      ownTime: () => Date.now() + ownMs,
      nodeGraceMs: 60_000,
      log: silentLogger,
      notify: (_object, { reason }) => events.push(reason),
      removals: never,
    };
  }

  async function session(name: string, spec: Partial<Session['spec']> = {}): Promise<StoredSession> {
    return berth.admin.create(sessions, { metadata: { name, namespace }, spec: spec as Session['spec'] });
  }
  async function status(object: StoredSession, next: SessionStatus): Promise<StoredSession> {
    const live = await berth.admin.get(sessions, { namespace, name: object.metadata.name });
    const written = await berth.admin.replace(sessions, { ...live, status: next }, { subresource: 'status' });
    await eventually(
      () =>
        caches.session(namespace, object.metadata.name)?.metadata.resourceVersion === written.metadata.resourceVersion,
    );
    return written;
  }
  async function turn(owner: StoredSession, name: string, next: TurnStatus): Promise<StoredTurn> {
    const made = await berth.admin.create(turns, {
      metadata: { name, namespace, ownerReferences: [ownedBy(owner)] },
      spec: { session: owner.metadata.name, input: 'x'.repeat(100) } as Turn['spec'],
    });
    return berth.admin.replace(turns, { ...made, status: next }, { subresource: 'status' });
  }
  const put = async (owner: StoredSession, kind: StoreKey['kind'], seq: number, incarnation = 1) => {
    const { name, uid } = owner.metadata;
    await later(0).store.put(
      { namespace, sessionUID: uid, incarnation, seq, kind },
      Buffer.from(`${kind} ${seq}`),
      { name, uid },
      never,
    );
    return storeKey(uid, incarnation, seq);
  };
  const state = (ref: string, seq: number) => ({
    ref,
    seq,
    incarnation: 1,
    digest: 'a'.repeat(64),
    keyId: 'k',
    bytes: 1,
  });
  const ended = (index: number, more: TurnStatus = {}): TurnStatus => ({
    index,
    phase: 'Succeeded',
    incarnation: 1,
    ...more,
  });
  const counted = (index: number) => ({
    turns: { total: index, succeeded: index, failed: 0 },
    lastTurn: { name: 't', index, phase: 'Succeeded' as const },
  });
  const seqs = async (owner: StoredSession) =>
    (await later(0).store.list({ namespace, sessionUID: owner.metadata.uid }, never))
      .map(({ seq }) => seq)
      .sort((a, b) => a - b);
  const turnsOf = async (name: string) =>
    (await berth.admin.list(turns, { namespace, fieldSelector: `spec.session=${name}` })).items
      .map(({ metadata }) => metadata.name)
      .sort();
  const sweep = (tools: GarbageTools, name: string, settled?: StatePosition) => {
    const cached = caches.session(namespace, name);
    assert.ok(cached);
    return sweepSession(tools, cached, settled, never);
  };

  test('turns over the history limit go with what they have stored, the oldest first', async () => {
    const owner = await session('history', { history: { turns: 2 } });
    for (let index = 1; index <= 4; index++) {
      const log = await put(owner, 'Log', index * 10);
      const outputRef = await put(owner, 'Output', index * 10 + 1);
      await turn(owner, `history-${index}`, ended(index, { outputRef, log: { ref: log, bytes: 1, truncated: false } }));
    }
    await status(owner, { ...counted(4) });
    await sweep(later(2 * HOUR), 'history');
    assert.deepEqual(await turnsOf('history'), ['history-3', 'history-4']);
    assert.deepEqual(await seqs(owner), [30, 31, 40, 41]);
  });

  test('interrupted between a turn and what it had stored, the next sweep removes the rest', async () => {
    const owner = await session('interrupted', { history: { turns: 1 } });
    const outputRef = await put(owner, 'Output', 11);
    await turn(owner, 'interrupted-1', ended(1, { outputRef }));
    await turn(owner, 'interrupted-2', ended(2));
    await status(owner, { ...counted(2) });
    const tools = later(2 * HOUR);
    tools.store.delete = () => Promise.reject(new Error('killed here'));
    await assert.rejects(sweep(tools, 'interrupted'), /killed here/);
    assert.deepEqual(await turnsOf('interrupted'), ['interrupted-2']);
    assert.deepEqual(await seqs(owner), [11]);
    await sweep(later(2 * HOUR), 'interrupted');
    assert.deepEqual(await seqs(owner), []);
  });

  test('a superseded state goes once the later one has been counted for a while, by whichever sweep, and not before', async () => {
    for (const name of ['states', 'states-only']) {
      const owner = await session(name);
      const first = await put(owner, 'State', 5);
      const second = await put(owner, 'State', 9);
      await turn(owner, `${name}-1`, ended(1, { state: state(first, 5) }));
      await turn(owner, `${name}-2`, ended(2, { state: state(second, 9) }));
      await status(owner, { ...counted(2), state: state(second, 9) });
      assert.equal((await sweep(later(2 * HOUR), name, { incarnation: 1, seq: 5 })).leavesStates, true);
      assert.deepEqual(await seqs(owner), [5, 9]);
      const settled = { incarnation: 1, seq: 9 };
      if (name === 'states') assert.equal((await sweep(later(0), name, settled)).leavesStates, false);
      else
        assert.deepEqual(
          await sweepStates(later(0), caches.session(namespace, name) as CachedSession, settled, never),
          { removed: 1, isDone: true },
        );
      assert.deepEqual(await seqs(owner), [9]);
    }
  });

  test('objects that an unfinished commit has stored stay, at whatever moment of the commit the sweep comes', async () => {
    const owner = await session('commit');
    const before = await put(owner, 'State', 5);
    await status(owner, { incarnation: 1, ...counted(1), state: state(before, 5) });
    const running = await turn(owner, 'commit-2', { index: 2, phase: 'Running', incarnation: 1 });
    const tools = later(3 * HOUR);
    const log = await put(owner, 'Log', 18);
    await sweep(tools, 'commit');
    const next = await put(owner, 'State', 19);
    await sweep(tools, 'commit');
    const outputRef = await put(owner, 'Output', 20);
    await sweep(tools, 'commit');
    assert.deepEqual(await seqs(owner), [5, 18, 19, 20]);

    // The commit is written while a sweep is under way, between its reads.
    const commit = () =>
      berth.admin.replace(
        turns,
        {
          ...running,
          status: ended(2, { state: state(next, 19), outputRef, log: { ref: log, bytes: 1, truncated: false } }),
        },
        { subresource: 'status' },
      );
    const { list } = tools.store;
    tools.store.list = async (...args) => {
      const found = await list.apply(tools.store, args);
      await commit();
      return found;
    };
    await sweep(tools, 'commit');
    assert.deepEqual(await seqs(owner), [5, 18, 19, 20]);
    await status(owner, { incarnation: 1, ...counted(2), state: state(next, 19) });
    await sweep(later(3 * HOUR), 'commit', { incarnation: 1, seq: 19 });
    assert.deepEqual(await seqs(owner), [18, 19, 20]);
  });

  test('a state that is stored for a suspension stays until the status has it', async () => {
    const owner = await session('suspending');
    const committed = await put(owner, 'State', 5);
    await put(owner, 'State', 30);
    await status(owner, { incarnation: 1, podName: 'p', ...counted(1), state: state(committed, 5) });
    await sweep(later(3 * HOUR), 'suspending');
    assert.deepEqual(await seqs(owner), [5, 30]);
  });

  test('objects of a session that was replaced by another of the same name are not touched', async () => {
    const first = await session('replaced', { history: { turns: 1 } });
    await put(first, 'Log', 3);
    await turn(first, 'replaced-1', ended(1));
    await turn(first, 'replaced-2', ended(2));
    await status(first, { ...counted(2) });
    const cached = caches.session(namespace, 'replaced');
    assert.ok(cached);
    await berth.admin.delete(sessions, { namespace, name: 'replaced' }, { propagationPolicy: 'Orphan' });
    await eventually(() =>
      berth.admin.get(sessions, { namespace, name: 'replaced' }).then(
        () => false,
        (error) => isNotFound(error),
      ),
    );
    await status(await session('replaced'), { ...counted(2) });
    await sweepSession(later(2 * HOUR), cached, undefined, never);
    assert.deepEqual(await turnsOf('replaced'), ['replaced-1', 'replaced-2']);
    assert.deepEqual(await seqs(first), [3]);
  });

  test('stored objects of a deleted session are deleted when they are an hour old', async () => {
    const owner = await session('gone');
    await put(owner, 'State', 1);
    const stays = await session('stays');
    await put(stays, 'State', 1);
    await berth.admin.delete(sessions, { namespace, name: 'gone' }, { propagationPolicy: 'Orphan' });
    await eventually(() => caches.session(namespace, 'gone') === undefined);
    await sweepOrphans(later(0), never);
    assert.deepEqual(await seqs(owner), [1]);
    await sweepOrphans(later(2 * HOUR), never);
    assert.deepEqual(await seqs(owner), []);
    assert.deepEqual(await seqs(stays), [1]);
  });

  test('a session that the cache does not show yet keeps what it has stored, and its pod', async () => {
    const owner = await session('unseen');
    await put(owner, 'State', 1);
    const name = podName(owner.metadata.uid, 1);
    await berth.admin.create(pods, ourPod(name, owner.metadata.uid, { ownerReferences: [ownedBy(owner)] }));
    await eventually(() => caches.pod(namespace, name));
    const blind = { ...later(2 * HOUR), caches: { ...caches, allSessions: () => [] } };
    await sweepOrphans(blind, never);
    assert.deepEqual(await seqs(owner), [1]);
    assert.ok(await berth.admin.get(pods, { namespace, name }));
  });

  function ourPod(name: string, uid: string, metadata: object = {}) {
    const labels = {
      'app.kubernetes.io/managed-by': 'berth',
      'berth.dev/session-uid': uid,
      'berth.dev/session': 'lost',
      'berth.dev/incarnation': '1',
    };
    return {
      metadata: { name, namespace, labels, ...metadata },
      spec: { containers: [{ name: 'session', image: 'x' }] },
    };
  }

  test('a pod whose session is gone and whose node does not answer is removed after the node’s grace', async () => {
    const ghost = randomUUID();
    const name = podName(ghost, 1);
    const owner = { apiVersion: 'berth.dev/v1', kind: 'Session', name: 'lost', uid: ghost };
    const pod = ourPod(name, ghost, { ownerReferences: [owner] });
    await berth.admin.create(pods, {
      ...pod,
      spec: { ...pod.spec, nodeName: 'dead', terminationGracePeriodSeconds: 10 },
    });
    await berth.admin.delete(pods, { namespace, name });
    await eventually(() => caches.pod(namespace, name)?.metadata.deletionTimestamp);
    const isThere = () =>
      berth.admin.get(pods, { namespace, name }).then(
        () => true,
        () => false,
      );
    await sweepOrphans(later(69_000), never);
    assert.equal(await isThere(), true);
    const answers = { ...caches, node: () => ({ cordoned: false, ready: true }) };
    await sweepOrphans({ ...later(75_000), caches: answers }, never);
    assert.equal(await isThere(), true);
    // The state of the node is unknown: slow termination alone is no sign that it is lost.
    await sweepOrphans(later(HOUR), never);
    assert.equal(await isThere(), true);
    const dead = { ...caches, node: () => ({ cordoned: false, ready: false, since: Date.now() - HOUR }) };
    await sweepOrphans({ ...later(75_000), caches: dead }, never);
    assert.equal(await isThere(), false);
  });

  test('a pod whose session is gone is deleted, and one that only resembles it is not', async () => {
    const ghost = randomUUID();
    const name = podName(ghost, 1);
    // The garbage collector of the cluster would be faster: it does not know this owner's kind.
    const owner = { apiVersion: 'berth.dev/v1', kind: 'Session', name: 'lost', uid: ghost };
    await berth.admin.create(pods, ourPod(name, ghost, { ownerReferences: [owner] }));
    await berth.admin.create(pods, ourPod('somebodys', ghost));
    await eventually(() => caches.pod(namespace, name));
    await sweepOrphans(later(0), never);
    await eventually(() =>
      berth.admin.get(pods, { namespace, name }).then(
        ({ metadata }) => metadata.deletionTimestamp !== undefined,
        (error) => isNotFound(error),
      ),
    );
    const other = await berth.admin.get(pods, { namespace, name: 'somebodys' });
    assert.equal(other.metadata.deletionTimestamp, undefined);
  });

  test('an approval for an ended turn is reported once and deleted with the turn', async () => {
    const owner = await session('decided');
    const done = await turn(owner, 'decided-1', ended(1));
    await status(owner, { ...counted(1) });
    const spec = { turn: 'decided-1', requestId: 'r1', decision: 'Approve' as const };
    await berth.admin.create(approvals, { metadata: { name: 'late', namespace }, spec });
    await berth.admin.create(approvals, { metadata: { name: 'early', namespace }, spec: { ...spec, turn: 'to-come' } });
    await eventually(() => caches.allApprovals().length === 2 && caches.turnsNaming(namespace, 'decided').length === 0);
    await sweepApprovals(later(0), undefined, never);
    const adopted = await berth.admin.get(approvals, { namespace, name: 'late' });
    assert.equal(adopted.metadata.ownerReferences?.[0]?.uid, done.metadata.uid);
    assert.equal((await berth.admin.get(approvals, { namespace, name: 'early' })).metadata.ownerReferences, undefined);
    await eventually(() => caches.allApprovals().some(({ metadata }) => metadata.ownerReferences));
    await sweepApprovals(later(0), undefined, never);
    assert.deepEqual(events, ['ApprovalIgnored']);
  });

  test('approvals for turns that never existed do not keep later ones from being read', async () => {
    const owner = await session('many');
    const done = await turn(owner, 'many-1', ended(1));
    await status(owner, { ...counted(1) });
    const approval = (name: string, turn: string) =>
      berth.admin.create(approvals, {
        metadata: { name, namespace },
        spec: { turn, requestId: 'r1', decision: 'Approve' as const },
      });
    for (let number = 100; number <= 200; number++) await approval(`a-${number}`, 'never-was');
    await approval('b-late', 'many-1');
    const ofMany = () => caches.allApprovals().filter(({ spec }) => /^(never-was|many-1)$/.test(spec.turn));
    await eventually(() => ofMany().length === 102 && caches.turnsNaming(namespace, 'many').length === 0);
    let after: string | undefined;
    do after = await sweepApprovals(later(0), after, never);
    while (after !== undefined);
    const adopted = await berth.admin.get(approvals, { namespace, name: 'b-late' });
    assert.equal(adopted.metadata.ownerReferences?.[0]?.uid, done.metadata.uid);
  });

  test('an object that is not as the store makes them is left alone', async () => {
    const uid = randomUUID();
    const labels = { 'berth.dev/session-uid': uid, 'berth.dev/incarnation': '1', 'berth.dev/seq': '1' };
    const spec = {
      session: 'x',
      sessionUID: uid,
      kind: 'State' as const,
      incarnation: 1,
      seq: 1,
      part: 1,
      parts: 1,
      encoding: 'Identity' as const,
      digest: 'a'.repeat(64),
      bytes: 0,
      data: '',
    };
    await berth.admin.create(blobs, { metadata: { name: 'by-hand', namespace, labels }, spec });
    await sweepOrphans(later(2 * HOUR), never);
    assert.ok(await berth.admin.get(blobs, { namespace, name: 'by-hand' }));
  });

  test('the API server tells its time with every answer', async () => {
    const ahead = { ...systemClock, now: () => Date.now() + 10 * HOUR };
    const clock = new ServerClock(ahead, silentLogger);
    const { url, ca, connection } = berth.server;
    const client = new KubeClient({
      connection: {
        server: url,
        namespace,
        tls: { ca },
        headers: async () => ({ authorization: `Bearer ${connection.token}` }),
      },
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'test',
      onAnswer: (time) => clock.answered(time),
    });
    assert.ok(clock.now() - Date.now() > 9 * HOUR);
    await client.list(sessions, { namespace });
    assert.ok(Math.abs(clock.now() - Date.now()) < HOUR);
    await client.close();
  });
});

describe('the cache of turns', () => {
  test('holds an ended turn until its session has counted it, and not after a new start either', async () => {
    const berth = await berthServer();
    const caches = await filledCaches(berth);
    try {
      const owner = await berth.admin.create(sessions, {
        metadata: { name: 's', namespace },
        spec: {} as Session['spec'],
      });
      for (const [name, status] of [
        ['first', { index: 1, phase: 'Succeeded' }],
        ['running', { index: 2, phase: 'Running' }],
        ['cancelled', { index: 3, phase: 'Cancelled' }],
      ] as const) {
        const made = await berth.admin.create(turns, {
          metadata: { name, namespace, ownerReferences: [ownedBy(owner)] },
          spec: { session: 's' } as Turn['spec'],
        });
        await berth.admin.replace(turns, { ...made, status }, { subresource: 'status' });
      }
      const cached = (from: Caches) =>
        from
          .turnsNaming(namespace, 's')
          .map(({ metadata }) => metadata.name)
          .sort();
      const phases = (from: Caches) =>
        from.turnsNaming(namespace, 's').filter(({ status }) => status.phase !== undefined);
      await eventually(() => phases(caches).length === 3);
      const lastTurn = { name: 'first', index: 1, phase: 'Succeeded' as const };
      await berth.admin.replace(sessions, { ...owner, status: { lastTurn } }, { subresource: 'status' });
      await eventually(() => cached(caches).length === 2);
      assert.deepEqual(cached(caches), ['cancelled', 'running']);
      // A later event of a turn that left the cache does not bring it back.
      await berth.admin.patch(turns, { namespace, name: 'first' }, { metadata: { labels: { seen: 'late' } } });
      await berth.admin.create(turns, {
        metadata: { name: 'next', namespace },
        spec: { session: 's' } as Turn['spec'],
      });
      await eventually(() => cached(caches).includes('next'));
      assert.deepEqual(cached(caches), ['cancelled', 'next', 'running']);

      const successor = await filledCaches(berth);
      await eventually(() => cached(successor).length === 3);
      assert.deepEqual(cached(successor), ['cancelled', 'next', 'running']);
      await successor.stop();
    } finally {
      await caches.stop();
      await berth.close();
    }
  });
});
