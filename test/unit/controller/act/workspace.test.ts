import assert from 'node:assert/strict';
import { test } from 'vitest';
import { workspaceVariables } from '../../../../controller/settings/variables.ts';
import { persistentVolumeClaims } from '../../../../core/kube/resources.ts';
import { turns } from '../../../../core/resources/kinds.ts';
import { isTerminal } from '../../../../core/resources/turn-phases.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';

test('a volume that cannot be had ends the turns that wait for it when timeouts.start is over', async () => {
  const world = new QuietWorld();
  await world.start();
  const persistence = { workspace: { type: 'Volume', size: '1Gi' } };
  const spec = { suspend: true, persistence, timeouts: { start: '20s' } };
  const { metadata } = await world.session('taken', spec, 'Suspended');
  await world.server.admin.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'team', name: `w-${metadata.uid}` },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  await world.give('a', { ms: 100, output: 1 }, 'taken');
  await world.edit('taken', { suspend: false });
  const turn = () => world.server.get(turns, 'team', 'a')?.status;
  await world.until('the turn to end', () => isTerminal(turn()?.phase));
  assert.equal(turn()?.error?.code, 'Unschedulable');
  assert.match(turn()?.error?.message ?? '', /is not this session's; delete it/);
  const { status } = await world.sessionUntil('taken', (session) => session.status?.podName === undefined);
  assert.equal(status?.phase, 'Suspended');
});

test('git is told to take the repository at the top of a volume, which belongs to its provisioner', () => {
  const given = workspaceVariables({ size: '1Gi', mountPath: '/checkout' });
  assert.deepEqual(Object.fromEntries(given.map(({ name, value }) => [name, value])), {
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'safe.directory',
    GIT_CONFIG_VALUE_0: '/checkout',
  });
  assert.deepEqual(workspaceVariables(undefined), [], 'without a volume nothing is said');
});
