import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  type Any,
  apply,
  ended,
  get,
  kubectl,
  makeNamespace,
  remove,
  session,
  turn,
  until,
} from '../support/cluster.ts';

/** A class of the test's own, gone with it. */
async function makeClass(t: Parameters<typeof makeNamespace>[0], namespace: string, spec: object): Promise<string> {
  const name = `net-${namespace}`;
  const overrides = ['agent.command', 'agent.input', 'agent.result'];
  const metadata = { name };
  await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata, spec: { overrides, ...spec } });
  t.onTestFinished(() => remove('sessionclass', name));
  return name;
}

const policyOf = (namespace: string, name: string): Promise<Any> =>
  get(['networkpolicy', `berth-${name}`, '-n', namespace]);
const podsOf = async (namespace: string): Promise<Any[]> => (await get(['pods', '-n', namespace])).items;

async function succeeds(namespace: string, name: string): Promise<void> {
  const { status } = await ended(namespace, name);
  assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
}

describe('the pods of a class', () => {
  test('are made after the NetworkPolicy that selects them and lets nothing in or out', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, {});
    await apply(session(namespace, 'one', { class: name }), turn(namespace, 'one-1', 'one', 'hello'));
    await succeeds(namespace, 'one-1');
    const policy = await policyOf(namespace, name);
    const [pod] = await podsOf(namespace);
    const label = pod.metadata.labels['berth.dev/network'];
    assert.deepEqual(policy.spec, {
      podSelector: { matchLabels: { 'berth.dev/network': label } },
      policyTypes: ['Ingress', 'Egress'],
    });
    assert.ok(policy.metadata.creationTimestamp <= pod.metadata.creationTimestamp);
    // The policy was written once, and no pod existed at its resourceVersion.
    assert.equal(policy.metadata.generation, 1);
    const then = `resourceVersion=${policy.metadata.resourceVersion}&resourceVersionMatch=Exact`;
    const { items } = JSON.parse(await kubectl(['get', '--raw', `/api/v1/namespaces/${namespace}/pods?${then}`]));
    assert.deepEqual(items, []);
  });

  test('keep their policy up with the class, and with somebody who removes it', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { sandbox: { network: { mode: 'Open' } } });
    await apply(session(namespace, 'one', { class: name }), turn(namespace, 'one-1', 'one', 'hello'));
    await succeeds(namespace, 'one-1');
    const open = await policyOf(namespace, name);
    assert.equal(open.spec.egress[0].to[0].ipBlock.cidr, '0.0.0.0/0');
    const [pod] = await podsOf(namespace);
    const allow = [{ cidr: '203.0.113.0/24', ports: [{ port: 443 }] }];
    const proxy = { url: 'http://203.0.113.9:3128' };
    const spec = { sandbox: { network: { mode: 'AllowList', allow, proxy } } };
    await kubectl(['patch', 'sessionclass', name, '--type=merge', '-p', JSON.stringify({ spec })]);
    const listed = await until(namespace, 'networkpolicy', `berth-${name}`, (found) => found.spec.egress.length === 3);
    assert.deepEqual(listed.spec.egress[1], {
      to: [{ ipBlock: { cidr: '203.0.113.0/24' } }],
      ports: [{ port: 443, protocol: 'TCP' }],
    });
    assert.deepEqual(listed.spec.egress[2].to, [{ ipBlock: { cidr: '203.0.113.9/32' } }]);
    // The API server gives back what it was given: nothing is left to be set right.
    const { generation } = listed.metadata;
    await kubectl(['label', 'networkpolicy', `berth-${name}`, '-n', namespace, 'seen=yes']);
    await apply(turn(namespace, 'one-2', 'one', 'again'));
    await succeeds(namespace, 'one-2');
    assert.equal((await policyOf(namespace, name)).metadata.generation, generation);
    await kubectl(['delete', 'networkpolicy', `berth-${name}`, '-n', namespace]);
    await until(namespace, 'networkpolicy', `berth-${name}`, (found) => found.metadata.uid !== listed.metadata.uid);
    const [same] = await podsOf(namespace);
    assert.equal(same.metadata.uid, pod.metadata.uid);
  });

  test('run under the class’s RuntimeClass, marked and placed as it says, in a namespace that enforces the restricted standard', async (t) => {
    const namespace = await makeNamespace(t);
    const runtime = `runc-${namespace}`;
    await apply({ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: runtime }, handler: 'runc' });
    t.onTestFinished(() => remove('runtimeclass', runtime));
    const name = await makeClass(t, namespace, {
      runtimeClassName: runtime,
      podMetadata: { labels: { team: 'a' }, annotations: { 'example.com/cost': 'b' } },
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      tolerations: [{ key: 'agents', operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { podAntiAffinity: {} },
      sandbox: { readOnlyRootFilesystem: false },
    });
    await apply(session(namespace, 'one', { class: name }), turn(namespace, 'one-1', 'one', 'hello'));
    await succeeds(namespace, 'one-1');
    const [{ metadata, spec }] = await podsOf(namespace);
    assert.equal(spec.runtimeClassName, runtime);
    assert.equal(metadata.labels.team, 'a');
    assert.equal(metadata.annotations['example.com/cost'], 'b');
    assert.equal(spec.nodeSelector['kubernetes.io/os'], 'linux');
    assert.ok(spec.tolerations.some(({ key }: Any) => key === 'agents'));
    assert.equal(spec.containers[0].securityContext.readOnlyRootFilesystem, false);
  });

  test('are refused with the API server’s words where the RuntimeClass does not exist', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { runtimeClassName: 'absent' });
    await apply(session(namespace, 'one', { class: name }), turn(namespace, 'one-1', 'one', 'hello'));
    const { status } = await ended(namespace, 'one-1');
    assert.equal(status.error.code, 'PodForbidden');
    assert.match(status.error.message, /RuntimeClass "absent" not found/);
  });

  test('are made only in namespaces that the class selects', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { namespaceSelector: { matchLabels: { agents: namespace } } });
    await apply(session(namespace, 'one', { class: name }));
    await until(namespace, 'session', 'one', ({ status }) =>
      status?.conditions?.some(({ type, reason }: Any) => type === 'Admitted' && reason === 'NotAllowed'),
    );
    await kubectl(['label', 'namespace', namespace, `agents=${namespace}`]);
    // A turn that is seen before the label is refused at once, and rightly: labels and turns come by watches of their own.
    await until(namespace, 'session', 'one', ({ status }) =>
      status?.conditions?.some(({ type, status }: Any) => type === 'Admitted' && status === 'True'),
    );
    await apply(turn(namespace, 'one-1', 'one', 'hello'));
    await succeeds(namespace, 'one-1');
  });

  test('of the examples are accepted by the cluster', async () => {
    for (const example of ['claude-code', 'codex']) {
      await kubectl(['apply', '--dry-run=server', '-f', `examples/${example}.yaml`]);
    }
  });
});
