import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { bindRunner } from '../../../controller/act/bind.ts';
import { acknowledgeUnmatched, commit } from '../../../controller/act/commit.ts';
import type { Effects, ReconcileContext } from '../../../controller/act/context.ts';
import { adoptTurn, endReplaced } from '../../../controller/act/former-session.ts';
import { perform } from '../../../controller/act/perform.ts';
import { startTurn } from '../../../controller/act/start-turn.ts';
import { StatePrefetch } from '../../../controller/act/state-prefetch.ts';
import { bodyFacts } from '../../../controller/caches/slim.ts';
import { emptyMemory } from '../../../controller/observed/memory.ts';
import type { CachedSession, CachedTurn } from '../../../controller/observed/world.ts';
import { effective, isProblem } from '../../../controller/settings/effective.ts';
import { ended } from '../../../controller/status/turn-status.ts';
import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import type { KubeClient } from '../../../core/kube/client.ts';
import { isConflict, isNotFound } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { Stored } from '../../../core/kube/types.ts';
import { ownedBy, type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import type { TurnStatus } from '../../../core/resources/turn.ts';
import { BlobStore } from '../../../core/store/blobs.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { type BerthServer, berthServer } from '../../support/berth-server.ts';
import { eventually } from '../../support/eventually.ts';
import { aLink, aResult, aWorld } from '../../support/world.ts';
import { writesOver } from '../../support/writes.ts';

const KEY = Buffer.alloc(32, 7);

/**
 * Effects of the controller on turns and pods while its cache is stale: objects were deleted and created again under
 * the same names. Every effect is aimed at the cached object and must not touch the one that has its name now.
 */
describe('an act that was decided upon by a cache that is behind', () => {
  let cluster: BerthServer;
  let api: KubeClient;
  beforeAll(async () => {
    cluster = await berthServer();
    api = cluster.admin;
  });
  afterAll(() => cluster.close());

  const ref = (name: string) => ({ namespace: 'test', name });
  const makeSession = (name: string) =>
    api.create(sessions, { metadata: { name, namespace: 'test' }, spec: { agent: { command: ['x'] } } } as never);
  /** Deletes the session, keeps its turns, and makes another of its name. */
  async function replace(session: StoredSession): Promise<StoredSession> {
    const { name } = session.metadata;
    await api.delete(sessions, ref(name), { propagationPolicy: 'Orphan' });
    await eventually(
      () =>
        api.get(sessions, ref(name)).then(
          () => false,
          (error) => isNotFound(error),
        ),
      { what: 'the session gone' },
    );
    return makeSession(name);
  }
  const makeTurn = (name: string, session: string, owner?: StoredSession, input: unknown = 1): Promise<StoredTurn> =>
    api.create(turns, {
      metadata: { name, namespace: 'test', ...(owner ? { ownerReferences: [ownedBy(owner)] } : {}) },
      spec: { session, input, cancel: false },
    });
  const write = (turn: StoredTurn, status: TurnStatus): Promise<StoredTurn> =>
    api.replace(turns, { ...turn, status }, { subresource: 'status' });
  const cachedTurn = ({ metadata, spec, status = {} }: StoredTurn): CachedTurn => ({
    metadata,
    spec,
    status,
    input: bodyFacts(spec.input),
  });
  const given = { index: 1, phase: 'Running', attempt: 1, incarnation: 1, podUID: 'p-1' } as const;

  /** A pass by what was cached. Records what was sent over the links, and what was acknowledged. */
  function passOf(session: StoredSession, cached: CachedTurn[] = []) {
    const sent: string[] = [];
    const seen: string[] = [];
    const link = (uid: string) => ({
      startTurn: ({ turn }: { turn: string }) => sent.push(`turn ${turn} to ${uid}`),
      bind: () => sent.push(`bind ${uid}`),
      noteUnmatched: () => sent.push(`stray ${uid}`),
      acknowledge: (seq: number) => sent.push(`ack ${seq} to ${uid}`),
    });
    const memory = emptyMemory();
    const effects = {
      ...writesOver(api, ({ metadata }: Stored) => seen.push(metadata.uid)),
      caches: {
        turnsNaming: () => cached,
        saw: (_: unknown, ...objects: Stored[]) => seen.push(...objects.map(({ metadata }) => metadata.uid)),
      },
      links: { get: (uid: string | undefined) => (uid === undefined ? undefined : link(uid)), closeOthers: () => {} },
      store: new BlobStore({ api, clock: systemClock, ceilingBytes: 1_000_000 }),
      statePrefetch: new StatePrefetch(systemClock),
      keys: { current: { id: 'k', key: KEY }, byId: new Map([['k', KEY]]) },
      leader: { identity: 'controller_1', epoch: () => 1, isReady: () => true },
      clock: systemClock,
      log: silentLogger,
      withoutWorker: (work: () => unknown) => work(),
      notify: () => {},
    } as unknown as Effects;
    const world = aWorld({
      session: session as unknown as CachedSession,
      turns: cached,
      link: aLink({ podUID: 'p-1', protocol: PROTOCOL_VERSION }),
    });
    const pass: ReconcileContext = { effects, key: 'test/x', world, memory, signal: AbortSignal.timeout(60_000) };
    return { pass, sent, seen, memory };
  }

  test('does not give the turn of a new session to the former one, which would take it along', async () => {
    const former = await makeSession('adopts');
    const present = await replace(former);
    const turn = await makeTurn('adopts-1', 'adopts');
    const { pass, seen } = passOf(former);
    await adoptTurn(pass, cachedTurn(turn));
    assert.equal((await api.get(turns, ref('adopts-1'))).metadata.ownerReferences, undefined);
    assert.deepEqual(seen, [present.metadata.uid], 'the cache is told');
    await adoptTurn(passOf(present).pass, cachedTurn(turn));
    assert.equal((await api.get(turns, ref('adopts-1'))).metadata.ownerReferences?.[0]?.uid, present.metadata.uid);
  });

  test('takes a turn in beside its other owners, and only one that is seen as it is', async () => {
    const session = await makeSession('shares');
    const job = { apiVersion: 'batch/v1', kind: 'Job', name: 'nightly', uid: 'job', controller: true };
    const turn = await makeTurn('shares-1', 'shares');
    const patch = { metadata: { ownerReferences: [job] } };
    const owned = await api.patch(turns, ref('shares-1'), patch, { type: 'merge' });
    await assert.rejects(adoptTurn(passOf(session).pass, cachedTurn(turn)), isConflict);
    await adoptTurn(passOf(session).pass, cachedTurn(owned));
    const { ownerReferences = [] } = (await api.get(turns, ref('shares-1'))).metadata;
    assert.deepEqual(
      ownerReferences.map(({ uid, controller }) => [uid, controller]),
      [
        ['job', true],
        [session.metadata.uid, false],
      ],
    );
  });

  test('does not end the turn of a new session as one of a replaced session', async () => {
    const former = await makeSession('ends');
    const present = await replace(former);
    const turn = await makeTurn('ends-1', 'ends', present);
    const status = ended(cachedTurn(turn), { phase: 'Failed', reason: 'SessionReplaced', message: 'x' }, Date.now());
    await endReplaced(passOf(former).pass, cachedTurn(turn), status);
    assert.equal((await api.get(turns, ref('ends-1'))).status, undefined);
    await endReplaced(passOf(present).pass, cachedTurn(turn), status);
    assert.equal((await api.get(turns, ref('ends-1'))).status?.error?.code, 'SessionReplaced');
  });

  test('gives a turn to the pod that it is written for, and to no other', async () => {
    const session = await makeSession('starts');
    const turn = await write(await makeTurn('starts-1', 'starts', session), { ...given, podUID: 'p-2' });
    const { pass, sent } = passOf(session);
    await startTurn(pass, cachedTurn(turn));
    assert.deepEqual(sent, [`turn ${turn.metadata.uid} to p-2`]);
  });

  test('gives no turn that has ended, was made again under its name, or has another input by now', async () => {
    const session = await makeSession('refuses');
    const old = await write(await makeTurn('refuses-1', 'refuses', session), given);
    await api.delete(turns, ref('refuses-1'), {});
    await write(await makeTurn('refuses-1', 'refuses', session), given);
    const done = await write(await makeTurn('refuses-2', 'refuses', session), { ...given, phase: 'Cancelled' });
    const digest = bodyFacts(1).digest;
    const begun = await write(await makeTurn('refuses-3', 'refuses', session), { ...given, inputDigest: digest });
    await api.patch(turns, ref('refuses-3'), { spec: { input: 2 } });
    const { pass, sent, seen } = passOf(session);
    for (const turn of [old, done, begun]) await startTurn(pass, cachedTurn(turn));
    assert.deepEqual(sent, []);
    assert.ok(seen.includes(begun.metadata.uid), 'the next decision sees the other input');
  });

  const delivery = (turn: StoredTurn) => ({ result: aResult(turn.metadata.uid) });
  test('commits nothing to a turn that was made again under its name', async () => {
    const session = await makeSession('commits');
    const old = await write(await makeTurn('commits-1', 'commits', session), given);
    await api.delete(turns, ref('commits-1'), {});
    const present = await write(await makeTurn('commits-1', 'commits', session), given);
    await commit(passOf(session).pass, cachedTurn(old), delivery(old));
    const live = await api.get(turns, ref('commits-1'));
    assert.deepEqual([live.metadata.uid, live.status?.phase], [present.metadata.uid, 'Running']);
  });
  test('commits nothing to a turn that another incarnation or attempt has by now', async () => {
    const session = await makeSession('late');
    for (const [index, change] of [{ podUID: 'p-2', incarnation: 2 }, { attempt: 2 }].entries()) {
      const old = await write(await makeTurn(`late-${index}`, 'late', session), given);
      await write(old, { ...given, ...change });
      const { pass, sent } = passOf(session);
      await assert.rejects(commit(pass, cachedTurn(old), delivery(old)), isConflict);
      assert.equal((await api.get(turns, ref(`late-${index}`))).status?.phase, 'Running');
      assert.deepEqual(sent, [], 'and acknowledges nothing');
    }
  });
  test('leaves a turn that has ended as it ended', async () => {
    const session = await makeSession('first');
    const old = await write(await makeTurn('first-1', 'first', session), given);
    await write(old, { ...given, phase: 'TimedOut' });
    await commit(passOf(session).pass, cachedTurn(old), delivery(old));
    assert.equal((await api.get(turns, ref('first-1'))).status?.phase, 'TimedOut');
  });
  test('commits in spite of a cancellation that came in between', async () => {
    const session = await makeSession('cancel');
    const old = await write(await makeTurn('cancel-1', 'cancel', session), given);
    await api.patch(turns, ref('cancel-1'), { spec: { cancel: true } });
    const { pass, sent } = passOf(session);
    await commit(pass, cachedTurn(old), delivery(old));
    assert.equal((await api.get(turns, ref('cancel-1'))).status?.phase, 'Succeeded');
    assert.deepEqual(sent, ['ack 7 to p-1']);
  });
  test('commits in spite of figures that were shown in between', async () => {
    const session = await makeSession('figures');
    const old = await write(await makeTurn('figures-1', 'figures', session), given);
    const figures = { ...given, startedAt: '2026-01-01T00:00:00.000Z', usage: { wall: 10 } };
    const action = { do: 'ShowUsage', turn: cachedTurn(old), status: figures, of: 1 } as const;
    await perform(action, passOf(session).pass);
    assert.deepEqual((await api.get(turns, ref('figures-1'))).status, figures);
    const { pass, sent } = passOf(session);
    const result = aResult(old.metadata.uid, { usage: { wallMs: 11_000 } });
    await commit(pass, cachedTurn(old), { result });
    const { status } = await api.get(turns, ref('figures-1'));
    assert.deepEqual([status?.phase, status?.usage?.wall], ['Succeeded', 11]);
    assert.equal(status?.startedAt, result.message.startedAt);
    assert.deepEqual(sent, ['ack 7 to p-1']);
  });
  test('shows no figures of a turn that was made again under its name, is queued again or has ended', async () => {
    const session = await makeSession('past');
    const show = (old: StoredTurn) => {
      const status = { ...given, usage: { wall: 10 } };
      return perform({ do: 'ShowUsage', turn: cachedTurn(old), status, of: 1 }, passOf(session).pass);
    };
    const first = await write(await makeTurn('past-1', 'past', session), given);
    await api.delete(turns, ref('past-1'), {});
    await write(await makeTurn('past-1', 'past', session), given);
    await show(first);
    assert.deepEqual((await api.get(turns, ref('past-1'))).status, given);
    for (const phase of ['Queued', 'Succeeded'] as const) {
      const name = `past-${phase.toLowerCase()}`;
      const old = await write(await makeTurn(name, 'past', session), given);
      await write(old, { ...given, phase });
      await show(old);
      assert.deepEqual((await api.get(turns, ref(name))).status, { ...given, phase });
    }
  });
  test('lets go of a result for a turn that another pod runs, and keeps one that the cache does not show yet', async () => {
    const session = await makeSession('strays');
    const turn = await write(await makeTurn('strays-1', 'strays', session), { ...given, podUID: 'p-2' });
    const elsewhere = passOf(session);
    await acknowledgeUnmatched(elsewhere.pass, delivery(turn));
    assert.deepEqual(elsewhere.sent, ['stray p-1', 'ack 7 to p-1']);
    await write(await api.get(turns, ref('strays-1')), given);
    const here = passOf(session);
    await acknowledgeUnmatched(here.pass, delivery(turn));
    assert.deepEqual([here.sent, here.seen], [['stray p-1'], [turn.metadata.uid]]);
    const known = passOf(session, [cachedTurn(await api.get(turns, ref('strays-1')))]);
    await acknowledgeUnmatched(known.pass, delivery(turn));
    assert.deepEqual(known.sent, ['stray p-1', 'ack 7 to p-1'], 'one that was no news is not looked at for ever');
  });
  test('acknowledges no result whose state is not in the turn, and gives up the pod that goes on from it', async () => {
    const session = await makeSession('unstored');
    const old = await write(await makeTurn('unstored-1', 'unstored', session), given);
    const lost = { result: aResult(old.metadata.uid, { state: { seq: 6, digest: 'f'.repeat(64) } }) };
    const { pass, sent, memory } = passOf(session);
    await commit(pass, cachedTurn(old), lost);
    const { status } = await api.get(turns, ref('unstored-1'));
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'StateNotStored']);
    assert.deepEqual([sent, memory.incarnation.deletionPending?.podUID], [[], 'p-1']);
  });
  test('keeps the state of a turn whose result the API server does not take', async () => {
    const session = await makeSession('rejected');
    const old = await write(await makeTurn('rejected-1', 'rejected', session), given);
    const digest = 'f'.repeat(64);
    const state = {
      seq: 6,
      kind: 'state' as const,
      message: { digest, keyId: 'k', bytes: 1 },
      binary: Buffer.alloc(1),
    };
    // A status takes no exit code beyond 32 bits.
    const odd = { state, result: aResult(old.metadata.uid, { state: { seq: 6, digest }, turnCount: 2 ** 40 }) };
    const { pass, sent } = passOf(session);
    await commit(pass, cachedTurn(old), odd);
    const { status } = await api.get(turns, ref('rejected-1'));
    assert.deepEqual([status?.error?.code, status?.state?.digest], ['ResultRejected', digest]);
    assert.deepEqual(sent, ['ack 7 to p-1']);
  });

  test('ends a turn whose result the API server cannot read, instead of sending it for ever', async () => {
    const session = await makeSession('unread');
    const old = await write(await makeTurn('unread-1', 'unread', session), given);
    // The embedded API server answers 400 to it.
    const output = JSON.parse('{"__proto__": {"polluted": true}}');
    const { pass, sent } = passOf(session);
    await commit(pass, cachedTurn(old), { result: aResult(old.metadata.uid, { output }) });
    const { status } = await api.get(turns, ref('unread-1'));
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'ResultRejected']);
    assert.deepEqual(sent, ['ack 7 to p-1']);
  });

  test('starts no session empty whose state was stored under the uid it had before a restored backup', async () => {
    const session = await makeSession('restored');
    const former = '00000000-0000-4000-8000-000000000000';
    const state = { digest: 'f'.repeat(64), keyId: 'k', bytes: 1, incarnation: 3, seq: 6, ref: `${former}/3/6` };
    const { pass, sent, memory } = passOf({ ...session, status: { incarnation: 4, state } });
    const settings = effective(pass.world.session, pass.world.class, pass.world.installation);
    assert.ok(!isProblem(settings));
    await assert.rejects(bindRunner(pass, settings), /does not exist/);
    assert.deepEqual([memory.incarnation.startProblem?.reason, sent], ['StateUnavailable', []]);
  });

  test('deletes no pod that was made again under its name', async () => {
    const session = await makeSession('deletes');
    const pod = () =>
      api.create(pods, {
        metadata: { name: 's-x-1', namespace: 'test' },
        spec: { containers: [{ name: 'a', image: 'b' }] },
      });
    const old = await pod();
    await api.delete(pods, ref('s-x-1'), { gracePeriodSeconds: 0 });
    const present = await pod();
    for (const force of [{}, { force: true as const }]) {
      await perform({ do: 'DeletePod', pod: old, why: 'x', ...force }, passOf(session).pass);
    }
    const live = await api.get(pods, ref('s-x-1'));
    assert.deepEqual([live.metadata.uid, live.metadata.deletionTimestamp], [present.metadata.uid, undefined]);
  });
  test('takes the pod of another uid under the name for no sign of life of the one that is missed', async () => {
    const session = await makeSession('missed');
    const name = `s-${session.metadata.uid}-1`;
    await api.create(pods, {
      metadata: { name, namespace: 'test' },
      spec: { containers: [{ name: 'a', image: 'b' }] },
    });
    const owned = { ...session, status: { ...session.status, incarnation: 1 } };
    const { pass, memory } = passOf(owned);
    await perform({ do: 'ConfirmGone', podUID: 'p-gone' }, pass);
    assert.deepEqual(memory.incarnation.confirmedGone, { podUID: 'p-gone' });
    const { metadata } = await api.get(pods, ref(name));
    await assert.rejects(async () => perform({ do: 'ConfirmGone', podUID: metadata.uid }, pass), /which exists/);
  });
});
