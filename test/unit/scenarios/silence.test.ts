import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type StoredSession, type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

/** A world with sessions that are ready, all on one node. */
async function onOneNode(): Promise<{ world: QuietWorld; together: StoredSession[] }> {
  const world = new QuietWorld();
  await world.start();
  const ready: StoredSession[] = [];
  for (let i = 0; i < 6; i++) ready.push(await world.session(`s-${i}`));
  const together = ready.filter((session) => world.nodeOf(session) === world.nodeOf(ready[0] as StoredSession));
  assert.ok(together.length >= 2, `${together.length} on one node`);
  return { world, together };
}

const turnOf = (world: QuietWorld, { metadata: { name } }: StoredSession) =>
  world.server.get(turns, 'team', `turn-of-${name}`) as StoredTurn;

const give = (world: QuietWorld, { metadata: { name } }: StoredSession) =>
  world.give(`turn-of-${name}`, { ms: 10, output: 1 }, name);

test('turns go on in their pods after none of their node has answered for less than BERTH_NODE_GRACE', async () => {
  const { world, together } = await onOneNode();
  for (const session of together) {
    world.freeze(session, 55_000);
    await give(world, session);
  }
  await world.until('the turns', () => together.every((session) => isTerminal(turnOf(world, session).status?.phase)));
  for (const session of together) {
    const { phase, attempt, podUID } = turnOf(world, session).status ?? {};
    assert.deepEqual([phase, attempt, podUID], ['Succeeded', 1, session.status?.podUID]);
  }
});

test('a runner that does not answer is given up after 30 seconds once another of its node has answered', async () => {
  const { world, together } = await onOneNode();
  const [silent, busy] = together as [StoredSession, StoredSession];
  world.freeze(silent, 90_000);
  const since = world.server.clock.now();
  await give(world, silent);
  await world.pass(1_000);
  await world.turn(busy, 'beside', { ms: 10, output: 1 });
  await world.until('the loss', () => isTerminal(turnOf(world, silent).status?.phase));
  const ms = world.server.clock.now() - since;
  assert.equal(turnOf(world, silent).status?.error?.code, 'PodLost');
  assert.ok(ms > 30_000 && ms < 50_000, `${ms} ms`);
});
