import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import type { Finding } from '../../../cli/doctor/finding.ts';
import { eventually } from '../../support/eventually.ts';
import { berth, get, kubectl, release, releaseNamespace } from '../support/cluster.ts';

const CONTROLLER = ['deployment', `${release}-controller`, '-n', releaseNamespace];
const BINDING = ['validatingadmissionpolicybinding', `${release}-controller-pods.${releaseNamespace}`];
const CRD = ['crd', 'blobs.berth.dev'];
const DESCRIPTION = '/spec/versions/0/schema/openAPIV3Schema/description';

/** Runs the doctor; resolves with its exit code and its findings of a level. */
async function doctor(level: Finding['level']): Promise<{ code: number; found: string[] }> {
  const { code, stdout, stderr } = await berth(['doctor', '-o', 'json']);
  assert.notEqual(stdout, '', stderr);
  const { findings } = JSON.parse(stdout) as { findings: Finding[] };
  const found = findings.filter((each) => each.level === level).map(({ check, message }) => `${check}: ${message}`);
  return { code, found };
}

/** Removes the binding of a policy until the end of the test. */
async function unbind(t: TestContext): Promise<void> {
  const { metadata, ...binding } = await get(BINDING);
  const { name, labels, annotations } = metadata;
  const input = JSON.stringify({ ...binding, metadata: { name, labels, annotations } });
  t.onTestFinished(async () => {
    await kubectl(['apply', '-f', '-'], { input });
  });
  await kubectl(['delete', ...BINDING, '--ignore-not-found']);
}

/** Scales the controller to 0 until the end of the test. */
async function stopController(t: TestContext): Promise<void> {
  const { spec } = await get(CONTROLLER);
  t.onTestFinished(async () => {
    await kubectl(['scale', ...CONTROLLER, `--replicas=${spec.replicas}`]);
    await kubectl(['rollout', 'status', ...CONTROLLER, '--timeout=300s']);
  });
  await kubectl(['scale', ...CONTROLLER, '--replicas=0']);
}

/** Gives a CRD another description until the end of the test. */
async function changeCrd(t: TestContext): Promise<void> {
  const before = (await get(CRD)).spec.versions[0].schema.openAPIV3Schema.description;
  const write = (value: string) =>
    kubectl(['patch', ...CRD, '--type=json', '-p', JSON.stringify([{ op: 'replace', path: DESCRIPTION, value }])]);
  t.onTestFinished(async () => {
    await write(before);
  });
  await write('Another one.');
}

describe('berth doctor on a cluster', () => {
  test('finds no error in the installation, then names each of three things that are broken', async (t) => {
    const healthy = await eventually(
      async () => {
        const seen = await doctor('error');
        return seen.code === 0 ? seen : undefined;
      },
      { timeoutMs: 120_000, what: 'the installation has no error' },
    );
    assert.deepEqual(healthy.found, []);
    assert.deepEqual((await doctor('skipped')).found, []);
    assert.match((await doctor('ok')).found.join('\n'), /^network: .* enforces NetworkPolicies/m);

    await unbind(t);
    await changeCrd(t);
    await stopController(t);
    const { code, found } = await eventually(
      async () => {
        const seen = await doctor('error');
        return seen.found.some((line) => line.startsWith('lease:')) ? seen : undefined;
      },
      { timeoutMs: 120_000, what: 'nobody leads' },
    );
    assert.equal(code, 1);
    const all = found.toSorted().join('\n');
    assert.match(all, /^controller: Deployment \S+-controller is scaled to 0$/m);
    assert.match(all, /^crds: blobs\.berth\.dev is not that of release \S+: schema: description$/m);
    assert.match(all, /^lease: .* (has no holder|was renewed)/m);
    assert.match(all, /^policies: .*-controller-pods\S+ has no binding: it is not in force$/m);
    assert.equal(found.length, 4, all);
  });
});
