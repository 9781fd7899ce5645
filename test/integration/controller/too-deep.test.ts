import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const agent = { command: ['cat'], input: 'Text', result: 'Text' } as const;
/** Input nested almost as deep as the embedded cluster takes. */
const POISON = JSON.parse('['.repeat(900) + ']'.repeat(900)) as never;

describe('a turn whose input is nested hundreds deep, made with kubectl', () => {
  const cluster = installed({ ...ONE_LEADER }, { controller: true });
  beforeAll(async () => {
    for (const name of ['notes', 'other']) await cluster.create(name, { agent } as never);
  });

  test('fails as InputTooDeep with the path, and the other turns of its session and of others succeed', async () => {
    await cluster.turn('notes', 'before', 'x');
    await cluster.turn('notes', 'poison', POISON);
    await cluster.turn('notes', 'behind', 'y');
    await cluster.turn('other', 'elsewhere', 'z');
    for (const name of ['before', 'behind', 'elsewhere']) {
      assert.equal((await cluster.ended(name)).status?.phase, 'Succeeded', name);
    }
    const { status } = await cluster.ended('poison');
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'InputTooDeep']);
    assert.match(status?.error?.message ?? '', /^spec\.input: more than 64 .* at spec\.input\[0\]\[0\]/);
  });

  test('is cancelled while it waits for a session that does not exist', async () => {
    await cluster.turn('nobody', 'waits', POISON);
    await cluster.client.patch(turns, { namespace: 'default', name: 'waits' }, { spec: { cancel: true } });
    assert.equal((await cluster.ended('waits')).status?.phase, 'Cancelled');
  });

  test('deeper than the embedded cluster takes is refused, and it goes on', async () => {
    const deeper = JSON.parse('['.repeat(2_500) + ']'.repeat(2_500)) as never;
    await assert.rejects(cluster.turn('notes', 'deeper', deeper), { code: 400, message: /exceeded max depth/ });
    await cluster.turn('notes', 'last', 'x');
    assert.equal((await cluster.ended('last')).status?.phase, 'Succeeded');
  });
});
