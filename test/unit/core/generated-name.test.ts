import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { turnName, turnSuffix } from '../../../core/generated-name.ts';
import { systemRandom } from '../../../core/system.ts';

const at = (ms: number) => ({ clock: { now: () => ms }, random: systemRandom });
const DAY = 86_400_000;

describe('the name of a turn that nobody has named', () => {
  test('sorts after those that were made before it in its session', () => {
    const time = fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2200, 0) });
    const later = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 900 * DAY }));
    fc.assert(
      fc.property(time, later, (ms, more) => {
        const names = [turnName('notes', at(ms)), turnName('notes', at(ms + more))];
        // Kubernetes sorts by bytes.
        assert.ok(Buffer.compare(Buffer.from(names[0] as string), Buffer.from(names[1] as string)) < 0, names.join());
      }),
    );
  });

  test('sorts after the turn of spec.input, which has the name of its session', () => {
    assert.ok('notes' < turnName('notes', at(Date.UTC(2026, 0))));
  });

  test('differs where two are made in the same millisecond', () => {
    const made = Array.from({ length: 20 }, () => turnSuffix(at(Date.UTC(2026, 0))));
    assert.ok(new Set(made).size > 18, made.join());
  });

  test('is a name of Kubernetes of at most 63 characters, however long that of its session is', () => {
    for (const session of ['n', 'notes', 'x'.repeat(63), `${'x'.repeat(48)}-${'y'.repeat(14)}`]) {
      const name = turnName(session, at(Date.now()));
      assert.match(name, /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/);
      assert.ok(name.startsWith(`${session.slice(0, 49)}-`), name);
    }
  });
});
