import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Inbox } from '../../../../controller/link/inbox.ts';

type Kept = Parameters<Inbox['add']>[0];

const DIGEST = 'a'.repeat(64);
const binary = Buffer.alloc(0);
const state = (seq: number, turn?: string) =>
  ({ seq, kind: 'state', binary, message: { ...(turn && { turn }), digest: DIGEST, keyId: 'k', bytes: 1 } }) as Kept;
const log = (seq: number) => ({ seq, kind: 'log', binary, message: { turn: 't', attempt: 1 } }) as Kept;
const artifacts = (seq: number) => ({ seq, kind: 'artifacts', binary, message: { turn: 't', attempt: 1 } }) as Kept;
type Names = { state?: number; log?: number; artifacts?: number };
const end = (kind: 'result' | 'approval', seq: number, { state, log, artifacts }: Names = {}) =>
  ({
    ...{ seq, kind, binary },
    message: {
      ...{ turn: 't', attempt: 1, state: state === undefined ? 'Unchanged' : { seq: state, digest: DIGEST } },
      ...(log === undefined ? {} : { logSeq: log }),
      ...(artifacts === undefined ? {} : { artifactsSeq: artifacts }),
    },
  }) as unknown as Kept;

/** An inbox with these frames, each of 100 bytes. */
function inboxOf(...frames: Kept[]): Inbox {
  const inbox = new Inbox();
  for (const frame of frames) inbox.add(frame, 100);
  return inbox;
}
const seqs = (inbox: Inbox) => {
  const { delivery, asking } = inbox.next();
  const { state, log } = delivery ?? asking ?? {};
  return [delivery?.result.seq ?? asking?.request.seq, state?.seq, log?.seq, delivery?.artifacts?.seq];
};

test('an inbox keeps a request and the result after it, each with what it names', () => {
  const request = [log(1), state(2, 't'), end('approval', 3, { state: 2, log: 1 })];
  const result = [log(4), state(5, 't'), artifacts(6), end('result', 7, { state: 5, log: 4, artifacts: 6 })];
  const inbox = inboxOf(...request, ...result);
  assert.deepEqual([seqs(inbox), inbox.bytes, inbox.first], [[3, 2, 1, undefined], 700, 1]);
  inbox.forget(3);
  assert.deepEqual([seqs(inbox), inbox.bytes, inbox.first], [[7, 5, 4, 6], 400, 4]);
  inbox.forget(7);
  assert.deepEqual([seqs(inbox)[0], inbox.bytes, inbox.first], [undefined, 0, undefined]);
});

test('an inbox keeps one frame of each kind that no end has named', () => {
  const inbox = inboxOf(...Array.from({ length: 300 }, (_, i) => [state, log, artifacts][i % 3]!(i + 1, 't')));
  assert.equal(inbox.bytes, 300);
  inbox.add(end('result', 301, { state: 298 }), 100);
  assert.deepEqual([seqs(inbox), inbox.bytes], [[301, 298, undefined, undefined], 200]);
});

test('an inbox keeps two ends at most, the earliest and the last', () => {
  const inbox = inboxOf(...Array.from({ length: 50 }, (_, i) => end('result', i + 1)));
  assert.deepEqual([seqs(inbox)[0], inbox.bytes], [1, 200]);
  inbox.keepLast();
  assert.deepEqual([seqs(inbox)[0], inbox.bytes], [50, 100]);
});

test('an inbox keeps a snapshot beside the state and the result of a turn', () => {
  const inbox = inboxOf(state(1), state(2, 't'), end('result', 3, { state: 2 }));
  assert.deepEqual([inbox.bytes, inbox.first], [300, 1]);
});
