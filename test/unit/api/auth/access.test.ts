import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Access } from '../../../../api/auth/access.ts';
import { Problem } from '../../../../api/problems/problems.ts';
import type { TokenReview } from '../../../../core/kube/builtin.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const NO_LIMITS = { newToken: async () => {}, unauthenticated: async () => {} };

/** A cluster that gives every token this review: authenticators differ, and the embedded cluster has one kind of them. */
const reviewing = (status: TokenReview['status']) => {
  const create = async (_: unknown, object: object) => ({ ...object, status });
  const api = { create } as never as KubeApi;
  return new Access({ api, clock: new VirtualClock(), audiences: ['berth', 'other'], limits: NO_LIMITS });
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

describe('the cache of the cluster’s answers', () => {
  /** A cluster that allows, and accepts tokens, as told; counts what it is asked. */
  const make = (newToken = NO_LIMITS.newToken) => {
    const clock = new VirtualClock();
    const cluster = { allows: false, accepts: true, asked: 0 };
    const create = async ({ kind }: { kind: string }) => {
      cluster.asked += 1;
      if (kind === 'SubjectAccessReview') return { status: { allowed: cluster.allows } };
      return { status: cluster.accepts ? { authenticated: true, user, audiences: ['berth'] } : {} };
    };
    const api = { create } as never as KubeApi;
    return {
      clock,
      cluster,
      access: new Access({ api, clock, audiences: ['berth'], limits: { ...NO_LIMITS, newToken } }),
    };
  };
  const right = { verb: 'get', resource: 'sessions', namespace: 'default' } as const;
  const isForbidden = (error: unknown) => error instanceof Problem && error.code === 'Forbidden';

  test('a right that was just given counts after a second, a withdrawn one for up to ten', async () => {
    const { clock, cluster, access } = make();
    await assert.rejects(access.authorize(user, right), isForbidden);
    cluster.allows = true;
    await clock.advance(999);
    await assert.rejects(access.authorize(user, right), isForbidden);
    await clock.advance(1);
    await access.authorize(user, right);
    cluster.allows = false;
    await clock.advance(9_999);
    await access.authorize(user, right);
    await clock.advance(1);
    await assert.rejects(access.authorize(user, right), isForbidden);
    assert.equal(cluster.asked, 3);
  });

  test('a user of the cluster itself reads, and creates nothing that would name it as requester', async () => {
    const { cluster, access } = make();
    cluster.allows = true;
    const create = { ...right, verb: 'create' } as const;
    for (const username of ['system:admin', 'system:node:n', 'system:kube-controller-manager']) {
      const caller = { username, groups: [] };
      await access.authorize(caller, right);
      await access.authorize(caller, { ...create, subresource: 'exec' });
      const told = (error: unknown) =>
        isForbidden(error) &&
        (error as Problem).message.startsWith(`User "${username}" is one of the cluster's own users`);
      await assert.rejects(access.authorize(caller, create), told, username);
    }
    for (const username of ['system:serviceaccount:team:ann', 'kubernetes-admin', 'ann']) {
      await access.authorize({ username, groups: [] }, create);
    }
  });

  test('a token that was refused is tried again after a second', async () => {
    const { clock, cluster, access } = make();
    cluster.accepts = false;
    await assert.rejects(access.authenticate('Bearer abc'), isRefused);
    cluster.accepts = true;
    await clock.advance(1_000);
    assert.deepEqual(await access.authenticate('Bearer abc'), user);
  });

  test('the cluster is not asked about new tokens beyond their limit, and still about those that it accepted', async () => {
    let left = 2;
    const full = new Problem('Overloaded', 'full');
    const { clock, cluster, access } = make(async () => {
      left -= 1;
      if (left < 0) throw full;
    });
    await access.authenticate('Bearer mine');
    cluster.accepts = false;
    await assert.rejects(access.authenticate('Bearer random-1'), isRefused);
    for (const token of ['random-2', 'random-3']) {
      await assert.rejects(access.authenticate(`Bearer ${token}`), (error) => error === full);
    }
    assert.equal(cluster.asked, 2);
    cluster.accepts = true;
    for (let i = 0; i < 3; i++) {
      await clock.advance(20_000);
      assert.deepEqual(await access.authenticate('Bearer mine'), user);
    }
    // A token is new again after ten minutes without an acceptance.
    await clock.advance(600_000);
    await assert.rejects(access.authenticate('Bearer mine'), (error) => error === full);
  });
});
