import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeApi, ListOptions } from '../../../core/kube/types.ts';
import { Ceiling } from '../../../core/store/ceiling.ts';
import { StoreFullError } from '../../../core/store/store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const never = new AbortController().signal;

test('a namespace that cannot be read counts with what it last held, and keeps nobody from storing', async () => {
  const clock = new VirtualClock();
  let code: number | undefined;
  const blob = (bytes: number) => ({ metadata: { annotations: { 'berth.dev/blob-bytes': String(bytes) } } });
  const list = async (_resource: unknown, { namespace }: ListOptions) => {
    if (code && namespace === 'lost') throw new ApiError({ code, reason: 'x', message: 'no' });
    return { metadata: {}, items: [blob(namespace === 'lost' ? 60 : 10)] };
  };
  const api = { list } as unknown as Pick<KubeApi, 'list'>;
  const ceiling = new Ceiling({ api, clock, ceilingBytes: 100, namespaces: ['team', 'lost'] });
  assert.equal(await ceiling.count(never), 70);
  for (code of [403, 404]) {
    await clock.advance(61_000);
    assert.equal(await ceiling.count(never), 70);
  }
  (await ceiling.reserve(30, never))();
  await assert.rejects(ceiling.reserve(40, never), StoreFullError);
  code = 500;
  await assert.rejects(ceiling.reserve(1000, never), ApiError);
});
