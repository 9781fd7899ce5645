import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import type { Event } from '../../../core/kube/builtin.ts';
import { leases } from '../../../core/kube/resources.ts';
import { type SessionPool, sessionpools, sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ATTACKS } from '../../support/hostile-pod/attacks.ts';
import { HOSTILE_IMAGES, hostileClass } from '../../support/hostile-pod/images.ts';
import { type ControllerProcess, Installation, ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { metricsOf, samplesOf } from '../../support/metrics.ts';
import { peakMemory } from '../../support/processes.ts';

const MiB = 1024 * 1024;
const PODS = 30;
const HONEST = 4;
const TURNS = 2;

/** Changes 3 MB of its state that cannot be compressed; its output is the number of its turns. */
const agent = {
  command: ['/bin/sh', '-c'],
  args: [
    'head -c 3000000 /dev/urandom > "$BERTH_STATE_DIR/big"; echo x >> "$BERTH_STATE_DIR/n"; wc -l < "$BERTH_STATE_DIR/n"',
  ],
  result: 'Text' as const,
};

/** Memory limit of the controller in the chart, bytes. */
function chartLimit(): number {
  const values = readFileSync(join(import.meta.dirname, '../../../charts/berth/values.yaml'), 'utf8');
  const gib = /\ncontroller:\n(?: .*\n|\n)*? +limits: \{memory: (\d+)Gi[,}]/.exec(values)?.[1];
  assert.ok(gib, 'the chart limits the memory of the controller in Gi');
  return Number(gib) * 1024 * MiB;
}

describe(`beside hostile pods of every kind, ${PODS} pods in all`, () => {
  // The lease is that of an installation.
  const cluster = installed({ BERTH_LEASE_DURATION: '15s' }, { images: HOSTILE_IMAGES });
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  const leader = async () => {
    const { spec } = await cluster.client.get(leases, { namespace: 'berth-system', name: 'berth-controller' });
    return { holder: spec?.holderIdentity, transitions: spec?.leaseTransitions };
  };

  test('the turns of honest sessions succeed, the leader stays the same, its memory stays below the limit', async () => {
    const attacks = Object.keys(ATTACKS);
    const honest = Array.from({ length: HONEST }, (_, index) => `honest-${index}`);
    const hostile = Array.from({ length: PODS - HONEST }, (_, index) => ({
      attack: attacks[index % attacks.length] as string,
      name: `hostile-${index}`,
    }));
    await Promise.all(attacks.map((attack) => cluster.createClass(attack, hostileClass(attack))));
    const turnsOfAll = async (number: number) => {
      for (const name of honest) await cluster.turn(name, `${name}-${number}`, null);
      for (const name of honest) {
        const { status } = await cluster.ended(`${name}-${number}`);
        const how = [status?.phase, status?.output, status?.attempt];
        assert.deepEqual(how, ['Succeeded', `${number}\n`, 1], `${name}: ${JSON.stringify(status)}`);
      }
    };
    for (const name of honest) await cluster.create(name, { agent });
    await turnsOfAll(1);
    const before = await leader();

    for (const { attack, name } of hostile) {
      await cluster.create(name, { class: attack });
      await cluster.turn(name, name, null, { timeout: '1h' });
    }
    for (let number = 2; number < 2 + TURNS; number++) await turnsOfAll(number);
    // Each attack has come to the controller by now, or does while the honest ones go on.
    const isTold = await eventually(
      async () => {
        const text = await metricsOf(controller);
        const refused = samplesOf(text, 'berth_frames_refused_total');
        const [pauses = 0] = Object.values(samplesOf(text, 'berth_pod_pauses_total'));
        const isRefused = ['torn', 'early', 'repeated'].every((reason) => (refused[`{reason="${reason}"}`] ?? 0) > 0);
        const { items } = await cluster.client.list(sessions, { namespace: 'default' });
        const haveRun = hostile.every(({ name }) =>
          items.some(({ metadata, status }) => metadata.name === name && (status?.incarnation ?? 0) > 0),
        );
        const died = items.some(({ status }) => (status?.turns?.failed ?? 0) > 0);
        return pauses > PODS && isRefused && haveRun && died;
      },
      { what: 'every hostile pod has run, some are paused, and some have died' },
    );
    assert.ok(isTold);
    await turnsOfAll(2 + TURNS);

    assert.deepEqual(await leader(), before);
    assert.deepEqual([controller.child.exitCode, controller.child.signalCode], [null, null]);
    const peak = peakMemory(controller.child.pid as number);
    assert.ok(peak < chartLimit(), `${Math.round(peak / MiB)} MiB`);
  });
});

test('a pool whose pod prints without end before a session has it has an event that says so', async () => {
  const cluster = new Installation(ONE_LEADER, HOSTILE_IMAGES);
  try {
    await cluster.begin();
    cluster.startController();
    await cluster.createClass('floods', hostileClass('from-start'));
    const metadata = { name: 'pool', namespace: 'default' };
    const pool = await cluster.client.create(sessionpools, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionPool',
      metadata,
      spec: { class: 'floods', replicas: 1 },
    } as SessionPool);
    const event = (await cluster.event('pool', 'OutputThrottled')) as Event;
    const { kind, uid } = event.involvedObject;
    assert.deepEqual([kind, uid, event.type], ['SessionPool', pool.metadata.uid, 'Warning']);
    assert.match(event.message ?? '', /^Pod p-[0-9a-f-]+-\d+ prints more/);
  } finally {
    await cluster.stop();
  }
});
