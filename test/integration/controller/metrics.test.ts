import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { metricsOf, samplesOf } from '../../support/metrics.ts';

/** Runs what its turn brings. */
const agent = { command: ['/bin/bash', '-c'], args: ['$(INPUT)'], input: 'Args' as const, result: 'Text' as const };
const FRAME = `<<<BERTH_START {"v":1,"sid":"x","inc":1,"boot":"b","seq":1,"kind":"result","part":1,"parts":1}>>>\\nAAAA\\n<<<BERTH_END 1/1>>>\\n`;
/** Writes it to the pod’s stdout, which is that of the runner, a process above the agent. The keeper’s arguments have this text in them. */
const FORGE = `p=$PPID
while [ "$p" -gt 1 ] && ! grep -q 'runner/[m]ain' /proc/$p/cmdline; do p=$(awk '/PPid/ {print $2}' /proc/$p/status); done
printf '${FRAME}' > /proc/$p/fd/1`;

describe('the metrics of a controller', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_MAX_RUNNING: '7' });
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  const read = async (metric: string) => samplesOf(await metricsOf(controller), metric);

  test('every turn that ended is counted once, by its class, phase and reason', async () => {
    await cluster.create('counted', { agent });
    await cluster.turn('counted', 'fine-1', 'echo 1');
    await cluster.turn('counted', 'fine-2', 'echo 2');
    await cluster.turn('counted', 'broken', 'exit 3');
    await cluster.turn('counted', 'late', 'sleep 600', { timeout: '1s' });
    await cluster.turn('counted', 'withdrawn', 'sleep 600');
    // A turn of a session that does not exist has no class.
    await cluster.turn('nobody', 'lost', null);
    await cluster.cancel('lost');
    await cluster.cancel('withdrawn');
    const names = ['fine-1', 'fine-2', 'broken', 'late', 'withdrawn', 'lost'];
    const ended = await Promise.all(names.map((name) => cluster.ended(name)));
    const one = (phase: string, code: string) => `{class="default",phase="${phase}",code="${code}"}`;
    // A watch may be told of an end before the controller has the answer to its write.
    const turns = await eventually(
      async () => {
        const counts = await read('berth_turns_total');
        return Object.values(counts).reduce((sum, count) => sum + count, 0) >= 6 ? counts : undefined;
      },
      { what: 'six turns are counted' },
    );
    assert.deepEqual(turns, {
      [one('Succeeded', '')]: 2,
      [one('Failed', 'AgentFailed')]: 1,
      [one('TimedOut', 'TurnTimedOut')]: 1,
      [one('Cancelled', 'Cancelled')]: 1,
      '{class="",phase="Cancelled",code="Cancelled"}': 1,
    });
    const started = ended.flatMap(({ status, metadata }) => {
      const [from, to] = [Date.parse(status?.startedAt ?? ''), Date.parse(status?.finishedAt ?? '')];
      return Number.isNaN(from)
        ? []
        : [{ ran: (to - from) / 1000, waited: from / 1000 - Date.parse(metadata.creationTimestamp) / 1000 }];
    });
    const sum = (of: Record<string, number>) => Object.values(of).reduce((all, one) => all + one, 0);
    assert.ok(started.length >= 3);
    assert.equal(sum(await read('berth_turn_duration_seconds_count')), started.length);
    assert.equal(sum(await read('berth_turn_queue_seconds_count')), started.length);
    const ran = started.reduce((all, one) => all + one.ran, 0);
    assert.ok(Math.abs(sum(await read('berth_turn_duration_seconds_sum')) - ran) < 0.01);
    const waited = started.reduce((all, one) => all + Math.max(0, one.waited), 0);
    assert.ok(Math.abs(sum(await read('berth_turn_queue_seconds_sum')) - waited) < 0.01);
  });

  test('gauges count objects by phase and by class', async () => {
    await cluster.createClass('small', {
      image: 'berth.local/runner',
      limits: { maxRunning: 1 },
      // The one that has its place keeps it, however long all this takes.
      minIdle: 1,
      overrides: ['agent.command'],
    });
    await cluster.create('holds', { class: 'small', agent: { command: ['true'] } });
    await cluster.until('holds', 'is ready', ({ status }) => status?.phase === 'Ready');
    await cluster.create('waits', { class: 'small', agent: { command: ['true'] } });
    await cluster.until('waits', 'waits', ({ status }) => status?.queue?.reason === 'AtCapacity');
    await eventually(async () => (await read('berth_queue_length'))['{reason="AtCapacity"}'] === 1, {
      what: 'the one that waits is told of',
    });
    assert.equal((await read('berth_sessions'))['{phase="Queued"}'], 1);
    assert.equal((await read('berth_class_slots_used'))['{class="small"}'], 1);
    assert.deepEqual(await read('berth_class_slots_limit'), { '{class="small"}': 1 });
    assert.deepEqual(await read('berth_slots_limit'), { '': 7 });
    assert.ok(((await read('berth_slots_used'))[''] ?? 0) >= 1);
    // A runner may answer before the kubelet has said that its pod runs.
    await eventually(async () => ((await read('berth_pods'))['{phase="Running"}'] ?? 0) >= 1, { what: 'a pod runs' });
    assert.deepEqual(await read('berth_leader'), { '': 1 });
    assert.ok(((await read('berth_reconcile_duration_seconds_count'))[''] ?? 0) > 0);
    assert.ok(((await read('berth_api_requests_total'))['{verb="update",code="200"}'] ?? 0) > 0);
  });

  test('a frame that is not of the pod is refused and counted', async () => {
    const before = (await read('berth_frames_refused_total'))['{reason="foreign"}'] ?? 0;
    await cluster.create('forger', { agent });
    await cluster.turn('forger', 'forged', FORGE);
    const turn = await cluster.ended('forged');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
    const after = await read('berth_frames_refused_total');
    assert.equal(after['{reason="foreign"}'], before + 1);
  });

  test('no name that a user chooses stands in them', async () => {
    await cluster.create('secret-project', { class: 'no-such-class' });
    await cluster.turn('secret-project', 'secret-turn', null);
    await cluster.cancel('secret-turn');
    await cluster.ended('secret-turn');
    assert.doesNotMatch(await metricsOf(controller), /secret-|no-such-class/);
  });

  test('a controller that does not lead says so, and counts no objects', async () => {
    const second = cluster.startController();
    const text = await eventually(() => metricsOf(second), { what: 'the second answers' });
    assert.deepEqual(samplesOf(text, 'berth_leader'), { '': 0 });
    for (const metric of [
      'berth_sessions',
      'berth_pods',
      'berth_slots_used',
      'berth_slots_limit',
      'berth_turns_total',
    ]) {
      assert.deepEqual(samplesOf(text, metric), {}, metric);
    }
    await second.kill('SIGKILL');
  });
});
