import assert from 'node:assert/strict';
import { test } from 'vitest';
import { commit } from '../../../../controller/act/commit.ts';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import type { FrameOf } from '../../../../core/frames/messages.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import { parseStoreKey } from '../../../../core/resources/names.ts';
import type { StoreKey } from '../../../../core/store/store.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { aMemory, aResult, aSession, aWorld, NOW, RUNNING_STATUS, runningTurn } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

/** Commits a turn of incarnation 1 while its session is at incarnation 2; gives what was written and stored. */
async function committed(stateBytes: number, output: unknown) {
  const digest = 'd'.repeat(64);
  const state: FrameOf<'state'> = {
    seq: 6,
    kind: 'state',
    binary: Buffer.alloc(stateBytes),
    message: { digest, keyId: 'k', bytes: stateBytes } as FrameOf<'state'>['message'],
  };
  const result = aResult('t-a', { output, state: { seq: 6, digest } });
  const turn = runningTurn('a');
  const puts: StoreKey[] = [];
  const context = {
    key: 'team/notes',
    memory: aMemory(),
    signal: new AbortController().signal,
    world: aWorld({ session: aSession({ status: { ...RUNNING_STATUS, incarnation: 2 } }), turns: [turn] }),
    effects: {
      ...writesOver({
        replace: async (_resource: unknown, object: StoredTurn) => ({ ...object, spec: { session: 'notes' } }),
      }),
      store: { put: async (key: StoreKey) => puts.push(key) },
      links: { get: () => undefined },
      leader: { identity: 'ctl_1', epoch: () => 1 },
      withoutWorker: (work: () => unknown) => work(),
      clock: { ...systemClock, now: () => NOW },
      log: silentLogger,
    },
  } as unknown as ReconcileContext;
  await commit(context, turn, { result, state });
  const written = context.memory.uncounted[0]?.status;
  return { written, puts };
}

test('a state is labelled with the incarnation whose pod ran the turn, not with the session’s present one', async () => {
  const { written } = await committed(10, 1);
  assert.deepEqual([written?.state?.incarnation, written?.state?.seq], [1, 6]);
});

test('stored data of a turn is found under the incarnation whose pod ran it', async () => {
  const { written, puts } = await committed(10_000, 'x'.repeat(20_000));
  assert.deepEqual(
    puts.map(({ kind, incarnation, seq }) => [kind, incarnation, seq]),
    [
      ['State', 1, 6],
      ['Output', 1, 7],
    ],
  );
  assert.equal(parseStoreKey(written?.state?.ref ?? '')?.incarnation, 1);
});
