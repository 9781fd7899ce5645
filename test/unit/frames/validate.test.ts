import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { validateFrame } from '../../../core/frames/validate.ts';
import { parseFrameHeader } from '../../../core/frames/wire.ts';
import { MAX_ARTIFACT_BYTES, MAX_ARTIFACT_NAME_BYTES } from '../../../core/resources/limits.ts';
import { sent } from './support.ts';

const at = '2026-01-02T03:04:05.678Z';
const result = {
  turn: 't',
  attempt: 1,
  outcome: 'Succeeded',
  startedAt: at,
  finishedAt: at,
  state: { seq: 4, digest: 'a'.repeat(64) },
  leftRunning: [{ pid: 7, command: 'sleep' }],
};
const file = { name: 'a', bytes: 1, digest: 'a'.repeat(64) };
const artifacts = { kind: 'artifacts', turn: 't', attempt: 1, files: [file] };
const request = {
  turn: 't',
  attempt: 1,
  id: '0123456789abcdef',
  prompt: 'May I?',
  process: 'Ended',
  at,
  startedAt: at,
  ranMs: 1,
  state: 'Unchanged',
};

describe('messages from a pod', () => {
  test('every message that a runner sends passes unchanged', () => {
    fc.assert(
      fc.property(sent, ({ kind, message }) => {
        assert.deepEqual(validateFrame(kind, message as Record<string, unknown>), { message });
      }),
    );
  });

  test('metadata keeps every key, also one that JavaScript reads as the prototype', () => {
    const metadata = JSON.parse('{"__proto__":{"a":1},"b":2}');
    const checked = validateFrame('result', { ...result, metadata });
    assert.ok('message' in checked);
    assert.equal(JSON.stringify((checked.message as { metadata?: object }).metadata), JSON.stringify(metadata));
    assert.match(JSON.stringify(validateFrame('result', { ...result, metadata: [] })), /metadata: is not an object/);
  });

  test('a file that was left out may have a name as long as any', () => {
    const named = (bytes: number) => {
      const leftOut = { count: 1, entries: [{ name: 'é'.repeat(bytes / 2), reason: 'Symlink' }] };
      return validateFrame('artifacts', { turn: 't', attempt: 1, files: [file], leftOut });
    };
    assert.ok('message' in named(MAX_ARTIFACT_NAME_BYTES));
    assert.ok('problem' in named(MAX_ARTIFACT_NAME_BYTES + 2));
  });

  const wrong: [string, Record<string, unknown>, RegExp][] = [
    ['a kind that does not exist', { kind: 'gossip' }, /no message "gossip"/],
    ['a missing field', { ...result, turn: undefined }, /^turn: /],
    ['a wrong enum', { ...result, outcome: 'Fine' }, /^outcome: /],
    ['a time that is none', { ...result, startedAt: 'yesterday' }, /^startedAt: /],
    ['a digest that is none', { ...result, state: { seq: 4, digest: 'abc' } }, /^state/],
    ['a sequence number that is none', { ...result, logSeq: 0 }, /^logSeq: /],
    ['an exit code beyond 32 bits', { ...result, exitCode: 2 ** 40 }, /^exitCode: /],
    ['an endless error', { ...result, error: { code: 'X', message: 'x'.repeat(70_000) } }, /^error.message: /],
    ['an empty question', { kind: 'approval', ...request, prompt: '' }, /^prompt/],
    ['a question that is too long', { kind: 'approval', ...request, prompt: 'x'.repeat(4097) }, /^prompt: is too long/],
    [
      'a payload that is too large',
      { kind: 'approval', ...request, payload: 'x'.repeat(16_384) },
      /^payload: is larger/,
    ],
    ['a request with a forged id', { kind: 'approval', ...request, id: '../x' }, /^id/],
    ['an event that is too large', { kind: 'event', turn: 't', attempt: 1, at, event: 'x'.repeat(40_000) }, /^event/],
    [
      'an artifact whose name leads out',
      { ...artifacts, files: [{ ...file, name: '../x' }] },
      /^files\.0\.name: is no path/,
    ],
    [
      'an artifact with an absolute name',
      { ...artifacts, files: [{ ...file, name: '/x' }] },
      /^files\.0\.name: is no path/,
    ],
    [
      'an artifact with NUL in its name',
      { ...artifacts, files: [{ ...file, name: 'a\0' }] },
      /^files\.0\.name: is no path/,
    ],
    ['two artifacts with one name', { ...artifacts, files: [file, file] }, /^files: has a name twice/],
    [
      'artifacts that are too large together',
      { ...artifacts, files: [file, { ...file, name: 'b', bytes: MAX_ARTIFACT_BYTES }] },
      /^files: has more than/,
    ],
    [
      'artifacts that are too many',
      { ...artifacts, files: Array.from({ length: 257 }, (_, i) => ({ ...file, name: `${i}` })) },
      /^files: /,
    ],
    ['a dropped range that runs backwards', { kind: 'dropped', from: 5, to: 4, counts: {} }, /from is above to/],
    ['counts of a kind that does not exist', { kind: 'dropped', from: 4, to: 5, counts: { x: 1 } }, /^counts/],
  ];
  for (const [name, { kind = 'result', ...message }, problem] of wrong) {
    test(`${name} is refused, and the field named`, () => {
      const checked = validateFrame(kind as string, message);
      assert.ok('problem' in checked);
      assert.match(checked.problem, problem);
    });
  }
});

describe('headers', () => {
  const good = { v: 1, sid: 's', inc: 3, boot: 'b', seq: 1, kind: 'log', part: 1, parts: 2 };
  test('a whole header is understood', () => {
    const { session, incarnation } = parseFrameHeader(JSON.stringify(good)) ?? {};
    assert.deepEqual({ session, incarnation }, { session: 's', incarnation: 3 });
  });
  for (const wrong of [
    { v: 2 },
    { sid: 1 },
    { inc: -1 },
    { boot: null },
    { seq: 1.5 },
    { seq: 2 ** 60 },
    { kind: 7 },
    { part: 0 },
    { part: 3 },
    { parts: '2' },
  ]) {
    test(`a header with ${JSON.stringify(wrong)} is none`, () => {
      assert.equal(parseFrameHeader(JSON.stringify({ ...good, ...wrong })), undefined);
    });
  }
});
