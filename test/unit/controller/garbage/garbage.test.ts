import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { type TurnFacts, turnFacts } from '../../../../controller/garbage/facts.ts';
import { isGarbage } from '../../../../controller/garbage/stored.ts';
import { overHistory } from '../../../../controller/garbage/sweep-session.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import type { StoredEntry } from '../../../../core/store/store.ts';
import { NOW } from '../../../support/world.ts';

const UID = 'f0000000-0000-4000-8000-000000000001';
const MIN = 60_000;
const stateAt = (incarnation: number, seq: number) => ({
  digest: 'a'.repeat(64),
  keyId: 'k',
  bytes: 1,
  incarnation,
  seq,
  ref: `${UID}/${incarnation}/${seq}`,
});
const statusOf = (counted: number, state?: [number, number]): SessionStatus => ({
  ...(counted > 0 ? { lastTurn: { name: 't', index: counted, phase: 'Succeeded' as const } } : {}),
  ...(state ? { state: stateAt(...state) } : {}),
});
const turn = (index: number, change: Partial<TurnFacts> = {}): TurnFacts => ({
  name: `t-${index}`,
  uid: `u-${index}`,
  resourceVersion: '1',
  index,
  ended: true,
  endedAt: NOW - index * MIN,
  bytes: 100,
  incarnation: 1,
  givenAt: NOW - 10 * MIN,
  state: undefined,
  stateRef: undefined,
  refs: [],
  stored: 0,
  ...change,
});
const limits = (turns: number, bytes = 1e9, stored = 1e9) => ({ turns, bytes, stored });
const names = (turns: TurnFacts[]) => turns.map(({ index }) => index);

describe('history', () => {
  const five = [3, 1, 5, 2, 4].map((index) => turn(index));
  test('over the number of turns the oldest go first', () => {
    assert.deepEqual(names(overHistory(five, statusOf(5), limits(3))), [1, 2]);
  });
  test('over the bytes the oldest go first', () => {
    assert.deepEqual(names(overHistory(five, statusOf(5), limits(100, 250))), [1, 2, 3]);
  });
  test('over what may be stored the oldest go first, until the rest fits', () => {
    const turns = [30, 0, 50, 40, 60].map((stored, i) => turn(i + 1, { stored }));
    assert.deepEqual(names(overHistory(turns, statusOf(5), limits(100, 1e9, 110))), [1, 2, 3]);
    assert.deepEqual(names(overHistory(turns, statusOf(5), limits(100, 1e9, 1))), [1, 2, 3, 4]);
  });
  test('the last turn stays, whatever its size', () => {
    assert.deepEqual(names(overHistory(five, statusOf(5), limits(1, 1))), [1, 2, 3, 4]);
  });
  test('a turn that is not counted yet stays', () => {
    assert.deepEqual(names(overHistory(five, statusOf(1), limits(1))), [1]);
    assert.deepEqual(names(overHistory(five, {}, limits(1))), []);
  });
  test('a turn whose state the session does not have stays', () => {
    const turns = [turn(1), turn(2, { state: { incarnation: 1, seq: 9 } }), turn(3)];
    assert.deepEqual(names(overHistory(turns, statusOf(3, [1, 8]), limits(1))), [1]);
    assert.deepEqual(names(overHistory(turns, statusOf(3, [1, 9]), limits(1))), [1, 2]);
  });
  test('a turn that has not ended never goes, nor does it count in place of one that has', () => {
    const turns = [turn(1), turn(2, { ended: false }), turn(3), turn(4, { ended: false })];
    assert.deepEqual(names(overHistory(turns, statusOf(9), limits(2))), []);
  });
  test('of a session of one turn: that turn stays, and of what it has refused the oldest go first', () => {
    const refused = (minutes: number) => turn(0, { name: `${minutes}`, endedAt: NOW - minutes * MIN });
    const turns = [refused(2), refused(4), turn(1, { endedAt: NOW - 9 * MIN }), refused(1), refused(3)];
    const over = overHistory(turns, statusOf(1), limits(3));
    assert.deepEqual(
      over.map(({ name }) => name),
      ['4', '3'],
    );
  });
});

describe('stored objects', () => {
  const entry = (kind: StoredEntry['kind'], seq: number, change: Partial<StoredEntry> = {}): StoredEntry => ({
    namespace: 'team',
    sessionUID: UID,
    incarnation: 1,
    seq,
    kind,
    createdAt: NOW - 2 * 60 * MIN,
    ...change,
  });
  const key = (seq: number) => `${UID}/1/${seq}`;
  const withState = (index: number, seq: number, change: Partial<TurnFacts> = {}) =>
    turn(index, { state: { incarnation: 1, seq }, stateRef: key(seq), ...change });

  test('a state goes once the session has a later one, though an ended turn still names it', () => {
    const turns = [withState(1, 5), withState(2, 9)];
    assert.equal(isGarbage(entry('State', 5), statusOf(2, [1, 9]), turns), true);
    assert.equal(isGarbage(entry('State', 9), statusOf(2, [1, 9]), turns), false);
    assert.equal(isGarbage(entry('State', 5), statusOf(2, [2, 1]), turns), true);
  });
  test('a state later than the one committed stays: its commit may be in flight', () => {
    assert.equal(isGarbage(entry('State', 7), statusOf(1, [1, 5]), []), false);
    assert.equal(isGarbage(entry('State', 7, { incarnation: 2, seq: 1 }), statusOf(1, [1, 5]), []), false);
  });
  test('the state of a session that has none yet stays', () => {
    assert.equal(isGarbage(entry('State', 7), {}, []), false);
  });
  test('a state that an uncounted or a living turn names stays', () => {
    const status = statusOf(1, [1, 9]);
    assert.equal(isGarbage(entry('State', 5), status, [withState(2, 5)]), false);
    assert.equal(isGarbage(entry('State', 5), status, [withState(1, 5, { ended: false })]), false);
    assert.equal(isGarbage(entry('State', 5), status, [withState(1, 5)]), true);
  });
  test('an output, a log or artifacts stay as long as a turn names them, and go with it', () => {
    const named = turn(1, { refs: [key(3), key(2), key(4)] });
    for (const [kind, seq] of [
      ['Output', 3],
      ['Log', 2],
      ['Artifacts', 4],
    ] as const) {
      assert.equal(isGarbage(entry(kind, seq), statusOf(1), [named]), false);
      assert.equal(isGarbage(entry(kind, seq), statusOf(1), []), true);
    }
  });
  test('an output that a running turn of the incarnation may have brought stays', () => {
    const running = turn(2, { ended: false, givenAt: NOW - 150 * MIN });
    assert.equal(isGarbage(entry('Output', 3), statusOf(1), [running]), false);
    assert.equal(isGarbage(entry('Output', 3), statusOf(1), [{ ...running, givenAt: undefined }]), false);
    assert.equal(isGarbage(entry('Output', 3), statusOf(1), [{ ...running, incarnation: 2 }]), true);
    assert.equal(isGarbage(entry('Output', 3), statusOf(1), [{ ...running, givenAt: NOW - 60 * MIN }]), true);
  });
  test('an object without a kind is deleted only if it may be deleted as any kind', () => {
    const status = statusOf(1, [1, 9]);
    assert.equal(isGarbage(entry(undefined, 5), status, []), true);
    assert.equal(isGarbage(entry(undefined, 9), status, []), false);
    assert.equal(isGarbage(entry(undefined, 5), status, [turn(1, { refs: [key(5)] })]), false);
  });

  test.for(['AwaitingApproval', 'Running', 'Queued', 'Succeeded', 'Failed', 'Cancelled'] as const)(
    'all that a turn names stays while it is %s, also what an earlier incarnation stored',
    (phase) => {
      const [output, log, artifacts] = [20, 21, 22].map((seq) => key(seq));
      const object = {
        metadata: { name: 't', uid: 'u', resourceVersion: '5', creationTimestamp: '' },
        spec: { session: 's', input: 'x', cancel: false },
        status: {
          index: 3,
          phase,
          incarnation: 2,
          outputRef: output,
          outputBytes: 30,
          log: { ref: log, bytes: 1, truncated: false },
          artifacts: [{ name: 'f', bytes: 9, digest: 'd', ref: artifacts, offset: 0 }],
        },
      } as unknown as StoredTurn;
      const facts = turnFacts(object);
      assert.deepEqual([facts.refs, facts.stored], [[output, log, artifacts], 40]);
      const kept = [entry('Output', 20), entry('Log', 21), entry('Artifacts', 22)];
      const status = statusOf(5, [2, 9]);
      assert.deepEqual(
        kept.filter((stored) => isGarbage(stored, status, [facts])),
        [],
      );
    },
  );

  test('in no order of events is a blob garbage that a commit still needs', () => {
    // A turn runs, its output and state are stored, its commit is written, the session counts it; sweeps read in between.
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 0, max: 4 }),
        fc.integer({ min: 1, max: 6 }),
        (a, b, earlier) => {
          const [turnsRead, statusRead] = a <= b ? [a, b] : [b, a];
          const committed = turnsRead >= 2;
          const counted = statusRead >= 3;
          const facts = turn(2, {
            ended: committed,
            givenAt: NOW - 3 * 60 * MIN,
            ...(committed ? { refs: [key(20), key(18)], stateRef: key(19), state: { incarnation: 1, seq: 19 } } : {}),
          });
          const status = counted ? statusOf(2, [1, 19]) : statusOf(1, [1, earlier]);
          const kinds = [
            ['Log', 18],
            ['State', 19],
            ['Output', 20],
          ] as const;
          for (const [kind, seq] of kinds) assert.equal(isGarbage(entry(kind, seq), status, [facts]), false, kind);
        },
      ),
    );
  });
});

describe('facts of a turn', () => {
  test('name everything that it has stored', () => {
    const object = {
      metadata: { name: 't', uid: 'u', resourceVersion: '5', creationTimestamp: '' },
      spec: { session: 's', input: 'x', cancel: false },
      status: {
        index: 3,
        phase: 'Succeeded',
        incarnation: 2,
        outputRef: 'o',
        outputBytes: 30,
        log: { ref: 'l', bytes: 1, truncated: false },
        state: stateAt(2, 4),
      },
    } as unknown as StoredTurn;
    const facts = turnFacts(object);
    assert.deepEqual([facts.refs, facts.stateRef, facts.ended], [['o', 'l'], `${UID}/2/4`, true]);
    assert.equal(facts.stored, 31);
    const inline = {
      ...object,
      status: { output: 'x', outputBytes: 3, log: { inline: 'y', bytes: 1, truncated: false } },
    };
    assert.equal(turnFacts(inline as StoredTurn).stored, 0);
  });
});
