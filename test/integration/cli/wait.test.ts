import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { ActedCluster, condition } from './acted.ts';

describe('berth wait', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
  });
  afterAll(() => cluster.close());

  test('ends with 0 as soon as the session is ready, suspended or finished', async () => {
    await cluster.session('one', { turns: 'One' });
    for (const [state, type] of [
      ['ready', 'Ready'],
      ['suspended', 'Suspended'],
      ['finished', 'Finished'],
    ] as const) {
      await cluster.say('one', { phase: 'Starting', conditions: [condition(type, 'False', 'Starting')] });
      const { ended, says } = cluster.start('wait', 'one', `--for=${state}`, '--timeout', '60s');
      await says(/waiting: /);
      await cluster.say('one', { conditions: [condition(type, 'True', 'Ready')] });
      const { code, stdout } = await ended;
      assert.deepEqual([code, stdout], [0, 'session.berth.dev/one condition met\n']);
    }
  });

  test('ends with 1 at the deadline and says why the session is not there yet', async () => {
    await cluster.session('full');
    await cluster.say('full', { phase: 'Queued', conditions: [condition('Admitted', 'False', 'AtCapacity', 'Full.')] });
    const { code, stdout, stderr } = await cluster.berth('wait', 'full', '--for=ready', '--timeout', '300ms');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /session full has not become ready within 300ms: AtCapacity: Full\./);
  });

  test('looks once with --timeout 0', async () => {
    assert.equal((await cluster.berth('wait', 'full', '--for=suspended', '--timeout=0')).code, 1);
    await cluster.say('full', { conditions: [condition('Suspended', 'True', 'Suspended')] });
    assert.equal((await cluster.berth('wait', 'full', '--for=suspended', '--timeout=0')).code, 0);
  });

  test('ends with 1 at once where the session is deleted or finished, and can never be there', async () => {
    await cluster.session('gone');
    const { ended, says } = cluster.start('wait', 'gone', '--for=ready', '--timeout', '10m');
    await says(/waiting: no controller has seen session gone/);
    await cluster.remove('gone');
    const deleted = await ended;
    assert.equal(deleted.code, 1);
    assert.match(deleted.stderr, /session gone can never be ready: it was deleted/);

    await cluster.session('over');
    await cluster.say('over', {
      phase: 'Finished',
      conditions: [condition('Finished', 'True', 'LifetimeExceeded', 'Its lifetime is over.')],
    });
    const { code, stderr } = await cluster.berth('wait', 'over', '--for=ready', '--timeout', '10m');
    assert.equal(code, 1);
    assert.match(stderr, /session over can never be ready: it is finished: LifetimeExceeded: Its lifetime is over\./);
  });

  test('ends with 1 at once for the end of a session that takes turns without end', async () => {
    await cluster.session('endless');
    const { code, stderr } = await cluster.berth('wait', 'endless', '--for=finished', '--timeout', '10m');
    assert.equal(code, 1);
    assert.match(stderr, /can never be finished: it takes turns without end.*--for=turn=NAME/);
  });

  test('waits for the success of a turn, and ends with 1 at once where it failed or was deleted', async () => {
    await cluster.session('asked');
    for (const name of ['good', 'bad', 'removed']) await cluster.turn(name, 'asked');
    const good = cluster.start('wait', 'asked', '--for=turn=good', '--timeout', '10m');
    const bad = cluster.start('wait', 'asked', '--for', 'turn=bad', '--timeout', '10m');
    const removed = cluster.start('wait', 'asked', '--for', 'turn=removed', '--timeout', '10m');
    for (const { says } of [good, bad, removed]) await says(/waiting: no controller has seen it yet/);
    await cluster.end('good', { phase: 'Succeeded' });
    await cluster.server.store.delete(turns, { namespace: 'default', name: 'removed' });
    await cluster.end('bad', { phase: 'Failed', error: { code: 'AgentFailed', message: 'exit code 3' } });
    assert.equal((await good.ended).stdout, 'turn.berth.dev/good condition met\n');
    assert.match((await removed.ended).stderr, /turn removed has not succeeded: it was deleted before it ended/);
    const { code, stderr } = await bad.ended;
    assert.equal(code, 1);
    assert.match(stderr, /turn bad has not succeeded: it ended Failed: AgentFailed: exit code 3/);
  });

  test('goes on when the API server’s watches break', async () => {
    await cluster.session('cut');
    const { ended, says } = cluster.start('wait', 'cut', '--for=ready', '--timeout', '60s');
    await says(/waiting: /);
    cluster.server.faults.dropWatches();
    await cluster.say('cut', { conditions: [condition('Ready', 'True', 'Ready')] });
    assert.equal((await ended).code, 0);
  });

  test('ends with 2 for a state, session or turn that does not exist', async () => {
    await cluster.session('other');
    await cluster.turn('theirs', 'other');
    const cases: [string[], RegExp][] = [
      [['asked'], /required option '--for <state>'/],
      [['asked', '--for=running'], /'--for <state>'.*it must be ready, suspended, finished or turn=NAME/],
      [['asked', '--for=ready', '--timeout=-1s'], /'--timeout <duration>'.*"-1s" is not a duration/],
      [['none', '--for=ready'], /there is no session "none"/],
      [['asked', '--for=turn=none'], /there is no turn "none"/],
      [['asked', '--for=turn=theirs'], /--for: turn theirs belongs to session other, not to asked/],
      [['asked', '--for=ready', '--nope'], /unknown option '--nope'/],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await cluster.berth('wait', ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });
});
