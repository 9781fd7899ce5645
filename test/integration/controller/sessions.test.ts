import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Installation, pythonAgent } from '../../support/installation.ts';

const COUNTER = pythonAgent(`
path = state + '/count'
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
print('some noise')
answer({'count': count, 'input': request['input'], 'incarnation': request['session']['incarnation']})
print('more noise')
`);

describe('sessions on the embedded cluster', () => {
  let cluster: Installation;
  before(async () => {
    cluster = await Installation.start();
    cluster.startController();
  });
  after(() => cluster.stop());

  test('a turn runs in a pod and its answer is in its status', async () => {
    await cluster.create('first', { agent: COUNTER });
    await cluster.turn('first', 'first-1', { n: 3 });
    const turn = await cluster.ended('first-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
    assert.deepEqual(turn.status?.output, { count: 1, input: { n: 3 }, incarnation: 1 });
    assert.equal(turn.status?.log?.inline, 'some noise\nmore noise\n');
  });
});
