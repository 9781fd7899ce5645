import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, type Installation, pythonAgent } from '../../support/installation.ts';
import { testInstalled } from '../../support/installed.ts';

/** Messages that the controller logs between the effects of a turn on a new session, in order. */
const MOMENTS = ['session admitted', 'pod created', 'runner bound', 'turn committed', 'pod deleted', 'session phase'];

describe.concurrent('a controller that is killed', () => {
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'berth-crashes-'));
  });
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true });
  });

  /** Counts in its state, and writes every execution down where a test can see it. */
  const agent = () =>
    pythonAgent(`
with open('${scratch}/' + request['session']['name'], 'a') as f:
    f.write(request['turn']['name'] + chr(10))
path = state + '/count'
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
time.sleep(float(request['input']))
answer(count)
`);
  const executions = (session: string) => readFileSync(join(scratch, session), 'utf8').trim().split('\n');

  /** Kills the controller once it has logged the message, and starts the next. */
  async function killAt(
    cluster: Installation,
    controller: ControllerProcess,
    message: string,
  ): Promise<ControllerProcess> {
    await eventually(() => controller.log().includes(`"msg":"${message}"`), {
      what: `"${message}" logged`,
    });
    await controller.kill('SIGKILL');
    return cluster.startController();
  }

  for (const moment of MOMENTS) {
    testInstalled(`right after "${moment}" loses nothing and runs nothing twice`, async (cluster) => {
      const name = `at-${moment.replaceAll(' ', '-')}`;
      let controller = cluster.startController();
      await cluster.create(name, { agent: agent() });
      await cluster.turn(name, `${name}-1`, 0.3);
      await cluster.turn(name, `${name}-2`, 0);
      if (moment !== 'pod deleted') controller = await killAt(cluster, controller, moment);
      for (const number of [1, 2]) {
        const turn = await cluster.ended(`${name}-${number}`);
        assert.equal(turn.status?.output, number, JSON.stringify(turn.status));
      }
      await cluster.patch(name, { suspendRequest: 'x' });
      if (moment === 'pod deleted') controller = await killAt(cluster, controller, moment);
      await cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');
      await cluster.turn(name, `${name}-3`, 0);
      assert.equal((await cluster.ended(`${name}-3`)).status?.output, 3);
      assert.deepEqual(
        executions(name),
        [1, 2, 3].map((number) => `${name}-${number}`),
      );
      const session = await cluster.until(name, 'counted', ({ status }) => status?.turns?.total === 3);
      assert.equal(session.status?.turns?.succeeded, 3);
    });
  }

  testInstalled('again and again while turns run loses none of them and runs none twice', async (cluster) => {
    let controller = cluster.startController();
    const names = ['a', 'b', 'c'];
    for (const name of names) {
      await cluster.create(name, { agent: agent() });
      for (let turn = 1; turn <= 8; turn++) await cluster.turn(name, `${name}-${turn}`, 0.05 * turn);
    }
    for (let kills = 0; kills < 6; kills++) {
      // Each time a little further: the moments spread over whatever the controller does then.
      const committed = () => (cluster.logs().match(/"msg":"turn committed"/g) ?? []).length;
      const goal = committed() + 1;
      // The turns may be over before this test can kill the controller again.
      const isOver = async () =>
        (await cluster.client.list(turns, { namespace: 'default' })).items.every(({ status }) => status?.finishedAt);
      await eventually(async () => committed() >= goal || (await isOver()), { what: 'a turn committed' });
      await controller.kill('SIGKILL');
      controller = cluster.startController();
    }
    for (const name of names) {
      for (let turn = 1; turn <= 8; turn++) {
        const { status } = await cluster.ended(`${name}-${turn}`);
        assert.equal(status?.output, turn, `${name}-${turn}: ${JSON.stringify(status)}`);
      }
      assert.deepEqual(
        executions(name),
        Array.from({ length: 8 }, (_, index) => `${name}-${index + 1}`),
      );
    }
  });

  testInstalled('by TERM gives its lease free, so that the next one leads at once', async (cluster) => {
    const env = { BERTH_LEASE_DURATION: '10m' };
    const first = cluster.startController(env);
    await eventually(() => first.log().includes('"msg":"leading"'), { what: 'the first leads' });
    const second = cluster.startController(env);
    await eventually(() => second.log().includes('"msg":"controller started"'), { what: 'the second started' });
    await first.kill('SIGTERM');
    assert.equal(first.child.exitCode, 0);
    await eventually(() => second.log().includes('"msg":"leading"'), { what: 'the second leads' });
  });
});
