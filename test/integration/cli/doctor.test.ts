import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { stringify } from 'yaml';
import type { Finding } from '../../../cli/doctor/finding.ts';
import { KubeClient } from '../../../core/kube/client.ts';
import { loadConnection } from '../../../core/kube/config.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { Caller } from './support.ts';

const caller = new Caller(join(import.meta.dirname, '..', '..', '..', 'examples'));
const BINDING =
  '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/berth-controller-pods.berth-system';

let server: string[];
beforeAll(async () => {
  await caller.ok('local', 'up', '--detach');
  const { apiUrl, apiTokenFile } = JSON.parse(await caller.ok('local', 'status', '-o', 'json'));
  server = ['--server', apiUrl, '--token-file', apiTokenFile];
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
});

const findings = (stdout: string): Finding[] => JSON.parse(stdout).findings;
const bad = (found: Finding[]) => found.filter(({ level }) => level === 'error' || level === 'skipped');

describe('berth doctor', () => {
  test('finds the embedded cluster as it should be, but for the network, which it does not enforce', async () => {
    const { code, stdout, stderr } = await caller.berth(['doctor']);
    assert.deepEqual([code, stderr], [0, ''], stdout);
    assert.match(stdout, /^ok {7}cluster {5}the embedded cluster answers: Kubernetes v\S+\n/);
    assert.match(stdout, /^warning {2}network {5}the embedded cluster does not enforce NetworkPolicies.* To do: /m);
    const found = findings(await caller.ok('doctor', '-o', 'json'));
    assert.deepEqual(bad(found), []);
    assert.equal(found.length, stdout.trim().split('\n').length);
  });

  test('names the binding of a policy that is gone, and ends with 1', async () => {
    const kubeconfig = (await caller.ok('local', 'kubeconfig')).trim();
    const connection = await loadConnection({ path: kubeconfig, env: {} });
    const api = new KubeClient({
      connection,
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'test',
    });
    await api.raw('DELETE', BINDING);
    await api.close();
    const { code, stdout } = await caller.berth(['doctor', '-o', 'json']);
    assert.equal(code, 1);
    const [found, ...others] = bad(findings(stdout));
    assert.match(found?.message ?? '', /berth-controller-pods.berth-system has no binding: it is not in force/);
    assert.equal(found?.check, 'policies');
    assert.deepEqual(others, []);
  });

  test('through the HTTP API checks the server, the token and the sessions, and says what it cannot see', async () => {
    const found = findings(await caller.ok('doctor', '-o', 'json', ...server));
    assert.deepEqual(
      found.map(({ check, level }) => `${check} ${level}`),
      ['api ok', 'token ok', 'sessions ok', 'cluster skipped'],
    );
    const wrong = join(caller.root, 'wrong');
    writeFileSync(wrong, 'nobody');
    const refused = await caller.berth(['doctor', '-o', 'json', ...server.slice(0, 2), '--token-file', wrong]);
    assert.equal(refused.code, 1);
    const token = findings(refused.stdout).find(({ check }) => check === 'token');
    assert.match(token?.message ?? '', /does not accept the token/);
  });

  test('says as a finding that no cluster answers', async () => {
    const file = join(caller.root, 'nowhere');
    const cluster = { name: 'c', cluster: { server: 'https://127.0.0.1:1' } };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [cluster],
      users: [{ name: 'u', user: { token: 't' } }],
    };
    const context = { name: 'c', context: { cluster: 'c', user: 'u' } };
    writeFileSync(file, stringify({ ...config, contexts: [context], 'current-context': 'c' }));
    const { code, stdout } = await caller.berth(['doctor', '--kubeconfig', file]);
    assert.equal(code, 1);
    assert.match(stdout, /^error {4}cluster {5}the cluster does not answer: .*\n$/);
  });
});
