import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { tools } from '../../support/tools.ts';
import { finish, kubectl, release, releaseNamespace, tryKubectl } from '../support/cluster.ts';
import { install } from '../support/release.ts';

/** Namespace of the session where the release serves all. */
const SERVED = 'default';
/** Objects that a run of the test makes. */
const MADE = [
  ...['serviceaccount', 'pod'].map((kind) => [`${kind}/${release}-test`, '-n', releaseNamespace]),
  ...['role', 'rolebinding'].map((kind) => [`${kind}/${release}-test`, '-n', SERVED]),
];

async function helmTest() {
  const { helm } = await tools();
  const { code, stdout, stderr } = await finish(helm, ['test', release, '-n', releaseNamespace, '--logs']);
  return { code, text: stdout + stderr };
}

const left = async () =>
  (await Promise.all(MADE.map((args) => kubectl(['get', ...args, '--ignore-not-found', '-o', 'name'])))).join('');

const sessionsLeft = () => kubectl(['get', 'sessions', '-n', SERVED, '-o', 'name']);

describe('helm test', () => {
  afterAll(() => install());

  test('runs a session, shows its answer, and leaves nothing', async () => {
    await install();
    const { code, text } = await helmTest();
    assert.equal(code, 0, text);
    assert.match(text, /Session default\/check-\w+ has answered BERTH after /);
    assert.deepEqual([await left(), await sessionsLeft()], ['', '']);
  });

  test('fails without a controller, says where to look, and leaves its pod with the reason, but no session', async () => {
    await install({ 'controller.replicas': 0, 'test.timeout': '5s' });
    const { code, text } = await helmTest();
    assert.notEqual(code, 0, text);
    const why = /nobody has taken it\. See that Deployment berth-system\/berth-controller has a pod that is ready\./;
    assert.match(text, why);
    assert.match((await tryKubectl(['logs', '-n', releaseNamespace, `pod/${release}-test`])).stdout, why);
    assert.equal(await sessionsLeft(), '');
  });
});
