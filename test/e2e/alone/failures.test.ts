import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  apply,
  ended,
  get,
  kubectl,
  leadingPod,
  makeNamespace,
  releaseNamespace,
  said,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { pythonAgent, pythonImage } from '../support/images.ts';
import { killOnNode, processes, signal } from '../support/node.ts';

const agent = { image: pythonImage, agent: { command: pythonAgent } };
/** The turn once its program may have begun; where one looks too seldom it has ended by then. */
const begun = (namespace: string, name: string) =>
  until(namespace, 'turn', name, ({ status }) => status?.podUID && status.phase !== 'Queued');

describe('failures in the middle of a turn', () => {
  test('a pod that is killed gives PodLost, and the next turn goes on from the last committed state', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { note: 'kept' }));
    await ended(namespace, 'py-1');
    await apply(turn(namespace, 'py-2', 'py', { note: 'lost', sleep: 600 }));
    const { items } = await get(['pods', '-n', namespace]);
    // A turn is Running before its runner has it, and would be given again if that was lost until then.
    await said(namespace, items[0].metadata.name, 'noted lost');
    await signal('KILL', await processes('/opt/berth/runner', items[0].metadata.name));
    const lost = await ended(namespace, 'py-2');
    assert.equal(lost.status.phase, 'Failed');
    assert.equal(lost.status.error.code, 'PodLost');
    await apply(turn(namespace, 'py-3', 'py', { note: 'next' }));
    const { status } = await ended(namespace, 'py-3');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output.notes, ['kept', 'next']);
  });

  test('a turn ends exactly once when the controller is killed with SIGKILL under it', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { note: 'one', sleep: 10 }));
    const first = await begun(namespace, 'py-1');
    await killOnNode('/opt/berth/controller.mjs');
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.equal(status.attempt, 1);
    assert.equal(status.podUID, first.status.podUID);
    await apply(turn(namespace, 'py-2', 'py', {}));
    const next = await ended(namespace, 'py-2');
    assert.deepEqual(next.status.output.notes, ['one'], 'the agent ran once');
    assert.equal(next.status.podUID, first.status.podUID);
  });

  test('a turn goes on while the controller’s pod is deleted and another takes over', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { note: 'one', sleep: 10 }));
    await begun(namespace, 'py-1');
    const { metadata } = await leadingPod();
    await kubectl(['delete', 'pod', metadata.name, '-n', releaseNamespace, '--wait=false']);
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output.notes, ['one']);
    assert.equal(status.attempt, 1);
  });
});
