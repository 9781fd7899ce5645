import assert from 'node:assert/strict';
import { test } from 'vitest';
import { leasedApi, NotLeadingError, WRITE_DEADLINE_MS } from '../../../../controller/runtime/leased-api.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { turns } from '../../../../core/resources/kinds.ts';

test('a leader whose lease is over tells a pod nothing more, though it is still attached', async () => {
  const told: string[] = [];
  const stream = {
    write: async (data: Buffer | string) => void told.push(String(data)),
    closeStdin: () => void told.push('end'),
    pause: () => void told.push('pause'),
    resume: () => void told.push('resume'),
    close: () => void told.push('close'),
    closed: Promise.resolve({ by: 'local' as const }),
  };
  let leftMs = 1;
  const api = leasedApi({ attach: async () => stream } as unknown as KubeApi, () => leftMs);
  const attached = await api.attach({ namespace: 'a', name: 'b' }, { container: 'session', stdin: true });
  await attached.write('one');
  leftMs = 0;
  await assert.rejects(attached.write('two'), NotLeadingError);
  attached.pause();
  attached.resume();
  attached.closeStdin();
  attached.close();
  assert.deepEqual(told, ['one', 'pause', 'resume', 'end', 'close']);
  assert.deepEqual(await attached.closed, { by: 'local' });
});

test('a leader whose lease is over attaches to no pod, as nothing could be written to it', async () => {
  let attaches = 0;
  const attach = async () => {
    attaches++;
    return {};
  };
  const api = leasedApi({ attach } as unknown as KubeApi, () => 0);
  await assert.rejects(
    api.attach({ namespace: 'a', name: 'b' }, { container: 'session', stdin: true }),
    NotLeadingError,
  );
  assert.equal(attaches, 0);
});

test('a write of a leader ends with its lease or after its own deadline, whichever comes first', async () => {
  const deadlines: (number | undefined)[] = [];
  let leftMs = 0;
  const inner = {
    create: async (_resource: unknown, object: unknown, options?: { deadlineMs?: number }) => {
      deadlines.push(options?.deadlineMs);
      return object;
    },
  } as unknown as KubeApi;
  const api = leasedApi(inner, () => leftMs);
  const create = (options?: { deadlineMs: number }) => api.create(turns, { metadata: { name: 'a' } } as never, options);
  for (const [left, asked] of [
    [2_000, undefined],
    [60_000, undefined],
    [60_000, 1_000],
    [500, 1_000],
  ] as const) {
    leftMs = left;
    await create(asked === undefined ? undefined : { deadlineMs: asked });
  }
  assert.deepEqual(deadlines, [2_000, WRITE_DEADLINE_MS, 1_000, 500]);
  leftMs = 0;
  await assert.rejects(create(), NotLeadingError);
  assert.equal(deadlines.length, 4);
});
