import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type NamespaceLabelsOptions, namespaceLabels } from '../../../../controller/caches/namespaces.ts';
import { anySignal } from '../../../../core/abort.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { silentLogger } from '../../../../core/system.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MINUTE = 60_000;

/** An API server with one namespace, which may be unreadable or gone. */
async function aNamespace(rights: 'per namespace' | 'for all') {
  const clock = new VirtualClock();
  const server = { labels: { team: 'blue' } as Record<string, string>, failure: undefined as Error | undefined };
  let version = 5;
  const broken = new AbortController();
  const read = () => {
    if (server.failure) throw server.failure;
    return { metadata: { name: 'team', uid: 'u', resourceVersion: String(++version), labels: server.labels } };
  };
  const api = {
    get: async () => read(),
    list: async () => ({ items: [read()], metadata: { resourceVersion: String(version) } }),
    watch: async function* (_resource: object, { signal }: { signal: AbortSignal }) {
      const ends = anySignal(signal, broken.signal);
      if (!ends.aborted) await new Promise((resolve) => ends.addEventListener('abort', resolve, { once: true }));
      throw server.failure ?? new Error('the watch has ended');
    },
  };
  const options = {
    ...{ api, clock, random: seededRandom(1), log: silentLogger, onChange: () => {} },
    ...(rights === 'per namespace' ? { namespaces: ['team'] } : {}),
  } as unknown as NamespaceLabelsOptions;
  const labels = namespaceLabels(options);
  labels.start();
  await clock.advance(1000);
  const fail = (code: number, reason: string) => {
    server.failure = new ApiError({ code, reason, message: 'no' });
    broken.abort();
  };
  return { clock, labels, server, fail };
}

describe.each(['per namespace', 'for all'] as const)('the labels of a namespace, with rights %s', (rights) => {
  test('are known while they can be read, and unknown once they could not be for three minutes', async () => {
    const { clock, labels, server, fail } = await aNamespace(rights);
    assert.deepEqual(labels.of('team'), { team: 'blue' });
    fail(500, 'InternalError');
    await clock.advance(2 * MINUTE);
    assert.deepEqual(labels.of('team'), { team: 'blue' }, 'an outage of the API server is bridged');
    await clock.advance(2 * MINUTE);
    assert.equal(labels.of('team'), undefined);
    server.failure = undefined;
    server.labels = { team: 'red' };
    await clock.advance(2 * MINUTE);
    assert.deepEqual(labels.of('team'), { team: 'red' });
    const stopped = labels.stop();
    await clock.advance(MINUTE);
    await stopped;
  });

  test('are unknown once the right to read them is lost for as long', async () => {
    const { clock, labels, fail } = await aNamespace(rights);
    fail(403, 'Forbidden');
    await clock.advance(4 * MINUTE);
    assert.equal(labels.of('team'), undefined);
    assert.equal(labels.of('another'), undefined);
  });
});

test('the labels of a namespace that is gone are unknown at once, with rights per namespace', async () => {
  const { clock, labels, fail } = await aNamespace('per namespace');
  fail(404, 'NotFound');
  await clock.advance(MINUTE);
  assert.equal(labels.of('team'), undefined);
});
