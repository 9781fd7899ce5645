import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import { NODE_FLAGS } from '../../../core/program/node-flags.ts';
import { eventually } from '../../support/eventually.ts';
import { Installation, ONE_LEADER, pythonAgent } from '../../support/installation.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Argument of Node with which a program speaks this protocol version. */
const speaking = (protocol: number) =>
  `--import=${pathToFileURL(join(ROOT, 'test/support/other-protocol.ts'))}?protocol=${protocol}`;

const runnerSpeaking = (protocol: number) => ({
  entrypoint: [process.execPath, ...NODE_FLAGS, speaking(protocol), join(ROOT, 'runner/main.ts')],
});

/** Adds its input to the notes in its state and returns them; an input with `until` waits for that file to exist. */
const agent = pythonAgent(`
given = request['input']
while 'until' in given and not os.path.exists(given['until']): time.sleep(0.02)
with open(state + '/notes', 'a') as notes: notes.write(given['note'] + '\\n')
answer(open(state + '/notes').read().split())
`);

describe('a controller that takes over from one of another release', () => {
  let cluster: Installation;
  beforeAll(async () => {
    cluster = await Installation.start(ONE_LEADER, {
      'berth.local/runner-1': runnerSpeaking(PROTOCOL_VERSION - 1),
      'berth.local/runner-2': runnerSpeaking(PROTOCOL_VERSION - 2),
    });
  });
  afterAll(() => cluster.stop());

  /** A controller of a release that is so many protocol versions older, with its runner image. */
  const start = (older: number) =>
    cluster.startController(
      older === 0
        ? {}
        : { NODE_OPTIONS: speaking(PROTOCOL_VERSION - older), BERTH_RUNNER_IMAGE: `berth.local/runner-${older}` },
    );
  const outdated = async (session: string) =>
    (await cluster.session(session)).status?.conditions?.find(({ type }) => type === 'Outdated');

  test('lets a runner that it does not understand end its turn, suspends it and starts the next turn in a new pod', async () => {
    const before = start(2);
    const go = join(cluster.home, 'go');
    await cluster.create('old', { agent });
    await cluster.turn('old', 'old-1', { note: 'one' });
    const first = await cluster.ended('old-1');
    await cluster.turn('old', 'old-2', { note: 'two', until: go });
    await cluster.turnUntil(
      'old-2',
      'runs',
      ({ status }) => status?.phase === 'Running' && status.startedAt !== undefined,
    );
    await cluster.turn('old', 'old-3', { note: 'three' });
    await before.kill('SIGTERM');

    const after = start(0);
    await eventually(async () => (await outdated('old'))?.reason === 'RunnerOutdated', {
      what: 'the session is Outdated',
    });
    assert.match(
      (await outdated('old'))?.message ?? '',
      new RegExp(`speaks protocol ${PROTOCOL_VERSION - 2}, the controller ${PROTOCOL_VERSION}`),
    );
    assert.equal((await cluster.turnUntil('old-2', 'is there', () => true)).status?.phase, 'Running');
    writeFileSync(go, '');
    const second = await cluster.ended('old-2');
    const third = await cluster.ended('old-3');
    assert.deepEqual(
      [second, third].map(({ status }) => [status?.phase, status?.attempt, status?.incarnation, status?.output]),
      [
        ['Succeeded', 1, 1, ['one', 'two']],
        ['Succeeded', 1, 2, ['one', 'two', 'three']],
      ],
    );
    assert.equal(second.status?.podUID, first.status?.podUID);
    assert.equal((await outdated('old'))?.reason, 'UpToDate');
    await after.kill('SIGTERM');
  });

  test('goes on with a runner that is one version older, in its pod', async () => {
    const before = start(1);
    await cluster.create('near', { agent });
    await cluster.turn('near', 'near-1', { note: 'one' });
    const first = await cluster.ended('near-1');
    await before.kill('SIGTERM');
    const after = start(0);
    await cluster.turn('near', 'near-2', { note: 'two' });
    const { status } = await cluster.ended('near-2');
    assert.deepEqual([status?.output, status?.podUID], [['one', 'two'], first.status?.podUID]);
    assert.equal(await outdated('near'), undefined);
    await after.kill('SIGTERM');
  });

  test('gives up a pod that was to be bound by the release before, and starts its session with the runner of its own', async () => {
    // A cordoned node starts no pod, so the upgrade comes before the binding.
    const before = start(2);
    await cluster.cordon(true);
    await cluster.create('cold', { agent });
    await cluster.until('cold', 'has a pod', ({ status }) => status?.podUID !== undefined);
    await before.kill('SIGTERM');
    await cluster.cordon(false);
    const after = start(0);
    await cluster.turn('cold', 'cold-1', { note: 'one' });
    const { status } = await cluster.ended('cold-1');
    assert.deepEqual([status?.phase, status?.incarnation, status?.attempt], ['Succeeded', 2, 1]);
    await after.kill('SIGTERM');
  });
});
