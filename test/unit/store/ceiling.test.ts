import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeApi, ListOptions } from '../../../core/kube/types.ts';
import { blobName } from '../../../core/resources/names.ts';
import { Ceiling } from '../../../core/store/ceiling.ts';
import { blobLabels } from '../../../core/store/chunks.ts';
import { StoreFullError, type StoreKey } from '../../../core/store/store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const never = new AbortController().signal;
const key: StoreKey = { namespace: 'team', sessionUID: 'u', incarnation: 1, seq: 1, kind: 'State' };

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
  (await ceiling.reserve(key, 30, never))();
  await assert.rejects(ceiling.reserve(key, 40, never), StoreFullError);
  code = 500;
  await clock.advance(1_001);
  await assert.rejects(ceiling.reserve(key, 1000, never), ApiError);
});

/** A server with Blobs of (namespace, session, incarnation, seq, kind, bytes), each of one part. */
function withBlobs(held: { key: StoreKey; bytes: number }[]) {
  const items = () =>
    held.map(({ key, bytes }) => ({
      metadata: {
        name: blobName(key, 1),
        namespace: key.namespace,
        creationTimestamp: '2030-01-01T00:00:00Z',
        labels: { ...blobLabels(key), 'berth.dev/blob-kind': key.kind },
        annotations: { 'berth.dev/blob-bytes': String(bytes) },
      },
    }));
  return { list: async () => ({ metadata: {}, items: items() }) } as unknown as Pick<KubeApi, 'list'>;
}

test('a namespace is refused by what it holds itself, and the error names its share', async () => {
  const held = [
    { key, bytes: 120 },
    { key: { ...key, namespace: 'other', sessionUID: 'v', kind: 'Log' as const }, bytes: 20 },
  ];
  const ceiling = new Ceiling({ api: withBlobs(held), clock: new VirtualClock(), ceilingBytes: 260, shareFactor: 1 });
  const fresh = { ...key, sessionUID: 'w' };
  await assert.rejects(ceiling.reserve(fresh, 1, never), {
    code: 'StoreFull',
    message:
      'Namespace "team" has no room in the store for 1 bytes: it holds 120, and its share is 120. Delete its sessions or turns that are no longer needed, or raise controller.storeCeilingBytes.',
  });
  const others = { ...fresh, namespace: 'other' };
  (await ceiling.reserve(others, 30, never))();
  assert.deepEqual(
    ceiling.largest(10).map(({ namespace, bytes, share }) => [namespace, bytes, share]),
    [
      ['team', 120, 105],
      ['other', 50, 70],
    ],
  );
  assert.deepEqual(
    ceiling.largest(1).map(({ namespace }) => namespace),
    ['team'],
  );
});

test('a namespace with a quota is refused by that, the error names it, and others keep their share', async () => {
  const held = [{ key, bytes: 30 }];
  const quotas = new Map([['team', 40]]);
  const options = { api: withBlobs(held), clock: new VirtualClock(), ceilingBytes: 260, shareFactor: 1, quotas };
  const ceiling = new Ceiling(options);
  const fresh = { ...key, sessionUID: 'w' };
  await assert.rejects(ceiling.reserve(fresh, 11, never), {
    code: 'StoreFull',
    message:
      'Namespace "team" has no room in the store for 11 bytes: it holds 30, and its quota is 40. Delete its sessions or turns that are no longer needed, or raise storeBytes of the namespace in quotas of the chart.',
  });
  (await ceiling.reserve(fresh, 10, never))();
  (await ceiling.reserve({ ...fresh, namespace: 'other' }, 100, never))();
  assert.deepEqual(
    ceiling.limited().map(({ namespace, bytes, quota }) => [namespace, bytes, quota]),
    [['team', 40, 40]],
  );
  const [{ quota } = {}] = ceiling.largest(1);
  assert.equal(quota, undefined, 'the other has none');
});

test('writes under way count, and what was removed counts no more once a write would not fit', async () => {
  const held = [{ key, bytes: 40 }];
  const clock = new VirtualClock();
  const server = withBlobs(held);
  let lists = 0;
  const list: typeof server.list = (...call) => {
    lists++;
    return server.list(...call);
  };
  const ceiling = new Ceiling({ api: { list }, clock, ceilingBytes: 200, shareFactor: 1 });
  const output = (seq: number): StoreKey => ({ ...key, sessionUID: 'w', seq, kind: 'Output' });
  const ended = await ceiling.reserve(output(1), 50, never);
  await assert.rejects(ceiling.reserve(output(2), 20, never), StoreFullError, 'beside what is being written');
  held.push({ key: output(1), bytes: 50 });
  ended();
  await assert.rejects(ceiling.reserve(output(2), 20, never), { code: 'StoreFull' });
  assert.equal(lists, 1, 'a count of this second is believed');
  held.length = 0;
  await assert.rejects(ceiling.reserve(output(2), 70, never), { code: 'StoreFull' });
  await clock.advance(1_001);
  (await ceiling.reserve(output(2), 70, never))();
  assert.equal(lists, 2);
});

test('what this store has removed counts no more at once', async () => {
  const held = [{ key, bytes: 90 }];
  const ceiling = new Ceiling({ api: withBlobs(held), clock: new VirtualClock(), ceilingBytes: 200, shareFactor: 1 });
  const output: StoreKey = { ...key, seq: 2, kind: 'Output' };
  await assert.rejects(ceiling.reserve(output, 20, never), StoreFullError);
  held.length = 0;
  ceiling.removed();
  (await ceiling.reserve(output, 20, never))();
});

test('a state may replace one of its session that is as large, and no state of another', async () => {
  const held = [
    { key, bytes: 50 },
    { key: { ...key, seq: 9 }, bytes: 40 },
    { key: { ...key, sessionUID: 'v' }, bytes: 10 },
  ];
  const ceiling = new Ceiling({ api: withBlobs(held), clock: new VirtualClock(), ceilingBytes: 200, shareFactor: 1 });
  await assert.rejects(ceiling.reserve({ ...key, seq: 10 }, 41, never), StoreFullError, 'it is larger than the last');
  await assert.rejects(ceiling.reserve({ ...key, sessionUID: 'v', seq: 2 }, 11, never), StoreFullError);
  (await ceiling.reserve({ ...key, seq: 10 }, 40, never))();
});
