import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { tools } from '../../support/tools.ts';
import { finish, release, releaseNamespace, tryKubectl } from '../support/cluster.ts';
import { install } from '../support/release.ts';

/** Namespace of the session where none is listed. */
const SERVED = 'default';

async function helmTest() {
  const { helm } = await tools();
  const { code, stdout, stderr } = await finish(helm, ['test', release, '-n', releaseNamespace]);
  return { code, text: stdout + stderr };
}

const names = async (...what: string[]) =>
  (await tryKubectl(['get', ...what, '-o', 'name'])).stdout.split('\n').filter(Boolean);

/** What a run of the test has left: its own objects, and sessions. */
async function left(): Promise<string[]> {
  const own = await names('serviceaccounts,roles,rolebindings,pods', '-A', '-l', 'app.kubernetes.io/component=test');
  const sessions = await names('sessions', '-n', SERVED);
  return [...own, ...sessions.filter((name) => name.includes('/check-'))];
}

describe('helm test', () => {
  afterAll(() => install());

  test('runs a session, shows its answer, and leaves nothing', async () => {
    await install();
    const { code, text } = await helmTest();
    assert.equal(code, 0, text);
    assert.match(text, /Session default\/check-\w+ has answered BERTH after /);
    assert.deepEqual(await left(), []);
  });

  test('fails without a controller, says where to look, and leaves its pod with the reason, but no session', async () => {
    await install({ 'controller.replicas': 0, 'test.timeout': '5s' });
    const { code, text } = await helmTest();
    assert.notEqual(code, 0, text);
    const why = /nobody has taken it\. See that Deployment berth-system\/berth-controller has a pod that is ready\./;
    assert.match(text, why);
    assert.match((await tryKubectl(['logs', '-n', releaseNamespace, `pod/${release}-test`])).stdout, why);
    const sessions = (await left()).filter((name) => name.startsWith('session'));
    assert.deepEqual(sessions, []);
  });
});
