import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leasedApi, NotLeadingError } from '../../../controller/leased-api.ts';
import type { KubeApi } from '../../../core/kube/types.ts';

test('a leader whose lease is over tells a pod nothing more, though it is still attached', async () => {
  const told: string[] = [];
  const stream = {
    write: async (data: Buffer | string) => void told.push(String(data)),
    closeStdin: () => void told.push('end'),
    close: () => void told.push('close'),
    closed: Promise.resolve({ by: 'local' as const }),
  };
  let leftMs = 1;
  const api = leasedApi({ attach: async () => stream } as unknown as KubeApi, () => leftMs);
  const attached = await api.attach({ namespace: 'a', name: 'b' }, { container: 'session', stdin: true });
  await attached.write('one');
  leftMs = 0;
  await assert.rejects(attached.write('two'), NotLeadingError);
  attached.closeStdin();
  attached.close();
  assert.deepEqual(told, ['one', 'end', 'close']);
  assert.deepEqual(await attached.closed, { by: 'local' });
});
