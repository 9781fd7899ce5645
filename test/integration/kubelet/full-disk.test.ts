import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Store } from '../../../local/apiserver/types.ts';
import type { Pod } from '../../../local/kubelet/types.ts';
import { TestCluster } from './cluster.ts';

type Write = 'replace' | 'patch' | 'delete';

/** A write of the kubelet that fails as on a full disk, once unless `always` is set. */
interface Fault {
  write: Write;
  always?: true;
  of: (...args: unknown[]) => boolean;
}

describe('room on a full disk', () => {
  let cluster: TestCluster;
  let fault: Fault | undefined;
  beforeAll(async () => {
    cluster = await TestCluster.start();
    const store = new Proxy(cluster.store, {
      get:
        (target, name) =>
        (...args: unknown[]) => {
          if (fault?.write === name && fault.of(...args)) {
            if (!fault.always) fault = undefined;
            return Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
          }
          return Reflect.apply(target[name as keyof Store], target, args);
        },
    });
    await cluster.restart(() => {}, store);
  });
  afterAll(() => cluster.stop());

  test('lets a pod run that could not be bound to the node', async () => {
    fault = { write: 'patch', of: (_resource, _ref, patch) => 'spec' in (patch as object) };
    await cluster.create('bound', 'true');
    await cluster.phase('bound', 'Succeeded');
    assert.equal(fault, undefined);
  });

  test('gives a pod the end that could not be written', async () => {
    fault = { write: 'replace', of: (_resource, pod) => (pod as Pod).status?.phase === 'Succeeded' };
    await cluster.create('ended', 'true');
    await cluster.phase('ended', 'Succeeded');
    assert.equal(fault, undefined);
  });

  test('removes a pod that had ended and could not be deleted', async () => {
    await cluster.create('deleted', 'sleep 1000');
    await cluster.phase('deleted', 'Running');
    fault = { write: 'delete', of: () => true };
    // This deletion is the test's own; the kubelet's, which follows it, fails.
    await cluster.delete('deleted', 1);
    await cluster.gone('deleted');
    assert.equal(fault, undefined);
  });

  test('is not waited for by a kubelet that stops', async () => {
    const refused = Promise.withResolvers<void>();
    const of = () => {
      refused.resolve();
      return true;
    };
    fault = { write: 'replace', always: true, of };
    await cluster.create('last', 'true');
    await refused.promise;
    await cluster.kubelet.stop(1_000);
  });
});
