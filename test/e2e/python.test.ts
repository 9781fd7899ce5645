import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apply, ended, get, kubectl, makeNamespace, session, turn, until } from './support/cluster.ts';
import { pythonAgent, pythonImage } from './support/images.ts';

const agent = { image: pythonImage, agent: { command: pythonAgent } };

describe('an agent written in Python', () => {
  test('its envelope is found among whatever else it prints, and the rest is kept as log', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { numbers: [1, 2, 39], note: 'a' }));
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, { notes: ['a'], sum: 42, turn: 'py-1' });
    assert.equal(status.turnCount, 1);
    assert.match(status.log.inline, /loading model/);
    assert.match(status.log.inline, /thread still talking/);
    assert.match(status.log.inline, /api key: \[REDACTED\]/);
    assert.doesNotMatch(status.log.inline, /sk-abc/);
  });

  test('an error in its envelope is the error of the turn', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { fail: 'no such model' }));
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Failed');
    assert.match(status.error.message, /no such model/);
  });

  test('a suspended session wakes for a turn with its state intact', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'py', agent), turn(namespace, 'py-1', 'py', { note: 'before' }));
    await ended(namespace, 'py-1');
    const patch = JSON.stringify({ spec: { suspend: true } });
    await kubectl(['patch', 'session', 'py', '-n', namespace, '--type=merge', '-p', patch]);
    await until(namespace, 'session', 'py', ({ status }) => status.phase === 'Suspended');
    assert.deepEqual((await get(['pods', '-n', namespace])).items, []);

    await apply(turn(namespace, 'py-2', 'py', { note: 'after' }));
    const held = await until(namespace, 'turn', 'py-2', ({ status }) => /Held/.test(JSON.stringify(status.conditions)));
    assert.equal(held.status.phase, 'Queued');
    await kubectl(['patch', 'session', 'py', '-n', namespace, '--type=merge', '-p', '{"spec":{"suspend":false}}']);
    const { status } = await ended(namespace, 'py-2');
    assert.deepEqual(status.output.notes, ['before', 'after']);
    assert.equal(status.incarnation, 2);
  });
});
