import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { countPods } from '../../support/pod-count.ts';

const ECHO = pythonAgent('answer(request["input"])\n');

describe('a maximum of running sessions', () => {
  const cluster = installed({ BERTH_MAX_RUNNING: '5' });
  let controller: ControllerProcess;
  afterEach(() => controller.kill('SIGKILL'));

  test('is never exceeded, however many creates race, also while the controller is killed', async () => {
    controller = cluster.startController();
    const pods = await countPods(cluster);
    // No agent ends before all slots were seen taken: the speed at which pods come and go varies.
    const released = join(cluster.home, 'released');
    const agent = pythonAgent(`while not os.path.exists('${released}'): time.sleep(0.05)\nanswer(request["input"])\n`);
    const names = Array.from({ length: 40 }, (_, index) => `race-${index}`);
    await Promise.all(names.map((name) => cluster.create(name, { agent, turns: 'One', input: name })));
    await eventually(() => pods.most() === 5, { what: 'five pods' });
    writeFileSync(released, '');
    await cluster.ended('race-3', 120_000);
    await controller.kill('SIGKILL');
    controller = cluster.startController();
    for (const name of names) assert.equal((await cluster.ended(name, 120_000)).status?.output, name);
    assert.equal(await pods.stop(), 5);
  });

  test('counts those that are woken too', async () => {
    controller = cluster.startController();
    const names = Array.from({ length: 8 }, (_, index) => `woken-${index}`);
    for (const group of [names.slice(0, 5), names.slice(5)]) {
      await Promise.all(group.map((name) => cluster.create(name, { agent: ECHO })));
      for (const name of group) {
        await cluster.until(name, 'ready', ({ status }) => status?.phase === 'Ready');
        await cluster.patch(name, { suspendRequest: 'now' });
      }
      for (const name of group) {
        await cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');
      }
    }
    const pods = await countPods(cluster);
    await Promise.all(names.map((name) => cluster.turn(name, `${name}-1`, name)));
    // Sessions whose turn ends first become idle and are preempted for the others.
    for (const name of names) assert.equal((await cluster.ended(`${name}-1`, 120_000)).status?.output, name);
    assert.equal(await pods.stop(), 5);
  });
});
