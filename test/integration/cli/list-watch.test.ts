import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ActedCluster } from './acted.ts';

describe('berth list --watch', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    await cluster.session('first', {}, { team: 'red' });
    await cluster.say('first', { phase: 'Queued' });
  });
  afterAll(() => cluster.close());

  test('prints the table, then every row that changes, and ends with 130 on Ctrl-C', async () => {
    const { child, ended, says } = cluster.start('list', '--watch');
    await says(/^NAME +PHASE.*\nfirst +Queued/);
    await cluster.say('first', { phase: 'Ready' });
    await says(/\nfirst +Ready/);
    await cluster.session('second');
    await says(/\nsecond /);
    await cluster.remove('second');
    await says(/\nsecond .*\nsecond /);
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stderr], [130, '']);
    assert.equal(stdout.match(/^NAME/gm)?.length, 1);
  });

  test('prints what changed while its connection was lost, and nothing twice', async () => {
    const { child, ended, says } = cluster.start('ls', '-w', '-A', '-l', 'team=red');
    await says(/^NAMESPACE +NAME.*\ndefault +first +Ready/);
    cluster.server.faults.dropWatches();
    await cluster.say('first', { phase: 'Suspended' });
    await says(/\ndefault +first +Suspended/);
    await cluster.session('other-team');
    await cluster.say('first', { phase: 'Running' });
    await says(/\ndefault +first +Running/);
    child.kill('SIGINT');
    const { stdout } = await ended;
    assert.equal(stdout.trimEnd().split('\n').length, 4, stdout);
  });

  test('waits where there is nothing yet, and prints names or objects with -o', async () => {
    const names = cluster.start('list', 'turns', '--watch', '-o', 'name');
    const objects = cluster.start('list', 'turns', '-w', '-o', 'json');
    const table = cluster.start('list', 'turns', '-w', '--session', 'first');
    // A watch that begins after the list shows the turn too.
    await cluster.turn('late', 'first');
    await names.says(/^turn\.berth\.dev\/late\n$/);
    await objects.says(/"name": "late"/);
    await table.says(/^NAME +SESSION.*\nlate +first/);
    for (const { child, ended } of [names, objects, table]) {
      child.kill('SIGINT');
      assert.equal((await ended).code, 130);
    }
  });

  test('ends with 3 where the cluster cannot be reached', async () => {
    const { code } = await cluster.berth('list', '--watch', '--kubeconfig', '/nowhere');
    assert.equal(code, 3);
  });
});
