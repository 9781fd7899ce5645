import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { sessionclasses, type Turn, turns } from '../../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { installed } from '../../support/installed.ts';
import { ASKS, asked, decide, outputOf } from '../approvals/support.ts';

const SHORT = '1s';
/** Edits of a class after which it grants less, or nothing that can be read. */
const EDITS: Record<string, Partial<SessionClassSpec> | 'Delete'> = {
  deleted: 'Delete',
  invalid: { redact: ['(a+)+b'] },
  lowered: { maxTimeouts: { turn: SHORT, stall: SHORT, start: SHORT, approval: SHORT, persist: SHORT } },
};
/** Long enough that the edit and the change of leader come first. */
const GRANTED = '40s';

describe('a turn is judged by the rules it began with: its class is edited and its leader killed while it', () => {
  const cluster = installed();
  beforeAll(async () => {
    const controller = cluster.startController();
    for (const what of Object.keys(EDITS)) {
      const released = join(cluster.home, what);
      const waits = { command: ['/bin/sh', '-c', `while [ ! -e ${released} ]; do sleep 0.1; done; exit 3`] };
      const none = { runner: 'None', image: 'berth.local/machine' } as const;
      await begin(`works-${what}`, { ...none, agent: waits, overrides: ['timeouts'] }, null, { timeout: '1h' });
      await begin(`late-${what}`, { ...none, agent: waits, timeouts: { turn: GRANTED } }, null);
      await begin(`asks-${what}`, { agent: ASKS }, { questions: ['May I?'] });
      await begin(`alone-${what}`, { agent: ASKS, timeouts: { approval: GRANTED } }, { questions: ['May I?'] });
      await begin(`lingers-${what}`, { agent: ASKS, timeouts: { turn: GRANTED } }, { questions: ['?'], linger: 300 });
    }
    for (const [what, change] of Object.entries(EDITS)) {
      for (const turn of ['asks', 'alone', 'lingers']) await asked(cluster, `${turn}-${what}-1`);
      for (const turn of ['works', 'late']) {
        await cluster.turnUntil(`${turn}-${what}-1`, 'runs', ({ status }) => status?.phase === 'Running');
      }
      for (const turn of ['works', 'late', 'asks', 'alone', 'lingers']) await edit(`${turn}-${what}`, change);
    }
    await controller.kill('SIGKILL');
    const { items } = await cluster.client.list(turns, { namespace: 'default' });
    const over = items.filter(({ status }) => isTerminal(status?.phase)).map(({ metadata }) => metadata.name);
    assert.deepEqual(over, [], 'an edit ends nothing, and what was granted is longer than this took');
    cluster.startController();
    for (const what of Object.keys(EDITS)) {
      await decide(cluster, await asked(cluster, `lingers-${what}-1`), { decision: 'Approve' });
    }
  });

  async function begin(name: string, spec: object, input: unknown, turn: Partial<Turn['spec']> = {}): Promise<void> {
    await cluster.createClass(name, spec as never);
    await cluster.create(name, { class: name });
    await cluster.turn(name, `${name}-1`, input, turn);
  }

  async function edit(name: string, change: Partial<SessionClassSpec> | 'Delete'): Promise<void> {
    if (change === 'Delete') await cluster.client.delete(sessionclasses, { name });
    else await cluster.client.patch(sessionclasses, { name }, { spec: change });
  }

  for (const what of Object.keys(EDITS)) {
    test(`works: with its class ${what} it goes on to its own end`, async () => {
      const name = `works-${what}`;
      // The new leader reconciles the session by the new rules.
      await cluster.patch(name, { priority: 1 });
      await cluster.until(name, 'looked at', (one) => one.status?.observedGeneration === one.metadata.generation);
      // The same leader has ended the other turns of the class by then.
      const late = await cluster.ended(`late-${what}-1`, 120_000);
      assert.deepEqual([late.status?.phase, late.status?.granted?.timeout], ['TimedOut', GRANTED]);
      assert.match(late.status?.error?.message ?? '', /of 40s/);
      writeFileSync(join(cluster.home, what), '');
      const { status } = await cluster.ended(`${name}-1`);
      assert.deepEqual([status?.phase, status?.exitCode], ['Failed', 3], JSON.stringify(status));
      assert.equal(status?.granted?.timeout, '1h');
    });

    test(`waits for a decision: with its class ${what} it waits as long as it was granted, no shorter and no longer`, async () => {
      const { status } = await cluster.ended(`alone-${what}-1`, 120_000);
      assert.equal(status?.error?.code, 'ApprovalTimeout', JSON.stringify(status));
      assert.match(status?.error?.message ?? '', /\(40s\)/);
      await decide(cluster, await asked(cluster, `asks-${what}-1`), { decision: 'Approve', response: 1 });
      const answered = await cluster.ended(`asks-${what}-1`);
      assert.equal(answered.status?.phase, 'Succeeded', JSON.stringify(answered.status));
      assert.equal(outputOf<{ told: unknown[] }>(answered).told.length, 1);
    });

    test(`waits for a decision: with its class ${what} its runner is told the timeout that it was granted`, async () => {
      const { status } = await cluster.ended(`lingers-${what}-1`, 120_000);
      assert.deepEqual([status?.phase, status?.granted?.timeout], ['TimedOut', GRANTED], JSON.stringify(status));
      const wall = status?.usage?.wall ?? 0;
      assert.ok(wall > 35 && wall < 100, `it ran for ${wall} s`);
    });
  }
});
