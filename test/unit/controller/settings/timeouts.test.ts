import assert from 'node:assert/strict';
import { test } from 'vitest';
import { retention } from '../../../../controller/settings/retention.ts';
import { type TimeoutName, timeoutMs } from '../../../../controller/settings/timeouts.ts';
import { aClass, aSession } from '../../../support/world.ts';

test('timeouts that neither session nor class sets: start 10m, turn 30m, idle 2h, approval 24h, persist 5m', () => {
  const { spec } = aSession();
  const minutes = (name: TimeoutName) => timeoutMs(name as 'start', spec, undefined) / 60_000;
  const names = ['start', 'turn', 'stall', 'idle', 'approval', 'persist', 'lifetime'] as const;
  const none = Number.POSITIVE_INFINITY;
  assert.deepEqual(names.map(minutes), [10, 30, none, 120, 1440, 5, none]);
});

test('times to live and history that neither session nor class sets: 24h or 168h, 720h, 100 turns, 1Mi, 16Mi', () => {
  const hours = (ms: number) => ms / 3_600_000;
  const of = (turns: 'One' | 'Many') => retention(aSession({ spec: { turns } }), aClass());
  assert.deepEqual(
    [hours(of('One').finishedMs), hours(of('Many').finishedMs), hours(of('Many').suspendedMs)],
    [24, 168, 720],
  );
  assert.deepEqual(of('Many').history, { turns: 100, bytes: 1024 ** 2, stored: 16 * 1024 ** 2 });
});

test('a session’s own timeout comes before its class’s, and neither exceeds the class’s ceiling', () => {
  const ofClass = aClass({ timeouts: { idle: '20m' }, maxTimeouts: { idle: '25m' } });
  const idle = (given?: string) => aSession({ spec: given === undefined ? {} : { timeouts: { idle: given } } }).spec;
  assert.equal(timeoutMs('idle', idle(), ofClass), 20 * 60_000);
  assert.equal(timeoutMs('idle', idle('10m'), ofClass), 10 * 60_000);
  assert.equal(timeoutMs('idle', idle('40m'), ofClass), 25 * 60_000);
  assert.equal(timeoutMs('idle', idle('40m'), undefined), 40 * 60_000);
});
