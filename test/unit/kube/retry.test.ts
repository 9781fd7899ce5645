import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { mayRetry, retryWaitMs } from '../../../core/kube/retry.ts';
import { seededRandom } from '../../support/random.ts';

const answered = (code: number, retryAfterMs?: number) => new ApiError({ code, reason: '', message: '' }, retryAfterMs);
const failed = (sent: boolean, code?: string) =>
  new TransportError('', { sent, cause: Object.assign(new Error(), { code }) });

describe('retry rules', () => {
  for (const [what, error, read, write] of [
    ['429', answered(429), true, true],
    ['500', answered(500), true, false],
    ['500 with Retry-After', answered(500, 1_000), true, false],
    ['501', answered(501), false, false],
    ['503', answered(503), true, false],
    ['503 with Retry-After', answered(503, 1_000), true, true],
    ['504', answered(504, 1_000), true, false],
    ['400', answered(400), false, false],
    ['401', answered(401), false, false],
    ['404', answered(404), false, false],
    ['409', answered(409), false, false],
    ['410', answered(410), false, false],
    ['a connection lost after the request went out', failed(true, 'ECONNRESET'), true, false],
    ['a refused connection', failed(false, 'ECONNREFUSED'), true, true],
    ['a certificate of another host', failed(false, 'ERR_TLS_CERT_ALTNAME_INVALID'), false, false],
    ['a certificate of an unknown authority', failed(false, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'), false, false],
    ['an abort of the caller', new Error('aborted'), false, false],
  ] as const) {
    const says = (again: boolean) => (again ? 'is' : 'is not');
    test(`after ${what} a read ${says(read)} sent again and a write ${says(write)}`, () => {
      assert.deepEqual([mayRetry(error, true), mayRetry(error, false)], [read, write]);
    });
  }

  test('waits grow up to five seconds and Retry-After replaces them', () => {
    const random = seededRandom();
    const waits = Array.from({ length: 12 }, (_, i) => retryWaitMs(answered(500), i + 1, random));
    for (const [i, wait] of waits.entries()) {
      const whole = Math.min(5_000, 100 * 2 ** i);
      assert.ok(wait >= whole / 2 && wait <= whole, `wait ${i} is ${wait}`);
    }
    const asked = retryWaitMs(answered(429, 2_000), 9, random);
    assert.ok(asked >= 2_000 && asked <= 2_250);
  });
});
