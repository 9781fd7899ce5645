import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { type Deliverable, storeDelivery } from '../../../../controller/act/store-delivery.ts';
import { emptyMemory } from '../../../../controller/observed/memory.ts';
import { digestOf, packContents } from '../../../../core/artifacts/packed.ts';
import type { Artifacts, FrameOf } from '../../../../core/frames/messages.ts';
import { StoreFullError, type StoreKey } from '../../../../core/store/store.ts';
import { systemClock } from '../../../../core/system.ts';
import { aMemory, aWorld, runningTurn, SESSION_UID } from '../../../support/world.ts';

test('a log that was lost before its result was read is said to be truncated, and none is made up where nothing was printed', async () => {
  const context = { world: aWorld(), memory: emptyMemory(), effects: {} } as unknown as ReconcileContext;
  const logOf = async (more: { logSeq?: number }) => {
    const message = { state: 'Unchanged' as const, ...more };
    const turn = runningTurn('a', { status: { incarnation: 1 } });
    return (await storeDelivery(context, turn, { result: { seq: 4, message } })).log;
  };
  assert.deepEqual(await logOf({ logSeq: 3 }), { bytes: 0, truncated: true });
  assert.equal(await logOf({}), undefined);
});

test('a state for which the store has no room is told as a full store where it is what an Environment consists of', async () => {
  const digest = 'd'.repeat(64);
  const put = async () => {
    throw new StoreFullError(7, 'team', { bytes: 9, share: 10 });
  };
  const reasonOf = async (world: ReconcileContext['world']) => {
    const effects = { store: { put }, clock: systemClock, withoutWorker: (work: () => unknown) => work() };
    const context = { world, memory: emptyMemory(), effects, signal: new AbortController().signal };
    const state = { seq: 3, kind: 'state', message: { digest }, binary: Buffer.alloc(20_000) };
    const delivery = { result: { seq: 4, message: { state: { digest } } }, state } as unknown as Deliverable;
    const turn = runningTurn('a', { status: { incarnation: 1 } });
    return (await storeDelivery(context as unknown as ReconcileContext, turn, delivery)).problems[0]?.reason;
  };
  const world = aWorld();
  assert.equal(await reasonOf(world), 'StateNotStored');
  const { session } = world;
  const build = { ...session, spec: { ...session.spec, build: 'Environment' as const } };
  assert.equal(await reasonOf({ ...world, session: build }), 'StoreFull');
});

describe('what the store has not taken is named nowhere', () => {
  const content = Buffer.alloc(20_000, 'x');
  const files = [{ name: 'f', bytes: content.length, digest: digestOf(content) }];
  const digest = 'd'.repeat(64);
  /** Parts of a delivery that are too large for a status. */
  const parts = async () => ({
    State: { state: { seq: 1, kind: 'state', message: { digest, keyId: 'k', bytes: 9 }, binary: content } },
    Output: {},
    Artifacts: {
      artifacts: {
        seq: 2,
        kind: 'artifacts',
        message: { turn: 't', attempt: 1, files },
        binary: await packContents([content]),
      },
    },
    Log: { log: { seq: 3, kind: 'log', message: { text: content.toString(), bytes: 20_000, truncated: false } } },
  });
  const message = { state: { digest }, output: content.toString(), artifactsSeq: 2, logSeq: 3 };

  /** Stores a result with all parts where the store fails for one kind of them. */
  async function storedWithout(kind: StoreKey['kind'] | undefined, failure: Error) {
    const taken: string[] = [];
    const put = async (key: StoreKey) => {
      if (key.kind === kind) throw failure;
      taken.push(`${key.sessionUID}/${key.incarnation}/${key.seq}`);
      return 1;
    };
    const effects = { store: { put }, clock: systemClock, withoutWorker: (work: () => unknown) => work() };
    // The time for storing is over: what fails is given up.
    const memory = aMemory({ commitProblem: { reason: 'StateNotStored', message: 'no', since: 0 } });
    const context = { world: aWorld(), memory, effects, signal: new AbortController().signal };
    const delivery = Object.assign({ result: { seq: 4, message } }, ...Object.values(await parts()));
    const turn = runningTurn('a', { status: { incarnation: 2 } });
    const stored = await storeDelivery(context as unknown as ReconcileContext, turn, delivery as Deliverable);
    const named = JSON.stringify(stored).matchAll(/"ref":"([^"]+)"|"outputRef":"([^"]+)"/g);
    return { stored, taken, named: [...named].map(([, ref, outputRef]) => ref ?? outputRef) };
  }

  const failures = { 'is full': new StoreFullError(7, 'team', { bytes: 9, share: 10 }), fails: new Error('no answer') };
  for (const [how, failure] of Object.entries(failures)) {
    test.for(['State', 'Output', 'Artifacts', 'Log'] as const)(`where it ${how} for the part %s`, async (kind) => {
      const { stored, taken, named } = await storedWithout(kind, failure);
      assert.equal(taken.length, 3);
      assert.deepEqual(named.toSorted(), taken.toSorted());
      assert.equal(stored.problems.length, kind === 'Log' ? 0 : 1);
    });
  }

  test('and what it has taken is named', async () => {
    const { named, taken } = await storedWithout(undefined, failures.fails);
    assert.deepEqual([named.toSorted(), taken.length], [taken.toSorted(), 4]);
  });
});

test('what a turn has stored besides its state is remembered, and what it was refused counts too', async () => {
  const output = 'x'.repeat(20_000);
  const remembered = async (put: (key: StoreKey, data: Buffer) => Promise<number>) => {
    const effects = { store: { put }, clock: systemClock, withoutWorker: (work: () => unknown) => work() };
    const context = { world: aWorld(), memory: emptyMemory(), effects, signal: new AbortController().signal };
    const digest = 'd'.repeat(64);
    const state = { seq: 3, kind: 'state', message: { digest }, binary: Buffer.alloc(20_000) };
    const log = { seq: 2, kind: 'log', message: { text: 'y'.repeat(9_000), bytes: 9_000, truncated: false } };
    const delivery = { result: { seq: 4, message: { state: { digest }, output } }, state, log };
    const turn = runningTurn('a', { status: { incarnation: 1 } });
    await storeDelivery(context as unknown as ReconcileContext, turn, delivery as unknown as Deliverable);
    return context.memory.historyStored;
  };
  assert.equal(await remembered(async (_key, data) => data.length), 20_002, 'a log does not count');
  const refuse = async ({ kind }: StoreKey, data: Buffer) => {
    if (kind === 'Output') throw new StoreFullError(500, 'team', { bytes: 9, share: 10 });
    return data.length;
  };
  assert.equal(await remembered(refuse), 500);
});

describe('the artifacts of a result', () => {
  const store = () => {
    const puts: [StoreKey, Buffer][] = [];
    const put = async (key: StoreKey, data: Buffer) => void puts.push([key, data]);
    const effects = { store: { put }, clock: systemClock, withoutWorker: (work: () => unknown) => work() };
    const context = { world: aWorld(), memory: emptyMemory(), effects, signal: new AbortController().signal };
    return { puts, context: context as unknown as ReconcileContext };
  };
  const contents = ['one', '', 'two!'].map((text) => Buffer.from(text));
  const files = contents.map((content, i) => ({ name: `f${i}`, bytes: content.length, digest: digestOf(content) }));
  const turn = runningTurn('a', { status: { incarnation: 2 } });
  const message = { state: 'Unchanged' as const, artifactsSeq: 3 };
  const frame = (binary: Buffer, more: Partial<Artifacts> = {}): FrameOf<'artifacts'> => ({
    seq: 3,
    kind: 'artifacts',
    message: { turn: 't', attempt: 1, files, ...more },
    binary,
  });

  test('are stored as one content under the number of their frame, of which each file is a part', async () => {
    const { puts, context } = store();
    const leftOut = { count: 1, entries: [{ name: 'link', reason: 'Symlink' as const }] };
    const artifacts = frame(await packContents(contents), { leftOut });
    const stored = await storeDelivery(context, turn, { result: { seq: 4, message }, artifacts });
    const ref = `${SESSION_UID}/2/3`;
    assert.deepEqual(stored.artifacts, {
      artifacts: [
        { ...files[0], ref, offset: 0 },
        { ...files[1], ref, offset: 3 },
        { ...files[2], ref, offset: 3 },
      ],
      artifactsLeftOut: leftOut,
    });
    const key = { namespace: 'team', sessionUID: SESSION_UID, incarnation: 2, seq: 3, kind: 'Artifacts' };
    assert.deepEqual(puts, [[key, Buffer.from('onetwo!')]]);
    assert.deepEqual(stored.problems, []);
  });

  test('that are not what the runner says, or never arrived, are said to be not stored', async () => {
    const { puts, context } = store();
    for (const artifacts of [undefined, frame(await packContents([Buffer.from('onetwo?')])), frame(Buffer.from('x'))]) {
      const delivery = { result: { seq: 4, message }, ...(artifacts && { artifacts }) };
      const stored = await storeDelivery(context, turn, delivery);
      assert.deepEqual(
        stored.problems.map(({ reason }) => reason),
        ['ArtifactsNotStored'],
      );
      assert.equal(stored.artifacts, undefined);
    }
    assert.deepEqual(puts, []);
  });

  test('of which all were left out are named, and nothing is stored', async () => {
    const { puts, context } = store();
    const leftOut = { count: 1, entries: [] };
    const artifacts = frame(await packContents([]), { files: [], leftOut });
    const stored = await storeDelivery(context, turn, { result: { seq: 4, message }, artifacts });
    assert.deepEqual([stored.artifacts, stored.problems, puts], [{ artifactsLeftOut: leftOut }, [], []]);
  });
});
