import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { podName, poolPodName } from '../../../core/resources/names.ts';
import { Installation } from '../../support/installation.ts';
import { RawApi } from '../../support/raw-api.ts';

const UID = '9e1f6c1e-77aa-4f0e-8a61-0a3f2f6f1d22';
const HELPER = '/berth-runner/bin/berth-enter';

describe('the account of the HTTP API', () => {
  let cluster: Installation;
  let api: RawApi;
  beforeAll(async () => {
    cluster = await Installation.start();
    const user = { username: 'system:serviceaccount:berth-system:berth-api', groups: ['system:authenticated'] };
    const { url, ca } = cluster.server;
    api = new RawApi({ url, ca, token: cluster.server.mintToken(user) });
  });
  afterAll(async () => {
    await api.close();
    await cluster.stop();
  });

  const exec = (pod: string, words: string[], container = 'session', more = '') => {
    const query = [
      ...words.map((word) => `command=${encodeURIComponent(word)}`),
      ...(container ? [`container=${container}`] : []),
    ];
    return api.get(`/api/v1/namespaces/default/pods/${pod}/exec?${query.join('&')}&stdin=true&stdout=true${more}`);
  };

  test('enters pods of sessions and pools, with the helper and nothing else', async () => {
    const pod = podName(UID, 1);
    // There is no such pod: what the policy allows is answered 404.
    assert.equal((await exec(pod, [HELPER])).status, 404);
    assert.equal((await exec(poolPodName(UID, 1), [HELPER])).status, 404);
    for (const [what, answer] of Object.entries({
      'a pod of another name': exec('web-1', [HELPER]),
      'a name that only contains one': exec(`x${pod}`, [HELPER]),
      'another command': exec(pod, ['/bin/sh']),
      'an argument': exec(pod, [HELPER, '--help']),
      'the helper behind another command': exec(pod, ['/bin/sh', '-c', HELPER]),
      'no command': exec(pod, []),
      'another container': exec(pod, [HELPER], 'runner'),
      'no container': exec(pod, [HELPER], ''),
      'a terminal': exec(pod, [HELPER], 'session', '&tty=true'),
    })) {
      const { status, text } = await answer;
      assert.equal(status, 403, `${what}: ${text}`);
      assert.match(text, /denied request: the HTTP API of Berth /, what);
    }
  });

  test('neither attaches to a pod nor reaches its ports', async () => {
    for (const way of ['attach?stdin=true', 'portforward?ports=80']) {
      const { status, text } = await api.get(`/api/v1/namespaces/default/pods/${podName(UID, 1)}/${way}`);
      assert.ok(status === 403 || status === 404, text);
      if (way.startsWith('attach')) assert.equal(status, 403);
    }
  });
});
