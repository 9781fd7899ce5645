import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { KubeCluster } from '../../../../cli/cluster/cluster.ts';
import { serverVersion } from '../../../../cli/connect/versions.ts';
import { ApiError } from '../../../../core/kube/errors.ts';

/** What a cluster tells of versions, where these paths answer so. */
function ask(answers: Record<string, object | ApiError>) {
  const raw = async (_method: string, path: string) => {
    const answer = answers[path];
    if (answer instanceof ApiError) throw answer;
    return answer;
  };
  return serverVersion(
    { api: { raw }, embedded: async () => false } as unknown as KubeCluster,
    new AbortController().signal,
  );
}
const error = (code: number) => new ApiError({ code, reason: 'x', message: 'x' });
const DEPLOYMENTS = '/apis/apps/v1/deployments';

describe('the versions in a cluster', () => {
  test('are those of the controllers of the chart, by their labels', async () => {
    const labels = { 'app.kubernetes.io/version': '0.1.0', 'helm.sh/chart': 'berth-0.1.0' };
    const items = ['berth-controller', 'berth-api'].map((name) => ({
      metadata: { name, namespace: 'berth-system', labels },
    }));
    assert.deepEqual(await ask({ '/version': { gitVersion: 'v1.35.4' }, [DEPLOYMENTS]: { items } }), {
      kubernetes: 'v1.35.4',
      installations: [{ controller: 'berth-system/berth-controller', version: '0.1.0', chart: 'berth-0.1.0' }],
    });
  });
  test('are left out where the caller may not read them', async () => {
    assert.deepEqual(await ask({ '/version': error(403), [DEPLOYMENTS]: error(403) }), {});
  });
  test('cannot be told where the cluster fails', async () => {
    await assert.rejects(ask({ '/version': { gitVersion: 'v1.35.4' }, [DEPLOYMENTS]: error(500) }), { code: 500 });
  });
});
