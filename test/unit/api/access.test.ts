import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Access } from '../../../api/auth/access.ts';
import { Problem } from '../../../api/problems.ts';
import type { TokenReview } from '../../../core/kube/builtin.ts';
import type { KubeApi } from '../../../core/kube/types.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A cluster that gives every token this review: authenticators differ, and the embedded cluster has one kind of them. */
const reviewing = (status: TokenReview['status']) => {
  const create = async (_: unknown, object: object) => ({ ...object, status });
  return new Access({ api: { create } as never as KubeApi, clock: new VirtualClock(), audiences: ['berth', 'other'] });
};
const isRefused = (error: unknown) => error instanceof Problem && error.code === 'Unauthenticated';
const user = { username: 'alice', groups: ['blue'] };

describe('the caller', () => {
  test('a token for one of the audiences is its user’s', async () => {
    const access = reviewing({ authenticated: true, user, audiences: ['other'] });
    assert.deepEqual(await access.authenticate('Bearer abc'), user);
  });

  test('a token that an authenticator without audiences accepted is refused', async () => {
    await assert.rejects(reviewing({ authenticated: true, user }).authenticate('Bearer abc'), isRefused);
    const foreign = reviewing({ authenticated: true, user, audiences: ['https://kubernetes.default.svc'] });
    await assert.rejects(foreign.authenticate('Bearer abc'), isRefused);
  });

  test('a review without a user, or without an answer, is refused', async () => {
    await assert.rejects(
      reviewing({ authenticated: true, audiences: ['berth'] }).authenticate('Bearer abc'),
      isRefused,
    );
    await assert.rejects(reviewing(undefined).authenticate('Bearer abc'), isRefused);
  });

  test('a request without a bearer token is refused without asking the cluster', async () => {
    const access = reviewing({ authenticated: true, user, audiences: ['berth'] });
    for (const header of [undefined, '', 'Basic abc', 'Bearer', 'Bearer a b', `Bearer ${'x'.repeat(20_000)}`]) {
      await assert.rejects(access.authenticate(header), isRefused, String(header).slice(0, 20));
    }
  });
});
