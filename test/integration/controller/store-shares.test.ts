import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { namespaces } from '../../../core/kube/resources.ts';
import { blobs, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const CEILING = 400_000;

/** Writes a state of `input` bytes that cannot be compressed. */
const agent = pythonAgent(`
path = state + '/f'
before = os.path.getsize(path) if os.path.exists(path) else 0
open(path, 'wb').write(os.urandom(request['input']))
answer(before)
`);

describe('a namespace that stores all that it can', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_STORE_CEILING_BYTES: String(CEILING) }, { controller: true });
  const stored = async (namespace: string) => {
    const { items } = await cluster.client.list(blobs, { namespace });
    return items.reduce((sum, { spec }) => sum + spec.data.length, 0);
  };

  test('is refused more, and the turns of another succeed with their states', async () => {
    await cluster.client.create(namespaces, { metadata: { name: 'greedy' } });
    const names = ['g-1', 'g-2', 'g-3', 'g-4', 'g-5'];
    for (const name of names) await cluster.create(name, { agent, input: 40_000, turns: 'One' } as never, 'greedy');
    const ended = await eventually(
      async () => {
        const { items } = await cluster.client.list(turns, { namespace: 'greedy' });
        const over = items.filter(({ status }) => isTerminal(status?.phase));
        return over.length === names.length ? over : undefined;
      },
      { what: 'the turns of the greedy namespace' },
    );
    const codes = ended.map(({ status }) => status?.error?.code ?? status?.phase).sort();
    assert.deepEqual(codes, ['StateNotStored', 'StateNotStored', 'Succeeded', 'Succeeded', 'Succeeded']);
    const refused = ended.find(({ status }) => status?.error)?.status?.error?.message ?? '';
    assert.match(
      refused,
      /^Namespace "greedy" has no room in the store for \d+ bytes: it holds \d+, and its share is 200000/,
    );
    const greedy = await stored('greedy');
    assert.ok(greedy <= CEILING / 2, `${greedy} bytes`);

    await cluster.create('modest', { agent });
    for (const [index, name] of ['modest-1', 'modest-2', 'modest-3'].entries()) {
      await cluster.turn('modest', name, 30_000);
      const { status } = await cluster.ended(name);
      assert.deepEqual([status?.phase, status?.output], ['Succeeded', index === 0 ? 0 : 30_000]);
    }
    await cluster.until('modest', 'has its state stored', ({ status }) => status?.state?.ref !== undefined);
    assert.equal(await stored('greedy'), greedy, 'nothing of the other namespace gave way');
  });
});

describe('a namespace with a quota in the store', () => {
  const quotas = { BERTH_STORE_CEILING_BYTES: String(CEILING), BERTH_STORE_QUOTAS: 'small=70000' };
  const cluster = installed({ ...ONE_LEADER, ...quotas }, { controller: true });

  test('is refused beyond it although the store has room, by a message that names the quota; others are not', async () => {
    for (const name of ['small', 'large']) await cluster.client.create(namespaces, { metadata: { name } });
    for (const [name, namespace] of [
      ['kept', 'small'],
      ['refused', 'small'],
      ['other', 'large'],
    ] as const) {
      await cluster.create(name, { agent, input: 40_000, turns: 'One' } as never, namespace);
      const { code, message } = await eventually(
        async () => {
          const { items } = await cluster.client.list(turns, { namespace });
          const turn = items.find(({ spec }) => spec.session === name);
          return isTerminal(turn?.status?.phase)
            ? (turn?.status?.error ?? { code: 'Succeeded', message: '' })
            : undefined;
        },
        { what: `the turn of ${name}` },
      );
      assert.equal(code, name === 'refused' ? 'StateNotStored' : 'Succeeded', message);
      if (name !== 'refused') continue;
      assert.match(message ?? '', /^Namespace "small" has no room .*, and its quota is 70000\. .* raise storeBytes/);
    }
  });
});
