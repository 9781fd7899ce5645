import assert from 'node:assert/strict';
import { test } from 'vitest';
import { describeTurn } from '../../../../cli/print/describe.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';

test('a cancellation is told as asked for until the turn has ended', () => {
  const described = (phase: 'Running' | 'Cancelled') => {
    const metadata = { name: 'a-1', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' };
    const turn = { metadata, spec: { session: 'a', cancel: true }, status: { phase } };
    return describeTurn(turn as StoredTurn, { output: undefined, log: '' }, Date.parse('2026-01-01T00:00:01Z'));
  };
  assert.match(described('Running'), /^ +phase +Running \(cancellation asked for\)$/m);
  assert.match(described('Cancelled'), /^ +phase +Cancelled$/m);
});

test('usage of a turn is shown with its duration, and as usage so far while the turn runs', () => {
  const described = (phase: 'Running' | 'Succeeded') => {
    const usage = { wall: 40, cpuSeconds: 1.5, peakMemoryBytes: 2 ** 20, processes: 2 };
    const status = { phase, startedAt: '2026-01-01T00:00:00Z', usage };
    const ends = phase === 'Running' ? {} : { finishedAt: '2026-01-01T00:00:40Z' };
    const metadata = {
      name: 'a',
      namespace: 'team',
      uid: 't',
      resourceVersion: '1',
      creationTimestamp: status.startedAt,
    };
    const turn = { metadata, spec: { session: 's', cancel: false }, status: { ...status, ...ends } };
    return describeTurn(turn as StoredTurn, { output: undefined, log: '' }, Date.parse('2026-01-01T00:01:05Z'));
  };
  assert.match(
    described('Running'),
    /^ +took +1m5s\n +used +1.5 s of CPU, at most 1.0 MiB and 2 processes, in 40 s so far$/m,
  );
  assert.match(
    described('Succeeded'),
    /^ +took +40s\n +used +1.5 s of CPU, at most 1.0 MiB and 2 processes, in 40 s$/m,
  );
});

test('further lines of a value are under its first, and a long output or log is cut with the command for all of it', () => {
  const metadata = { name: 'a-1', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' };
  const error = { code: 'AgentFailed', message: 'bad\nphase  Succeeded\n' };
  const turn = { metadata, spec: { session: 'a' }, status: { phase: 'Failed', error } } as StoredTurn;
  const text = Array.from({ length: 5000 }, (_, i) => `line ${i + 1}\n`).join('');
  const told = describeTurn(turn, { output: text, log: text }, Date.parse('2026-01-01T00:00:01Z'));
  assert.match(told, /^ {2}error {7}AgentFailed: bad\n {14}phase {2}Succeeded\n {2}age /m);
  assert.match(
    told,
    /^OUTPUT\n {2}line 1\n( {2}line \d+\n){18} {2}line 20\n {2}\[4980 lines more; all: berth get turn a-1 -o yaml\]\n\n/m,
  );
  const [, log] = told.split('LOG\n');
  assert.match(log ?? '', /^ {2}\[4980 lines before these; all: berth logs a --turn a-1\]\n {2}line 4981\n/);
  assert.match(log ?? '', /\n {2}line 5000\n$/);
});
