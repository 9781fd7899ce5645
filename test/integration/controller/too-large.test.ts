import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { events } from '../../../core/kube/resources.ts';
import { turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const agent = { command: ['cat'], input: 'Text', result: 'Text' } as const;
/** Bytes that etcd takes in one request by default. */
const ETCD_BYTES = 1_572_864;

/** The largest that the API server takes, to some bytes. */
async function largest<R>(from: number, make: (size: number) => Promise<R>): Promise<R> {
  for (let size = from; ; size -= 16) {
    try {
      return await make(size);
    } catch (error) {
      if (!/too large/.test((error as Error).message)) throw error;
    }
  }
}

describe('an object at the size limit of etcd', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_MAX_RUNNING: '1' }, { controller: true });

  const told = (name: string, reason: string) =>
    eventually(
      async () => {
        const { items } = await cluster.client.list(events, { namespace: 'default' });
        return items.find((event) => event.involvedObject.name === name && event.reason === reason)?.message;
      },
      { what: `event ${reason} of ${name}` },
    );

  for (const [name, group, what] of [
    ['notes', {}, 'a turn'],
    ['grouped', { concurrencyGroup: { name: 'one' } }, 'a turn of a concurrency group'],
  ] as const) {
    test(`as ${what} blocks neither later turns nor the suspension, and is reported by an event`, async () => {
      await cluster.create(name, { agent, ...group } as never);
      await cluster.turn(name, `${name}-before`, 'x');
      await cluster.ended(`${name}-before`);
      await largest(ETCD_BYTES - 300, (size) => cluster.turn(name, `${name}-huge`, 'x'.repeat(size)));
      await cluster.turn(name, `${name}-behind`, 'y');
      assert.equal((await cluster.ended(`${name}-behind`)).status?.phase, 'Succeeded');
      assert.match(
        (await told(`${name}-huge`, 'InputTooLarge')) ?? '',
        /^The turn is left out: with 15\d{5} bytes in spec\.input/,
      );
      await cluster.patch(name, { timeouts: { idle: '1s' } } as never);
      await cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');
      // The turn is an ordinary one with another input.
      await cluster.client.patch(turns, { namespace: 'default', name: `${name}-huge` }, { spec: { input: 'small' } });
      assert.equal((await cluster.ended(`${name}-huge`)).status?.output, 'small');
      await cluster.delete(name);
    });
  }

  test('as a session is reported by an event, and takes no slot from others', async () => {
    const env = Array.from({ length: 47 }, (_, i) => ({ name: `A${i}`, value: 'x'.repeat(32_768) }));
    await largest(31_600, (size) => {
      const more = { name: 'MORE', value: 'x'.repeat(size) };
      return cluster.create('huge', { agent: { ...agent, env: [...env, more] } } as never);
    });
    assert.match((await told('huge', 'InvalidSpec')) ?? '', /^The session is too large to be given a status/);
    await cluster.create('other', { agent } as never);
    await cluster.turn('other', 'works', 'x');
    assert.equal((await cluster.ended('works')).status?.phase, 'Succeeded');
  });
});
