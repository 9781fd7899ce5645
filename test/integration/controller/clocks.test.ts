import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, Installation, pythonAgent } from '../../support/installation.ts';

const HOUR = 3_600_000;
/** Works for so many seconds, or until the file is there whose path it is given. */
const agent = pythonAgent(`
until = request['input']
while isinstance(until, str) and not os.path.exists(until): time.sleep(0.02)
time.sleep(0 if isinstance(until, str) else until)
answer('done')
`);

for (const jump of [HOUR, -HOUR]) {
  describe.concurrent(`a controller whose clock is set ${jump > 0 ? 'forward' : 'back'} by an hour`, () => {
    let cluster: Installation;
    let controller: ControllerProcess;
    beforeAll(async () => {
      const preload = join(import.meta.dirname, '..', '..', 'support', 'clock-jumps.ts');
      cluster = await Installation.start({
        BERTH_TEST_CLOCK_MS: String(jump),
        NODE_OPTIONS: `--import ${preload}`,
        BERTH_LEASE_DURATION: '3s',
        BERTH_GARBAGE_INTERVAL: '200ms',
      });
      controller = cluster.startController();
    });
    afterAll(() => cluster.stop());
    const set = () => controller.child.kill('SIGUSR2');

    test.sequential('ends no turn, gives up no pod and deletes no session before its time', async () => {
      await cluster.create('busy', { agent, timeouts: { turn: '5m', start: '2m', idle: '30m' } });
      await cluster.create('resting', { agent, timeouts: { idle: '30m' } });
      await cluster.create('asleep', { agent, suspendRequest: 'x', ttlAfterSuspended: '10m' });
      const released = join(cluster.home, 'released');
      await cluster.turn('busy', 'busy-1', released);
      await cluster.turnUntil('busy-1', 'runs', ({ status }) => status?.phase === 'Running');
      await cluster.until('resting', 'ready', ({ status }) => status?.phase === 'Ready');
      await cluster.until('asleep', 'suspended', ({ status }) => status?.phase === 'Suspended');
      const before = await cluster.session('resting');
      set();
      // Every session is reconciled with the new time.
      await cluster.turn('resting', 'resting-1', 0);
      await cluster.create('new', { agent });
      await cluster.patch('asleep', { suspendRequest: 'y' });
      await cluster.until('asleep', 'looked at', ({ status }) => status?.suspendHandled?.id === 'y');
      await cluster.until('new', 'ready', ({ status }) => status?.phase === 'Ready');
      assert.equal((await cluster.ended('resting-1')).status?.phase, 'Succeeded');
      writeFileSync(released, '');
      assert.equal((await cluster.ended('busy-1')).status?.phase, 'Succeeded');
      const after = await cluster.session('resting');
      assert.equal(after.status?.podUID, before.status?.podUID);
    });

    test.sequential('writes times that the rest of the cluster can compare', async () => {
      const turn = await cluster.turnUntil('resting-1', 'has ended', ({ status }) => status?.phase === 'Succeeded');
      for (const { lastTransitionTime } of turn.status?.conditions ?? []) {
        assert.ok(Math.abs(Date.parse(lastTransitionTime) - Date.now()) < HOUR / 2, lastTransitionTime);
      }
    });

    test.sequential('still ends what is due', async () => {
      await cluster.create('stuck', { agent, image: 'there.is/none', timeouts: { start: '2s' } });
      await cluster.turn('stuck', 'stuck-1', 0);
      assert.equal((await cluster.ended('stuck-1')).status?.phase, 'Failed');
      await cluster.create('late', { agent, timeouts: { turn: '1s' } });
      await cluster.turn('late', 'late-1', 60);
      assert.equal((await cluster.ended('late-1')).status?.phase, 'TimedOut');
    });

    test.sequential('and is started anew knows no other time than the cluster', async () => {
      await controller.kill('SIGKILL');
      controller = cluster.startController();
      await eventually(() => controller.log().includes('"msg":"leading"'));
      set();
      await cluster.turn('busy', 'busy-2', 0);
      assert.equal((await cluster.ended('busy-2')).status?.phase, 'Succeeded');
    });
  });
}
