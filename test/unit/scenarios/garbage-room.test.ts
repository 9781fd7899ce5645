import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { blobs, ownedBy, type StoredSession, sessions, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

const SECOND = 1_000;
const HALF = 130_000;

/** A controller whose store has 260,000 bytes, half of them for the one namespace that stores anything. */
async function world(options: { garbageSeconds?: number } = {}): Promise<QuietWorld> {
  const made = new QuietWorld({ garbageSeconds: 600, storeCeilingBytes: 2 * HALF, ...options });
  await made.start();
  return made;
}

const bytesIn = (made: QuietWorld) =>
  made.server.list(blobs).reduce((sum, { spec }) => sum + (spec as { data: string }).data.length, 0);
const kinds = (made: QuietWorld) => made.server.list(blobs).map(({ spec }) => (spec as { kind: string }).kind);
const session = (made: QuietWorld, name: string) => made.session(name, { timeouts: { idle: '24h' } });

async function turn(made: QuietWorld, of: StoredSession, name: string, more: object): Promise<string | undefined> {
  const { status } = await made.turn(of, name, { ms: 10, output: 1, ...more });
  return isTerminal(status?.phase) ? (status?.error?.code ?? status?.phase) : undefined;
}

describe('a namespace that has used its share', () => {
  test('loses superseded states at once, so that a busy session stores every state and holds few', async () => {
    const made = await world();
    const busy = await session(made, 'busy');
    let most = 0;
    for (let at = 1; at <= 40; at++) {
      assert.equal(await turn(made, busy, `t-${at}`, { state: 15_000 }), 'Succeeded');
      most = Math.max(most, bytesIn(made));
    }
    assert.ok(most < HALF, `${most} bytes at most`);
    await made.pass(10 * SECOND);
    assert.ok(bytesIn(made) < HALF / 2 + 25_000, `${bytesIn(made)} bytes at rest`);
  });

  test('gives up its oldest history for a state, and never the last turn of a session', async () => {
    const made = await world();
    const [lone, quiet, writer] = [
      await session(made, 'lone'),
      await session(made, 'quiet'),
      await session(made, 'writer'),
    ];
    assert.equal(await turn(made, lone, 'lone-1', { leaves: [11_000] }), 'Succeeded');
    await made.pass(5 * SECOND);
    for (let at = 1; at <= 5; at++) assert.equal(await turn(made, quiet, `q-${at}`, { leaves: [11_000] }), 'Succeeded');
    await made.pass(5 * SECOND);
    assert.deepEqual(kinds(made), Array(6).fill('Artifacts'));
    const growing = [await session(made, 'other'), writer];
    for (const each of growing)
      assert.equal(await turn(made, each, `of-${each.metadata.name}`, { state: 20_000 }), 'Succeeded');
    const kept = made.server.list(turns).map(({ metadata }) => metadata.name);
    assert.deepEqual(kept.sort(), ['lone-1', 'of-other', 'of-writer', 'q-3', 'q-4', 'q-5']);
    assert.equal(kinds(made).filter((kind) => kind === 'State').length, 2);
  });

  test('is refused a state only once nothing may give way', async () => {
    const made = await world();
    const full: string[] = [];
    for (let at = 1; at <= 5; at++) {
      const each = await session(made, `s-${at}`);
      full.push((await turn(made, each, `t-${at}`, { state: 22_000 })) ?? '');
    }
    assert.deepEqual(full, ['Succeeded', 'Succeeded', 'Succeeded', 'Succeeded', 'StateNotStored']);
    assert.ok(bytesIn(made) <= HALF);
  });
});

test('where no turn could give way, turns are not read for every write', async () => {
  const made = await world();
  const writer = await session(made, 'writer');
  assert.equal(await turn(made, writer, 'last', { leaves: [15_000] }), 'Succeeded');
  const others = [];
  for (const name of ['a', 'b', 'c']) others.push(await session(made, name));
  for (const each of others) await turn(made, each, `of-${each.metadata.name}`, { state: 22_000 });
  const late = [];
  for (const name of ['d', 'e', 'f']) late.push(await session(made, name));
  // What refused turns of a session read of it is left out.
  const reads = () => made.calls.filter((call) => call === 'list turns').length;
  const before = reads();
  for (const each of late)
    assert.equal(await turn(made, each, `of-${each.metadata.name}`, { state: 24_000 }), 'StateNotStored');
  assert.ok(reads() - before <= 1, `${reads() - before} lists`);
});

test('a turn that would find no room waits before it runs, and runs once there is some', async () => {
  const made = await world();
  const writer = await session(made, 'writer');
  assert.equal(await turn(made, writer, 'w-1', { leaves: [25_000] }), 'Succeeded');
  for (const name of ['a', 'b', 'c']) {
    const each = await session(made, name);
    assert.equal(await turn(made, each, `of-${name}`, { state: 22_000 }), 'Succeeded');
  }
  await made.give('w-2', { ms: 10, output: 1, leaves: [25_000] }, 'writer', { ownerReferences: [ownedBy(writer)] });
  const look = () => made.server.get(turns, 'team', 'w-2')?.status;
  const shown = () => look()?.conditions?.find(({ type }) => type === 'Finished');
  await made.until('the wait', () => shown()?.reason === 'StoreShareUsed');
  assert.match(shown()?.message ?? '', /^Namespace "team" holds \d+ bytes of the store, and its share is 130000;/);
  await made.pass(5 * 60 * SECOND);
  assert.deepEqual([look()?.phase, look()?.attempt], ['Queued', undefined]);
  await made.server.admin.delete(sessions, { namespace: 'team', name: 'a' });
  await made.until('its end', () => isTerminal(look()?.phase));
  assert.equal(look()?.phase, 'Succeeded');
});

test('a namespace with room keeps superseded states for their minute', async () => {
  const made = await world({ garbageSeconds: 10 });
  const one = await session(made, 'one');
  for (const name of ['a', 'b']) await turn(made, one, name, { state: 10_000 });
  await made.pass(40 * SECOND);
  assert.equal(kinds(made).length, 2);
});
