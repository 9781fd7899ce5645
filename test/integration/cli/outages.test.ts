import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { ActedCluster, condition } from './acted.ts';

describe('a cluster that goes away', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    await cluster.session('st');
    await cluster.say('st', { phase: 'Queued', conditions: [condition('Admitted', 'False', 'AtCapacity', 'Full.')] });
    await cluster.turn('waited', 'st');
  });
  afterAll(() => cluster.close());

  test('is told on stderr by every command that waits or follows, also without a terminal, and awaited', async () => {
    const { faults, store } = cluster.server;
    const commands = [
      cluster.start('turn', 'st', '--text', 'x', '--name', 'piped'),
      cluster.start('turn', 'st', '--text', 'x', '--name', 'quiet', '--quiet'),
      cluster.start('run', '--name', 'ran', '--', 'true'),
      cluster.start('wait', 'st', '--for=turn=waited', '--timeout', '5m'),
      cluster.start('logs', '-f', 'waited'),
    ] as const;
    const [piped, quiet, ran] = commands;
    for (const { says } of [piped, quiet, ran]) await says(/waiting: /);
    await commands[3].says(/waiting: /);
    let isAway = true;
    faults.failNext(() => isAway, { code: 503, reason: 'ServiceUnavailable', message: 'away' }, 1_000_000);
    faults.dropWatches();
    for (const { says } of commands) await says(/the cluster does not answer, trying again: HTTP status 503\n/);
    isAway = false;
    for (const { says } of commands) await says(/the cluster answers again/);
    for (const { metadata } of (await store.list(turns, { namespace: 'default' })).items) {
      await cluster.end(metadata.name, { phase: 'Succeeded' });
    }
    for (const { ended } of commands) {
      const { code, stderr } = await ended;
      assert.equal(code, 0, stderr);
      assert.equal(stderr.split('does not answer').length, 2, stderr);
    }
  });

  test('ends a wait at its deadline with exit code 3, not with what was seen last', async () => {
    const gone = await ActedCluster.start();
    await gone.session('st');
    const { ended, says } = gone.start('wait', 'st', '--for=ready', '--timeout', '15s');
    await says(/waiting: no controller/);
    // The change comes by the watch, which is open from then on.
    await gone.say('st', { phase: 'Queued', conditions: [condition('Admitted', 'False', 'AtCapacity', 'Full.')] });
    await says(/waiting: AtCapacity/);
    await gone.close();
    const { code, stderr } = await ended;
    assert.equal(code, 3, stderr);
    assert.match(stderr, /^berth: the cluster does not answer: .*(ECONNREFUSED|ECONNRESET|socket)/m);
    assert.doesNotMatch(stderr, /has not become ready/);
  });
});
