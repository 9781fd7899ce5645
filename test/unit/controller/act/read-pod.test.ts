import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { perform } from '../../../../controller/act/perform.ts';
import type { StoredPod } from '../../../../core/kube/builtin.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import { LABEL_MANAGED_BY, LABEL_SESSION_UID, MANAGED_BY } from '../../../../core/resources/names.ts';
import { aMemory, aPod, POD_UID, SESSION_UID } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const GONE = new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });

/** Reads the pod, which the API server answers with `live`. */
function reading(live: StoredPod | ApiError) {
  const memory = aMemory();
  const seen: StoredPod[] = [];
  const get = async () => {
    if (live instanceof ApiError) throw live;
    return live;
  };
  const context = {
    memory,
    signal: new AbortController().signal,
    effects: writesOver({ get }, (pod: StoredPod) => seen.push(pod)),
  } as unknown as ReconcileContext;
  return { memory, seen, read: async () => perform({ do: 'ReadPod', pod: aPod() }, context) };
}

describe('a pod read live before it is given up', () => {
  test('is as the API server has it', async () => {
    const live = aPod({ status: { phase: 'Succeeded' } });
    Object.assign(live.metadata.labels ?? {}, { [LABEL_SESSION_UID]: SESSION_UID, [LABEL_MANAGED_BY]: MANAGED_BY });
    const { memory, seen, read } = reading(live);
    await read();
    assert.deepEqual(seen, [live]);
    assert.deepEqual(memory.incarnation.podRead, { podUID: POD_UID });
  });

  const another = aPod();
  another.metadata.uid = 'another';
  for (const [what, answer] of [
    ['that is gone', GONE],
    ['whose name another pod has', another],
  ] as const) {
    test(`${what} is not given up as one that did not start: it may have run`, async () => {
      const { memory, read } = reading(answer);
      await assert.rejects(read(), (error) => error instanceof TransportError && /gone/.test(error.message));
      assert.deepEqual(memory, aMemory());
    });
  }
});
