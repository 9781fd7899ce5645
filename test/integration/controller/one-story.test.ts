import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { secrets } from '../../../core/kube/resources.ts';
import { type StoredSession, type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import type { Condition } from '../../../core/resources/schema.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/** Classes whose agent needs a Secret that is not there yet, and the phases of a turn until it has it. */
const CLASSES: { runner: SessionClassSpec['runner']; phases: string[] }[] = [
  { runner: 'Embedded', phases: ['Queued', 'Running', 'Succeeded'] },
  // The pod of a turn without a runner may begin it at any time, so it is shown as running until its pod has a problem.
  { runner: 'None', phases: ['Running', 'Queued', 'Running', 'Succeeded'] },
];

const conditionOf = ({ status }: StoredSession | StoredTurn, type: string): Condition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

describe('a turn and its session', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  for (const { runner, phases } of CLASSES) {
    test(`tell the same story while a Secret is missing, and the turn runs once it is there: runner ${runner}`, async () => {
      const name = `needs-${runner.toLowerCase()}`;
      const go = join(cluster.home, `${name}-goes`);
      const result = '{"status":"success","output":"ok"}';
      const [start, end] = ['BERTH_RESULT_START_MARKER', 'BERTH_RESULT_END_MARKER'].map((marker) => `"$${marker}"`);
      const script = `printf '%s%s%s\\n' ${start} '${result}' ${end}; until [ -e ${go} ]; do sleep 0.05; done`;
      const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name, key: 'key' } } }];
      const image = runner === 'None' ? { image: 'berth.local/machine' } : {};
      await cluster.createClass(name, { runner, ...image, agent: { command: ['/bin/sh', '-c', script], env } });
      const seen: string[] = [];
      const over = new AbortController();
      const follow = async () => {
        const scope = { namespace: 'default', fieldSelector: `spec.session=${name}` };
        const { metadata } = await cluster.client.list(turns, scope);
        const options = { ...scope, resourceVersion: metadata.resourceVersion, signal: over.signal };
        for await (const event of cluster.client.watch(turns, options)) {
          const phase = event.type === 'BOOKMARK' ? undefined : event.object.status?.phase;
          if (phase && phase !== seen.at(-1)) seen.push(phase);
          if (isTerminal(phase as 'Queued')) return;
        }
      };
      const followed = follow();
      await cluster.create(name, { class: name });
      const turn = `${name}-1`;
      await cluster.turn(name, turn, null);

      const session = await cluster.until(
        name,
        'lacks its Secret',
        (one) => conditionOf(one, 'Ready')?.reason === 'PodConfigError',
      );
      const queued = await cluster.turnUntil(turn, 'says so', (one) => one.status?.phase === 'Queued');
      const said = conditionOf(queued, 'Running');
      assert.deepEqual([said?.status, said?.reason], ['False', 'PodConfigError']);
      assert.equal(said?.message, conditionOf(session, 'Ready')?.message);
      assert.match(said?.message ?? '', new RegExp(`"${name}"`));
      assert.equal(conditionOf(queued, 'Finished')?.reason, 'PodConfigError');

      await cluster.client.create(secrets, {
        metadata: { namespace: 'default', name },
        data: { key: Buffer.from('a long enough key').toString('base64') },
      });
      await cluster.turnUntil(turn, 'runs', (one) => one.status?.phase === 'Running');
      writeFileSync(go, '');
      const { status } = await cluster.ended(turn);
      assert.deepEqual([status?.phase, status?.attempt], ['Succeeded', 1], JSON.stringify(status));
      await followed;
      over.abort();
      assert.deepEqual(seen, phases);
    });
  }

  test('tell that the session is held, and only the first of its turns says so', async () => {
    await cluster.create('held', { suspend: true, agent: { command: ['true'] } });
    for (let i = 1; i <= 5; i++) await cluster.turn('held', `held-${i}`, i);
    await cluster.turnUntil('held-1', 'is held', (turn) => conditionOf(turn, 'Running')?.reason === 'Held');
    for (let i = 2; i <= 5; i++) {
      const turn = await cluster.turnUntil(`held-${i}`, 'is queued', ({ status }) => status?.phase === 'Queued');
      assert.equal(conditionOf(turn, 'Finished')?.reason, 'Queued');
    }
  });
});
