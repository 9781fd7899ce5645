import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { writeAtVersion } from '../../../../controller/act/commit.ts';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { outcomeOf, type StoredDelivery } from '../../../../controller/status/outcome.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { aResult, POD_UID, runningTurn } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

describe('the end of a turn', () => {
  const end = (stored: Partial<StoredDelivery>, message: Parameters<typeof aResult>[1] = {}) =>
    outcomeOf({ result: aResult('t-a', message) }, { problems: [], ...stored });

  test('has what its result says and what was stored of it, and no field for what there is not', () => {
    const stored = { output: { answer: 42 }, outputBytes: 13, log: { inline: 'x', bytes: 1, truncated: false } };
    const { phase, fields } = end(stored, { exitCode: 0, metadata: { cost: 1 } });
    const { output, outputBytes, log, exitCode, metadata } = fields ?? {};
    assert.deepEqual({ output, outputBytes, log }, stored);
    assert.deepEqual([phase, exitCode, metadata], ['Succeeded', 0, { cost: 1 }]);
    for (const field of ['outputRef', 'state', 'turnCount', 'redactions', 'artifacts'])
      assert.ok(!Object.hasOwn(fields ?? {}, field), field);
  });

  test('has an output that is null or false', () => {
    assert.equal(end({ output: null }).fields?.output, null);
    assert.equal(end({ output: false }).fields?.output, false);
  });

  test('is Failed where something of a success could not be stored, and says what', () => {
    const { phase, reason, message, fields } = end({
      outputRef: 'r',
      problems: [{ reason: 'StateNotStored', message: 'no room' }],
    });
    assert.deepEqual([phase, reason, message, fields?.outputRef], ['Failed', 'StateNotStored', 'no room', 'r']);
  });
});

describe('a result is written at the version that was decided upon', () => {
  const CONFLICT = new ApiError({ code: 409, reason: 'Conflict', message: 'changed' });
  const turn = runningTurn('a', { status: { attempt: 1 } });
  const status: TurnStatus = { ...turn.status, phase: 'Succeeded' };
  const live = (change: TurnStatus, uid = turn.metadata.uid) =>
    ({
      metadata: { ...turn.metadata, uid, resourceVersion: '200' },
      status: { ...turn.status, ...change },
    }) as StoredTurn;

  /** Writes with an API server that refuses all writes but those at version `takes`, and that has `present`. */
  async function write(takes: string, present: StoredTurn, refusal: Error = CONFLICT) {
    const versions: string[] = [];
    let reads = 0;
    const api = {
      replace: async (_kind: object, object: StoredTurn) => {
        versions.push(object.metadata.resourceVersion);
        if (object.metadata.resourceVersion !== takes) throw refusal;
        return { ...object, spec: {} };
      },
      get: async () => {
        reads++;
        return present;
      },
    };
    const seen: StoredTurn[] = [];
    const effects = { ...writesOver(api, (one: StoredTurn) => seen.push(one)), log: silentLogger, clock: systemClock };
    const context = { effects, key: 'team/notes', signal: new AbortController().signal } as unknown as ReconcileContext;
    const outcome = await writeAtVersion(context, turn, status).catch((error: Error) => error);
    return { outcome, versions, reads, seen };
  }
  const { resourceVersion } = turn.metadata;

  test('and nothing is read where that succeeds', async () => {
    const { outcome, versions, reads } = await write(resourceVersion, live({}));
    assert.deepEqual([(outcome as StoredTurn).status?.phase, versions, reads], ['Succeeded', [resourceVersion], 0]);
  });

  test('and at the present one where the turn was only cancelled meanwhile', async () => {
    const { outcome, versions } = await write('200', live({}));
    assert.deepEqual([(outcome as StoredTurn).status?.phase, versions], ['Succeeded', [resourceVersion, '200']]);
  });

  test('and not at all where it has ended, is another turn, or runs elsewhere', async () => {
    const ended = live({ phase: 'Failed' });
    assert.equal((await write('200', ended)).outcome, ended);
    const another = live({}, 'another');
    assert.equal((await write('200', another)).outcome, another);
    assert.equal((await write('200', live({ podUID: 'other' }))).outcome, CONFLICT);
    assert.equal((await write('200', live({ attempt: 2, podUID: POD_UID }))).outcome, CONFLICT);
  });

  test('and not where a request or a state was committed since: it is decided again, with the turn as it is', async () => {
    const approval = { id: 'r', prompt: '?', since: '', process: 'Alive', incarnation: 1, seq: 4, ranMs: 5 } as const;
    const state = { digest: 'S1', keyId: 'k', bytes: 5, incarnation: 1, seq: 3 };
    for (const change of [{ approval }, { state }, { podUID: 'other' }]) {
      const present = live(change);
      const { outcome, versions, seen } = await write('200', present);
      assert.deepEqual([outcome, versions, seen], [CONFLICT, [resourceVersion], [present]]);
    }
  });

  test('and another failure is no conflict: nothing is read for it', async () => {
    const down = new ApiError({ code: 503, reason: 'ServiceUnavailable', message: 'down' });
    const { outcome, reads } = await write('200', live({}), down);
    assert.deepEqual([outcome, reads], [down, 0]);
  });
});
