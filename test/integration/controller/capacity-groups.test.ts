import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { type StoredSession, turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { countRunning } from '../../support/pod-count.ts';

describe('a concurrency group', () => {
  const cluster = installed();
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  test('runs four turns at once by default, refuses none and starts none twice, also when the controller is killed', async () => {
    const folder = (name: string) => {
      mkdirSync(join(cluster.home, name));
      return join(cluster.home, name);
    };
    const [present, begun, released] = [folder('present'), folder('begun'), folder('released')];
    // Every agent says how many it saw beside it, itself included, and leaves a file for every time it was started.
    const agent = pythonAgent(`
name = request['input']
open('${begun}/%s.%d' % (name, os.getpid()), 'w').close()
open('${present}/' + name, 'w').close()
most = 0
while True:
    most = max(most, len(os.listdir('${present}')))
    if os.path.exists('${released}/all'): break
    time.sleep(0.02)
time.sleep(0.3)
most = max(most, len(os.listdir('${present}')))
os.remove('${present}/' + name)
answer(most)
`);
    const running = await countRunning(cluster);
    const names = Array.from({ length: 9 }, (_, index) => `member-${index}`);
    const group = { concurrencyGroup: { name: 'parent' } } as object;
    await Promise.all(names.map((name) => cluster.create(name, { agent, turns: 'One', input: name, ...group })));
    await eventually(() => readdirSync(present).length === 4, { what: 'four agents at work' });

    const waiting = await eventually(
      async () => {
        const { items } = await cluster.client.list(turns, { namespace: 'default' });
        const limited = items.filter(({ status }) => status?.conditions?.some(({ reason }) => reason === 'GroupLimit'));
        return limited.length === 5 ? limited : undefined;
      },
      { what: 'five turns that wait for the group' },
    );
    for (const { status, spec } of waiting) {
      assert.equal(status?.phase, 'Queued');
      assert.match(String(status?.conditions?.[0]?.message), /^Concurrency group "parent" runs 4 turns at once/);
      const isQueued = ({ status }: StoredSession) => status?.queue?.reason === 'GroupLimit';
      const session = await cluster.until(spec.session, 'queued', isQueued);
      assert.equal(session.status?.podName, undefined, 'it takes no running slot meanwhile');
    }

    await controller.kill('SIGKILL');
    controller = cluster.startController();
    writeFileSync(join(released, 'all'), '');
    for (const name of names) {
      const { status } = await cluster.ended(name, 120_000);
      assert.equal(status?.phase, 'Succeeded', `${name}: ${status?.error?.message}`);
      assert.ok(Number(status?.output) <= 4, `${name} saw ${status?.output}`);
    }
    assert.ok((await running.stop()) <= 4);
    assert.deepEqual(
      readdirSync(begun)
        .map((file) => file.split('.')[0])
        .sort(),
      [...names].sort(),
    );
  });

  test('obeys the lowest limit of its sessions, for turns of sessions that have their pods', async () => {
    const agent = pythonAgent('time.sleep(0.2)\nanswer()\n');
    for (const [name, limit] of [
      ['generous', 4],
      ['strict', 1],
    ] as const) {
      await cluster.create(name, { agent, concurrencyGroup: { name: 'mixed', limit } });
      await cluster.until(name, 'ready', ({ status }) => status?.phase === 'Ready');
    }
    const running = await countRunning(cluster);
    const given = ['generous', 'strict'].flatMap((session) =>
      [1, 2, 3].map((n) => ({ session, name: `${session}-${n}` })),
    );
    await Promise.all(given.map(({ session, name }) => cluster.turn(session, name, null)));
    for (const { name } of given) assert.equal((await cluster.ended(name)).status?.phase, 'Succeeded');
    assert.equal(await running.stop(), 1);
  });
});
