import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { fitsShare, type Holding, isShort, shareOf, type Wanted } from '../../../core/store/share.ts';

const rule = { ceilingBytes: 256, factor: 1 };
const none: Holding = { states: 0, history: 0 };

/** Namespaces that store under the rule. */
class Tenants {
  readonly held: Holding[];
  readonly #rule: typeof rule;

  constructor(count: number, of = rule) {
    this.held = Array.from({ length: count }, () => ({ ...none }));
    this.#rule = of;
  }

  get free(): number {
    return this.#rule.ceilingBytes - this.held.reduce((sum, { states, history }) => sum + states + history, 0);
  }

  othersOf(at: number): number {
    const { states, history } = this.held[at] as Holding;
    return this.#rule.ceilingBytes - this.free - states - history;
  }

  fits(at: number, wanted: Wanted): boolean {
    return fitsShare(this.#rule, this.held[at] as Holding, this.othersOf(at), wanted);
  }

  store(at: number, wanted: Wanted): boolean {
    if (!this.fits(at, wanted)) return false;
    (this.held[at] as Holding)[wanted.as === 'State' ? 'states' : 'history'] += wanted.bytes;
    return true;
  }
}

describe('the share of a namespace', () => {
  test('one alone gets half of the store, two a third each, and n that grow together the (n + 1)th part each', () => {
    for (const count of [1, 2, 3, 9]) {
      const ceilingBytes = 1000 * (count + 1);
      const tenants = new Tenants(count, { ceilingBytes, factor: 1 });
      for (let grown = true; grown; ) {
        grown = false;
        for (const at of tenants.held.keys()) if (tenants.store(at, { as: 'State', bytes: 1 })) grown = true;
      }
      assert.deepEqual(
        tenants.held.map(({ states }) => states),
        Array(count).fill(1000),
      );
    }
  });

  test('a larger factor leaves less free', () => {
    assert.equal(shareOf({ ceilingBytes: 300, factor: 2 }, 0), 200);
    assert.equal(shareOf({ ceilingBytes: 300, factor: 2 }, 150), 100);
    assert.equal(shareOf({ ceilingBytes: 300, factor: 2 }, 400), 0, 'the ceiling was lowered');
  });

  test('outputs, logs and artifacts use three quarters of it, states all of it', () => {
    const full = { states: 0, history: 96 };
    assert.ok(fitsShare(rule, none, 0, { as: 'History', bytes: 96 }));
    assert.ok(!fitsShare(rule, none, 0, { as: 'History', bytes: 97 }));
    assert.ok(!fitsShare(rule, full, 0, { as: 'History', bytes: 1 }));
    assert.ok(fitsShare(rule, full, 0, { as: 'State', bytes: 32 }));
    assert.ok(!fitsShare(rule, full, 0, { as: 'State', bytes: 33 }));
    assert.ok(fitsShare(rule, none, 0, { as: 'State', bytes: 128 }));
    assert.ok(!fitsShare(rule, { states: 100, history: 0 }, 0, { as: 'History', bytes: 29 }), 'the share holds both');
  });

  test('a state that replaces one as large is stored although others have taken what the share was', () => {
    const held = { states: 128, history: 0 };
    for (const others of [0, 40, 80]) {
      assert.ok(fitsShare(rule, held, others, { as: 'State', bytes: 10, replaced: 10 }), `${others} of others`);
      assert.ok(!fitsShare(rule, held, others, { as: 'State', bytes: 10 }), 'another session grows');
    }
    assert.ok(!fitsShare(rule, held, 0, { as: 'State', bytes: 11, replaced: 10 }), 'it grows');
    assert.ok(fitsShare(rule, { states: 127, history: 0 }, 0, { as: 'State', bytes: 11, replaced: 10 }));
    assert.ok(!fitsShare(rule, held, 128, { as: 'State', bytes: 1, replaced: 1 }), 'there is no room for both');
  });

  test('is never more than the quota of the namespace, and less where the others leave less', () => {
    const limited = { ...rule, quotaBytes: 40 };
    assert.equal(shareOf(limited, 0), 40);
    assert.equal(shareOf(limited, 200), 28);
    assert.ok(fitsShare(limited, none, 0, { as: 'State', bytes: 40 }));
    assert.ok(!fitsShare(limited, none, 0, { as: 'State', bytes: 41 }));
    assert.ok(fitsShare(limited, none, 0, { as: 'History', bytes: 30 }));
    assert.ok(!fitsShare(limited, none, 0, { as: 'History', bytes: 31 }));
  });

  test('with a quota that is used up takes a state in place of one as large, and no larger one', () => {
    const limited = { ...rule, quotaBytes: 40 };
    const full = { states: 40, history: 0 };
    assert.ok(fitsShare(limited, full, 0, { as: 'State', bytes: 10, replaced: 10 }));
    assert.ok(!fitsShare(limited, full, 0, { as: 'State', bytes: 11, replaced: 10 }));
    assert.ok(!isShort(limited, full, 0, { state: 10, history: 0 }));
    assert.ok(isShort(limited, full, 0, { state: 10, history: 1 }), 'no room for an output');
  });

  const wanted = fc.record({
    at: fc.nat({ max: 5 }),
    as: fc.constantFrom<Wanted['as']>('State', 'History'),
    bytes: fc.integer({ min: 1, max: 5000 }),
    /** Part that the namespace removes before, in percent. */
    removes: fc.constantFrom(0, 0, 0, 30, 100),
  });
  const world = fc.record({
    others: fc.integer({ min: 0, max: 5 }),
    factor: fc.constantFrom(0.5, 1, 2),
    steps: fc.array(wanted, { maxLength: 200 }),
  });

  test('whatever up to k others store, a namespace that holds nothing gets what they have left to it', () => {
    fc.assert(
      fc.property(world, ({ others: count, factor, steps }) => {
        const of = { ceilingBytes: 10_000, factor };
        const tenants = new Tenants(count + 1, of);
        for (const { at, removes, ...wants } of steps) {
          if (at >= count) continue;
          const held = tenants.held[at] as Holding;
          held.states -= Math.floor((held.states * removes) / 100);
          held.history -= Math.floor((held.history * removes) / 100);
          tenants.store(at, wants);
          // No order of writes and removals of the others leaves less than this.
          const least = of.ceilingBytes / (1 + factor) ** count;
          assert.ok(tenants.free >= least - 1, `${tenants.free} are free`);
          const bytes = Math.floor(least / (1 + 1 / factor)) - 1;
          assert.ok(tenants.fits(count, { as: 'State', bytes }), `${bytes} bytes`);
        }
      }),
    );
  });
});

describe('room for what a session stored last time', () => {
  const last = { state: 20, history: 10 };

  test('is short where the namespace holds too much besides', () => {
    assert.ok(!isShort(rule, { states: 20, history: 10 }, 0, last));
    assert.ok(isShort(rule, { states: 20, history: 90 }, 0, last), 'its history');
    assert.ok(isShort(rule, { states: 190, history: 0 }, 0, { state: 20, history: 0 }), 'no room for two states');
    assert.ok(!isShort(rule, { states: 180, history: 0 }, 0, { state: 20, history: 0 }), 'the state is replaced');
    assert.ok(!isShort(rule, { states: 300, history: 0 }, 0, { state: 0, history: 0 }), 'nothing is to be stored');
  });

  test('is not short where the session’s own content would not fit alone', () => {
    assert.ok(!isShort(rule, { states: 120, history: 0 }, 0, { state: 120, history: 0 }));
    assert.ok(!isShort(rule, { states: 0, history: 90 }, 0, { state: 0, history: 60 }));
  });
});
