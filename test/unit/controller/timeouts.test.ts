import assert from 'node:assert/strict';
import { test } from 'vitest';
import { DEFAULT_TIMEOUTS, timeoutMs } from '../../../controller/settings/timeouts.ts';
import { aClass, aSession } from '../../support/world.ts';

test('timeouts that neither session nor class sets: start 10m, turn 30m, idle 2h, approval 24h, persist 5m', () => {
  const minutes = Object.entries(DEFAULT_TIMEOUTS).map(([name, ms]) => [name, ms / 60_000]);
  assert.deepEqual(Object.fromEntries(minutes), {
    start: 10,
    turn: 30,
    stall: Number.POSITIVE_INFINITY,
    idle: 120,
    approval: 1440,
    persist: 5,
    lifetime: Number.POSITIVE_INFINITY,
  });
});

test('a session’s own timeout comes before its class’s, and neither exceeds the class’s ceiling', () => {
  const ofClass = aClass({ timeouts: { idle: '20m' }, maxTimeouts: { idle: '25m' } });
  const idle = (given?: string) => aSession({ spec: given === undefined ? {} : { timeouts: { idle: given } } }).spec;
  assert.equal(timeoutMs('idle', idle(), ofClass), 20 * 60_000);
  assert.equal(timeoutMs('idle', idle('10m'), ofClass), 10 * 60_000);
  assert.equal(timeoutMs('idle', idle('40m'), ofClass), 25 * 60_000);
  assert.equal(timeoutMs('idle', idle('40m'), undefined), 40 * 60_000);
});
