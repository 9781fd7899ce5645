import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { seededRandom } from '../../support/random.ts';
import { type Any, get, kubectl, makeNamespace, releaseNamespace } from '../support/cluster.ts';
import { type Leader, leader } from '../support/leader.ts';
import { allEnded, assertOnce, giveTurns } from '../support/load.ts';
import { signal } from '../support/node.ts';
import { install } from '../support/release.ts';

/** Seed of the moments at which leaders are killed. */
const SEED = 1;

async function endedCount(namespace: string): Promise<number> {
  const { items } = await get(['turns', '-n', namespace]);
  return items.filter(({ status }: Any) => status?.finishedAt).length;
}

/** Resolves with the seconds until a further turn has ended. */
async function untilProgress(namespace: string, total: number): Promise<number> {
  const before = await endedCount(namespace);
  const started = performance.now();
  await eventually(
    async () => {
      const now = await endedCount(namespace);
      return now > before || now === total;
    },
    { timeoutMs: 120_000, what: 'a turn ends under the next leader' },
  );
  return (performance.now() - started) / 1000;
}

describe('one controller', () => {
  beforeAll(() => install({ 'controller.replicas': 1 }));
  afterAll(() => install());

  test('a controller that is killed with SIGKILL leads again without waiting for its lease, and every turn runs exactly once', async (t) => {
    const namespace = await makeNamespace(t);
    const total = 40;
    await giveTurns(namespace, 4, 10, 1);
    await eventually(async () => (await endedCount(namespace)) >= 4, { timeoutMs: 120_000, what: 'turns run' });
    const killed = await leader({ settled: true });
    await signal('KILL', killed.targets);
    const gap = await untilProgress(namespace, total);
    const next = await leader({ before: killed });
    assert.equal(next.pod, killed.pod);
    // A kubelet shows the log of the container before until it has looked again.
    const succeeds = /"succeedsItself":true.*"started leading"/;
    await eventually(async () => succeeds.test(await kubectl(['logs', next.pod, '-n', releaseNamespace])), {
      timeoutMs: 120_000,
      what: 'the log tells of a leader that succeeds itself',
    });
    assertOnce(await allEnded(namespace, total, 300_000));
    await t.annotate(`a turn ended ${gap.toFixed(1)} s after the kill`);
  });
});

describe('two controllers', () => {
  test('the leader is killed with SIGKILL at random moments of 100 turns, and every turn runs exactly once', async (t) => {
    const namespace = await makeNamespace(t);
    const total = 100;
    await giveTurns(namespace, 10, 10, 1);
    const { uniform } = seededRandom(SEED);
    const gaps: string[] = [];
    let killed: Leader | undefined;
    while (gaps.length < 5) {
      await eventually(async () => (await endedCount(namespace)) > 0, {
        timeoutMs: 120_000,
        what: 'a first turn ended',
      });
      const leads = await leader({ before: killed });
      await after(200 + uniform() * 1500);
      if ((await endedCount(namespace)) >= total) break;
      await signal('KILL', leads.targets);
      killed = leads;
      gaps.push((await untilProgress(namespace, total)).toFixed(1));
    }
    assert.ok(gaps.length > 0, 'the leader was killed while turns ran');
    assertOnce(await allEnded(namespace, total, 300_000));
    await t.annotate(`killed ${gaps.length} times; seconds until the next turn ended: ${gaps.join(', ')}`);
  });

  test('a leader that is paused past its lease and resumed changes nothing that its successor does', async (t) => {
    const namespace = await makeNamespace(t);
    const total = 40;
    await giveTurns(namespace, 4, 10, 1);
    await eventually(async () => (await endedCount(namespace)) >= 4, { timeoutMs: 120_000, what: 'turns run' });
    const paused = await leader();
    await signal('STOP', paused.targets);
    try {
      const gap = await untilProgress(namespace, total);
      // The lease has another holder, so the paused leader is past its own. The progress may have been its last request's.
      await leader({ before: paused });
      await t.annotate(`a turn ended ${gap.toFixed(1)} s after the pause began`);
    } finally {
      await signal('CONT', paused.targets);
    }
    assertOnce(await allEnded(namespace, total, 300_000));
  });

  test('a leader that is told to stop hands over at once', async (t) => {
    const namespace = await makeNamespace(t);
    await giveTurns(namespace, 4, 10, 1);
    await eventually(async () => (await endedCount(namespace)) >= 4, { timeoutMs: 120_000, what: 'turns run' });
    await kubectl(['delete', 'pod', (await leader()).pod, '-n', releaseNamespace, '--wait=false']);
    const gap = await untilProgress(namespace, 40);
    await t.annotate(`a turn ended ${gap.toFixed(1)} s after SIGTERM`);
    assertOnce(await allEnded(namespace, 40, 300_000));
  });
});
