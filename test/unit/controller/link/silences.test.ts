import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Silences } from '../../../../controller/link/silences.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function setUp() {
  const clock = new VirtualClock();
  const silences = new Silences(clock);
  const [first, second, third] = [{}, {}, {}];
  const heard = (node: string, runner: object) => {
    silences.heard(node, runner);
    silences.update(node, runner, false);
  };
  return { clock, silences, first, second, third, heard };
}

test('a node is silent while another of its runners owes an answer for five seconds, and none is heard', async () => {
  const { clock, silences, first, second, third } = setUp();
  silences.update('node-1', first, true);
  silences.update('node-2', third, true);
  await clock.advance(60_000);
  assert.equal(silences.of('node-1', first).nodeSilent, false, 'alone on its node');
  silences.update('node-1', second, true);
  await clock.advance(4_999);
  assert.deepEqual(
    [silences.of('node-1', first).nodeSilent, silences.of('node-1', second).nodeSilent],
    [false, true],
    'most answers take milliseconds',
  );
  await clock.advance(1);
  assert.equal(silences.of('node-1', first).nodeSilent, true);
  silences.update('node-1', second, false);
  assert.equal(silences.of('node-1', first).nodeSilent, false);
});

test('what a runner owes counts from the end of the silence of its node', async () => {
  const { clock, silences, first, second, heard } = setUp();
  silences.update('node-1', first, true);
  silences.update('node-1', second, true);
  await clock.advance(55_000);
  const answered = clock.monotonic();
  heard('node-1', second);
  assert.deepEqual(silences.of('node-1', first), { nodeSilent: false, nodeAnsweredAt: answered });
  await clock.advance(10_000);
  silences.update('node-1', second, true);
  await clock.advance(10_000);
  heard('node-1', second);
  assert.deepEqual(silences.of('node-1', first), { nodeSilent: false, nodeAnsweredAt: answered }, 'the first counts');
});

test('what a runner owes counts from its beginning where its node was not silent', async () => {
  const { clock, silences, first, second, heard } = setUp();
  silences.update('node-1', first, true);
  const since = clock.monotonic();
  await clock.advance(20_000);
  silences.update('node-1', second, true);
  await clock.advance(10);
  heard('node-1', second);
  assert.deepEqual(silences.of('node-1', first), { nodeSilent: false, nodeAnsweredAt: since });
});

test('a runner that is heard owes nothing, and the next silence is another one', async () => {
  const { clock, silences, first, second, heard } = setUp();
  for (const one of [first, second]) silences.update('node-1', one, true);
  await clock.advance(10_000);
  for (const one of [second, first]) heard('node-1', one);
  silences.update('node-1', first, true);
  await clock.advance(10_000);
  assert.deepEqual(silences.of('node-1', first), { nodeSilent: false, nodeAnsweredAt: undefined });
});

test('a runner whose node becomes known after its attach was open keeps no node silent for ever', async () => {
  const { clock, silences, first, second, third, heard } = setUp();
  silences.update('', first, true);
  await clock.advance(10_000);
  assert.equal(silences.of('', second).nodeSilent, false, 'pods of nodes that are not known may be anywhere');
  heard('node-1', first);
  await clock.advance(60_000);
  assert.equal(silences.of('', third).nodeSilent, false);
  silences.update('node-1', first, true);
  silences.update('node-2', first, true);
  await clock.advance(5_000);
  assert.deepEqual(
    [silences.of('node-1', second).nodeSilent, silences.of('node-2', second).nodeSilent],
    [false, true],
    'a runner is on one node',
  );
});
