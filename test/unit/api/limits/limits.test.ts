import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apiConfig } from '../../../../api/config.ts';
import { Limits } from '../../../../api/limits/limits.ts';
import { Rate } from '../../../../api/limits/rate.ts';
import { Slots } from '../../../../api/limits/slots.ts';
import { ApiMetrics } from '../../../../api/metrics.ts';
import { Problem } from '../../../../api/problems/problems.ts';
import { parseConfig } from '../../../../core/program/config.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('slots', () => {
  /** Takes a slot for each of the callers, in this order; shows what each got. */
  const taken = (slots: Slots, callers: string) =>
    [...callers].map((caller) => {
      const result = slots.take(caller);
      return typeof result === 'function' ? 'slot' : result;
    });

  test('a caller gets its share, and all callers together no more than there are', () => {
    const slots = new Slots({ max: 8, sharePercent: 25 });
    assert.deepEqual(taken(slots, 'aaa'), ['slot', 'slot', 'caller']);
    assert.deepEqual(taken(slots, 'bbbccd'), ['slot', 'slot', 'caller', 'slot', 'slot', 'slot']);
    assert.deepEqual(taken(slots, 'def'), ['slot', 'all', 'all']);
    assert.equal(slots.used, 8);
  });

  test('every caller may have one, however small its share is', () => {
    assert.deepEqual(taken(new Slots({ max: 2, sharePercent: 1 }), 'aab'), ['slot', 'caller', 'slot']);
  });

  test('a slot that is freed, even twice, is one for its caller and for all', () => {
    const slots = new Slots({ max: 2, sharePercent: 50 });
    const free = slots.take('a');
    assert.ok(typeof free === 'function');
    assert.deepEqual(taken(slots, 'ab'), ['caller', 'slot']);
    free();
    free();
    assert.equal(slots.used, 1);
    assert.deepEqual(taken(slots, 'aa'), ['slot', 'all']);
  });
});

describe('the rate of a caller', () => {
  const takes = (rate: Rate, times: number, caller = 'a') =>
    Array.from({ length: times }, () => rate.take(caller)).filter((waitMs) => waitMs === 0).length;

  test('is a burst at once, then as many in a second as it says, without those refused in between', async () => {
    const clock = new VirtualClock();
    const rate = new Rate(clock, { perSecond: 10, burst: 5 });
    assert.equal(takes(rate, 20), 5);
    assert.equal(rate.take('a'), 100);
    await clock.advance(99);
    assert.equal(takes(rate, 1), 0);
    await clock.advance(1);
    assert.equal(takes(rate, 2), 1);
    await clock.advance(60_000);
    assert.equal(takes(rate, 20), 5);
  });

  test('leaves other callers theirs', () => {
    const rate = new Rate(new VirtualClock(), { perSecond: 1, burst: 2 });
    assert.equal(takes(rate, 9, 'a'), 2);
    assert.equal(takes(rate, 9, 'b'), 2);
  });

  test('is forgotten for a caller who may send a whole burst again, and for nobody else', async () => {
    const clock = new VirtualClock();
    const rate = new Rate(clock, { perSecond: 1, burst: 2 });
    for (const caller of ['a', 'b', 'c']) takes(rate, 2, caller);
    await clock.advance(1_000);
    takes(rate, 1, 'a');
    await clock.advance(1_000);
    takes(rate, 1, 'd');
    assert.equal(rate.size, 2);
    assert.equal(takes(rate, 2, 'a'), 1);
  });
});

describe('limits', () => {
  const make = (env: Record<string, string>) => {
    const clock = new VirtualClock();
    const metrics = new ApiMetrics();
    return { clock, metrics, limits: new Limits({ clock, metrics, config: parseConfig(apiConfig, env) }) };
  };
  const told = (error: unknown) => {
    assert.ok(error instanceof Problem);
    return [error.status, error.code, error.retryAfterSeconds];
  };
  const refusal = (fn: () => unknown) => {
    try {
      fn();
    } catch (error) {
      return told(error);
    }
    return undefined;
  };

  test('of one caller are answered 429 and of all together 503, each with the time to try again, and counted', async () => {
    const { limits, metrics } = make({ BERTH_API_MAX_WAITS: '4', BERTH_API_CALLER_SHARE: '50' });
    const ends = [limits.hold('waits', 'a'), limits.hold('waits', 'a')];
    assert.deepEqual(
      refusal(() => limits.hold('waits', 'a')),
      [429, 'CallerLimit', 1],
    );
    assert.equal(
      refusal(() => limits.hold('streams', 'a')),
      undefined,
    );
    ends.push(limits.hold('waits', 'b'), limits.hold('waits', 'b'));
    assert.deepEqual(
      refusal(() => limits.hold('waits', 'c')),
      [503, 'Overloaded', 1],
    );
    const text = await metrics.registry.metrics();
    assert.match(text, /^berth_http_refused_total\{limit="waits",of="caller"\} 1$/m);
    assert.match(text, /^berth_http_refused_total\{limit="waits",of="all"\} 1$/m);
    assert.match(text, /^berth_http_open_requests\{kind="waits"\} 4$/m);
    for (const end of ends) end();
    assert.match(await metrics.registry.metrics(), /^berth_http_open_requests\{kind="waits"\} 0$/m);
  });

  test('a request beyond a limit is refused after a second, so that a client who tries again and again is slow', async () => {
    const { clock, limits, metrics } = make({
      ...{ BERTH_API_CALLER_RATE: '1', BERTH_API_CALLER_BURST: '3' },
      ...{ BERTH_API_MAX_REQUESTS: '4', BERTH_API_CALLER_SHARE: '50' },
    });
    const ends = [await limits.request('a'), await limits.request('a')];
    const outcomes: unknown[] = [];
    const ask = () => void limits.request('a').catch((error) => outcomes.push(told(error)));
    ask();
    ask();
    await clock.advance(999);
    assert.deepEqual(outcomes, []);
    await clock.advance(1);
    assert.deepEqual(outcomes, [
      [429, 'CallerLimit', 1],
      [429, 'TooManyRequests', 1],
    ]);
    for (const end of ends) end();
    assert.match(await metrics.registry.metrics(), /^berth_http_open_requests\{kind="requests"\} 0$/m);
    (await limits.request('a'))();
  });

  test('one token that is not accepted is refused at once at first, and then after a second; others are not', async () => {
    const { clock, limits } = make({});
    for (let i = 0; i < 50; i++) await limits.unauthenticated('a');
    let isOver = false;
    void limits.unauthenticated('a').then(() => {
      isOver = true;
    });
    await limits.unauthenticated('b');
    await clock.advance(999);
    assert.equal(isOver, false);
    await clock.advance(1);
    assert.equal(isOver, true);
  });

  test('more new tokens than there may be are answered 503, after a second', async () => {
    const { clock, limits } = make({});
    for (let i = 0; i < 200; i++) await limits.newToken();
    const refused = limits.newToken().catch(told);
    await clock.advance(1_000);
    assert.deepEqual(await refused, [503, 'Overloaded', 1]);
    await limits.newToken();
  });
});

describe('the configuration', () => {
  test('takes a certificate and its key together', () => {
    const CERT = { BERTH_API_TLS_CERT_FILE: '/tls.crt' };
    const KEY = { BERTH_API_TLS_KEY_FILE: '/tls.key' };
    assert.ok(parseConfig(apiConfig, { ...CERT, ...KEY }));
    assert.throws(() => parseConfig(apiConfig, CERT), /BERTH_API_TLS_KEY_FILE: is not set/);
    assert.throws(() => parseConfig(apiConfig, KEY), /BERTH_API_TLS_CERT_FILE: is not set/);
  });

  test('refuses limits that would let nobody in, or a caller more than there is', () => {
    for (const env of [
      { BERTH_API_MAX_REQUESTS: '0' },
      { BERTH_API_CALLER_SHARE: '101' },
      { BERTH_API_CALLER_RATE: 'x' },
      { BERTH_API_STALL_TIMEOUT: '10ms' },
    ]) {
      assert.throws(() => parseConfig(apiConfig, env), new RegExp(Object.keys(env)[0] as string));
    }
  });
});
