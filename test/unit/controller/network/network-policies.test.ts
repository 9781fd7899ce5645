import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { NetworkPolicies } from '../../../../controller/network/policies.ts';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import type { NetworkPolicy, StoredPod } from '../../../../core/kube/builtin.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { networkPolicies } from '../../../../core/kube/resources.ts';
import type { KubeApi, Stored } from '../../../../core/kube/types.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aClass, aPod, aSession } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

type Policy = Stored<NetworkPolicy>;
const never = new AbortController().signal;
const error = (code: number, reason: string) => new ApiError({ code, reason, message: reason });

test('a policy that was deleted while no controller led is made again for the pods that run', async () => {
  const world = new QuietWorld();
  await world.start();
  await world.session('notes');
  const policies = () => world.server.list(networkPolicies).map(({ metadata }) => metadata.name);
  const [name = ''] = policies();
  world.replica.stop();
  await world.until('the end', () => world.replica.process?.alive === false);
  await world.server.admin.delete(networkPolicies, { namespace: 'team', name });
  world.replica.start();
  await world.until('the policy', () => policies().includes(name));
});

/**
 * A namespace whose server and whose cache are apart: the cache learns of a removal when the test says so. `former`: the policy that
 * an earlier leader left.
 */
function setUp(former?: Policy) {
  let stored: Policy | undefined = former;
  let cached: Policy | undefined = former;
  let made = 0;
  /** Preconditions of the last deletion. */
  let deleted: { uid: string; resourceVersion: string } | undefined;
  const calls: string[] = [];
  const sessions: CachedSession[] = [];
  const pods: StoredPod[] = [];
  /** Ends the deletion under way; true: it takes effect. */
  const closed = new Set<string>();
  let deletion: ((effective: boolean) => void) | undefined;
  const api = {
    async create(_resource: unknown, policy: NetworkPolicy) {
      calls.push('create');
      if (stored) throw error(409, 'AlreadyExists');
      stored = {
        ...policy,
        metadata: { ...policy.metadata, uid: `u${++made}`, resourceVersion: '1', creationTimestamp: '' },
      } as Policy;
      return stored;
    },
    async get() {
      calls.push('get');
      if (!stored) throw error(404, 'NotFound');
      return stored;
    },
    async replace(_resource: unknown, policy: Policy) {
      calls.push('replace');
      if (stored?.metadata.resourceVersion !== policy.metadata.resourceVersion) throw error(409, 'Conflict');
      const resourceVersion = `${Number(policy.metadata.resourceVersion) + 1}`;
      stored = { ...policy, metadata: { ...policy.metadata, resourceVersion } };
      return stored;
    },
    async delete(
      _resource: unknown,
      _ref: unknown,
      { uid, resourceVersion }: { uid: string; resourceVersion: string },
    ) {
      calls.push('delete');
      deleted = { uid, resourceVersion };
      const waits = deletion ? undefined : new Promise<boolean>((resolve) => (deletion = resolve));
      const effective = waits ? await waits : true;
      if (!effective) throw error(504, 'Timeout');
      const { metadata } = stored ?? {};
      if (metadata?.uid !== uid || metadata.resourceVersion !== resourceVersion) throw error(409, 'Conflict');
      stored = undefined;
    },
  } as unknown as KubeApi;
  const caches = {
    class: () => aClass(),
    allSessions: () => sessions,
    allPools: () => [],
    allPods: () => pods,
    networkPolicy: () => cached,
    allNetworkPolicies: () => (cached ? [cached] : []),
    closed: (namespace: string) => (closed.has(namespace) ? 'forbidden' : undefined),
  };
  const clock = new VirtualClock();
  const policies = new NetworkPolicies({
    api: writesOver(api, (policy: Policy) => {
      cached = policy;
    }).api,
    caches,
    clock,
    random: systemRandom,
    log: silentLogger,
    notify: () => {},
    epoch: () => 7,
    intervalMs: 1000,
    signal: never,
    closing: never,
  });
  return {
    policies,
    clock,
    calls,
    closed,
    sessions,
    pods,
    get stored() {
      return stored;
    },
    get deleted() {
      return deleted;
    },
    get isBeingDeleted() {
      return deletion !== undefined;
    },
    finishDeletion: (effective: boolean) => deletion?.(effective),
    ensure: () => policies.ensure('team', 'default', never),
  };
}

describe('a network policy', () => {
  test('that is there as it should be costs no request', async () => {
    const cluster = setUp();
    await cluster.ensure();
    await cluster.ensure();
    assert.deepEqual(cluster.calls, ['create']);
  });

  test('that an earlier leader left is written once before pods rely on it, so that its late deletion fails', async () => {
    const first = setUp();
    await first.ensure();
    const left = first.stored as Policy;
    const cluster = setUp(left);
    await cluster.ensure();
    await cluster.ensure();
    assert.deepEqual(cluster.calls, ['create', 'get', 'replace']);
    const { uid, resourceVersion, annotations } = (cluster.stored as Policy).metadata;
    assert.deepEqual([uid, annotations], [left.metadata.uid, { 'berth.dev/epoch': '7' }]);
    // The deletion of the earlier leader has the version that it knew.
    assert.notEqual(resourceVersion, left.metadata.resourceVersion);
    first.policies.start();
    for (let i = 0; i < 5 && !first.isBeingDeleted; i++) await first.clock.advance(1000);
    assert.deepEqual(first.deleted, { uid, resourceVersion: left.metadata.resourceVersion });
    first.finishDeletion(true);
    await first.policies.stop(0);
  });

  for (const effective of [true, false]) {
    test(`whose removal is under way is never relied on, ${effective ? 'and made anew' : 'also when nobody knows what became of it'}`, async () => {
      const cluster = setUp();
      await cluster.ensure();
      const { uid } = (cluster.stored as Policy).metadata;
      cluster.policies.start();
      for (let i = 0; i < 5 && !cluster.isBeingDeleted; i++) await cluster.clock.advance(1000);
      assert.ok(cluster.isBeingDeleted, 'nobody needs it');
      // A session comes while the deletion is under way; the cache still shows the policy, and so does the server.
      cluster.sessions.push(aSession());
      await cluster.ensure();
      assert.notEqual(cluster.stored?.metadata.uid, uid);
      const second = cluster.stored?.metadata.uid;
      cluster.finishDeletion(effective);
      await cluster.clock.advance(10_000);
      assert.equal(cluster.stored?.metadata.uid, second, 'the old deletion is for the old one');
      await cluster.policies.stop(0);
    });
  }

  test('stays where it is not to be seen who needs it', async () => {
    const cluster = setUp();
    await cluster.ensure();
    cluster.closed.add('team');
    cluster.policies.start();
    await cluster.clock.advance(20_000);
    assert.deepEqual(cluster.calls, ['create']);
    await cluster.policies.stop(0);
  });

  test('stays as long as there is a pod under it, whatever became of its session', async () => {
    const cluster = setUp();
    await cluster.ensure();
    const pod = aPod();
    pod.metadata.labels = { 'berth.dev/network': 'default' };
    cluster.pods.push(pod);
    cluster.policies.start();
    await cluster.clock.advance(20_000);
    assert.deepEqual(cluster.calls, ['create']);
    await cluster.policies.stop(0);
  });

  test('under which a pod is about to be made stays, whatever brings a reconcile', async () => {
    const cluster = setUp();
    await cluster.ensure();
    cluster.policies.start();
    // It has been unused for more than half of an interval when the next event comes.
    await cluster.clock.advance(700);
    await cluster.ensure();
    const { namespace, name } = (cluster.stored as Policy).metadata;
    for (let i = 0; i < 3; i++) {
      cluster.policies.watches.networkPolicy?.(namespace, name);
      await cluster.clock.advance(1);
    }
    assert.equal(cluster.isBeingDeleted, false);
  });

  test('that a session needs is not removed', async () => {
    const cluster = setUp();
    cluster.sessions.push(aSession());
    await cluster.ensure();
    cluster.policies.start();
    await cluster.clock.advance(20_000);
    assert.deepEqual(cluster.calls, ['create']);
    await cluster.policies.stop(0);
  });
});
