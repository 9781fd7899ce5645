import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { caller } from '../support/caller.ts';
import {
  type Any,
  apply,
  checkout,
  get,
  inContainer,
  kubectl,
  makeNamespace,
  release,
  releaseNamespace,
  said,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { runnerImage } from '../support/images.ts';

const NODE = '/usr/local/bin/node';
const LOAD = readFileSync(join(checkout, 'test/support/http-load.cjs'), 'utf8');
/** Each sends a quarter of 200 requests a second, fewer than one caller may. */
const CALLERS = ['one', 'two', 'three', 'four'];

/** What the load says at its end. */
interface Counts {
  sent: number;
  seconds: number;
  failed: number;
  /** The first of these: which request failed, when and why. */
  shown: string[];
}

/** Names of the API's pods that are not being deleted. */
async function apiPods(): Promise<string[]> {
  const { items } = await get(['pods', '-n', releaseNamespace, '-l', 'app.kubernetes.io/component=api']);
  return items.filter(({ metadata }: Any) => !metadata.deletionTimestamp).map(({ metadata }: Any) => metadata.name);
}

describe('the replicas of the HTTP API', () => {
  test('are all replaced while 200 requests a second come, and none of these fails', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'held', { suspend: true }), turn(namespace, 'held-1', 'held', 'later'));
    const tokens = await Promise.all(CALLERS.map((name) => caller(namespace, name, 'view')));
    const base = `http://${release}-api.${releaseNamespace}.svc/v1/namespaces/${namespace}`;
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: 'load' },
      spec: {
        restartPolicy: 'Never',
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            ...{ name: 'load', image: runnerImage, imagePullPolicy: 'Never', command: [NODE, '-e', LOAD] },
            env: [
              { name: 'PER_SECOND', value: '200' },
              { name: 'READ', value: `${base}/sessions/held` },
              { name: 'WAIT', value: `${base}/sessions/held/turns/held-1?wait=5s` },
              { name: 'TOKENS', value: tokens.join(' ') },
            ],
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
    });
    await said(namespace, 'load', 'every kind of request was answered');
    const before = await apiPods();
    assert.equal(before.length, 2);
    const deployment = `deployment/${release}-api`;
    await kubectl(['rollout', 'restart', deployment, '-n', releaseNamespace]);
    await kubectl(['rollout', 'status', deployment, '-n', releaseNamespace, '--timeout=300s']);
    const gone = async () => {
      const { items } = await get(['pods', '-n', releaseNamespace]);
      return !items.some(({ metadata }: Any) => before.includes(metadata.name));
    };
    await eventually(gone, { timeoutMs: 180_000, what: 'the replicas before are gone' });
    await inContainer(namespace, 'load', 'load', [NODE, '-e', 'process.kill(1)']);
    await until(namespace, 'pod', 'load', ({ status }) => status.phase === 'Succeeded');
    const lines = (await kubectl(['logs', 'load', '-n', namespace])).trim().split('\n');
    const { sent, seconds, failed, shown }: Counts = JSON.parse(lines.at(-1) as string);
    await t.annotate(`${sent} requests in ${seconds} s, ${(sent / seconds).toFixed()} a second; ${failed} failed`);
    assert.deepEqual(shown, []);
    assert.ok(sent > 1000, `${sent} requests`);
  });
});
