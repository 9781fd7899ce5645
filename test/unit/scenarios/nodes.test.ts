import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { test } from 'vitest';
import { Nodes } from '../../../controller/caches/nodes.ts';
import { nodes } from '../../../core/kube/resources.ts';
import type { KubeApi } from '../../../core/kube/types.ts';
import { silentLogger } from '../../../core/system.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { seededRandom } from '../../support/random.ts';

/** Follows the nodes of a cluster that `add` creates. */
function setUp() {
  const { admin, clock } = new QuietWorld().server;
  const api = admin as unknown as KubeApi;
  const told: string[] = [];
  const onChange = (name: string) => void told.push(name);
  const followed = new Nodes({ api, clock, random: seededRandom(), log: silentLogger, onChange });
  const add = async (name: string, ready: 'True' | 'Unknown', cpu?: string, unschedulable?: true) => {
    const spec = unschedulable ? { unschedulable } : {};
    await admin.create(nodes, { metadata: { name }, spec });
    const created = await admin.get(nodes, { name });
    const conditions = [{ type: 'Ready', status: ready, lastTransitionTime: '2026-01-01T00:00:00Z' }] as const;
    const status = { conditions: [...conditions], ...(cpu ? { allocatable: { cpu, memory: '8Gi' } } : {}) };
    await admin.replace(nodes, { ...created, status }, { subresource: 'status' });
  };
  return { followed, add, told };
}

test('the CPUs of a cluster are what the ready nodes that are not cordoned have for pods', async () => {
  const { followed, add } = setUp();
  await add('large', 'True', '16');
  await add('small', 'True', '1930m');
  await add('cordoned', 'True', '4', true);
  await add('lost', 'Unknown', '4');
  await add('silent', 'True');
  await add('odd', 'True', '1e3');
  followed.start();
  await setImmediate();
  assert.equal(followed.cpus(), 17.93);
  await followed.stop();
});

test('a node that is not ready or cordoned is told of when it becomes known, as pods may have to leave it', async () => {
  const { followed, add, told } = setUp();
  await add('sound', 'True');
  await add('lost', 'Unknown');
  await add('cordoned', 'True', '4', true);
  followed.start();
  await setImmediate();
  assert.deepEqual(told.sort(), ['cordoned', 'lost']);
  await followed.stop();
});
