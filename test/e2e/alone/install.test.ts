import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { tools } from '../../support/tools.ts';
import {
  type Any,
  apply,
  checkout,
  ended,
  finish,
  get,
  helm,
  kubectl,
  makeNamespace,
  release,
  releaseNamespace,
  session,
  tryKubectl,
  turn,
  until,
} from '../support/cluster.ts';
import { install } from '../support/release.ts';

const chart = join(checkout, 'charts/berth');

describe('the Helm chart', () => {
  test('the API server takes the CRDs without a complaint', async () => {
    for (const file of await readdir(join(checkout, 'manifests'))) {
      const path = join(checkout, 'manifests', file);
      const { code, stderr } = await tryKubectl([
        'apply',
        '--dry-run=server',
        '--server-side',
        '--force-conflicts',
        '-f',
        path,
      ]);
      assert.equal(code, 0, stderr);
      assert.doesNotMatch(stderr, /Warning/);
    }
    const { items } = await get(['crds']);
    const ours = items.filter(({ spec }: Any) => spec.group === 'berth.dev');
    assert.deepEqual(
      ours.map(({ spec }: Any) => spec.names.plural),
      ['approvals', 'blobs', 'environments', 'sessionclasses', 'sessionpools', 'sessions', 'turns'],
    );
    for (const { metadata, status } of ours) {
      const state = Object.fromEntries(status.conditions.map(({ type, status }: Any) => [type, status]));
      assert.deepEqual(state, { NamesAccepted: 'True', Established: 'True' }, metadata.name);
      assert.equal(metadata.annotations['helm.sh/resource-policy'], 'keep');
    }
  });

  test('renders the same bytes twice, and contains no Secret', async () => {
    const render = () =>
      helm([
        'template',
        release,
        chart,
        '--namespace',
        releaseNamespace,
        '--set',
        'image.registry=localhost,image.tag=e2e',
      ]);
    const first = await render();
    assert.equal(await render(), first);
    assert.doesNotMatch(first, /^kind: Secret$/m);
  });

  test('a value that it does not know is refused', async () => {
    const { helm: program } = await tools();
    for (const value of [
      'controller.replica=1',
      'namespace=x',
      'api.service.type=Cluster',
      'controller.image.digest=latest',
    ]) {
      const { code, stderr } = await finish(program, ['template', release, chart, '--set', value]);
      assert.notEqual(code, 0, value);
      assert.match(stderr, /additional properties|must be one of|must be sha256/, value);
    }
  });

  test('runs its programs as the restricted standard requires', async () => {
    // Asked like this, the API server checks the pods that are there and answers with warnings.
    const label = 'pod-security.kubernetes.io/enforce=restricted';
    const { code, stderr } = await tryKubectl(['label', 'namespace', releaseNamespace, '--dry-run=server', label]);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /violate/);
  });

  test('an upgrade that changes nothing restarts nothing and keeps the master key', async () => {
    const facts = async () => {
      const { items } = await get(['pods', '-n', releaseNamespace]);
      const secret = await get(['secret', `${release}-master-key`, '-n', releaseNamespace]);
      return {
        pods: items
          .filter(({ metadata }: Any) => !metadata.deletionTimestamp)
          .map(({ metadata }: Any) => metadata.uid)
          .sort(),
        key: secret.metadata.uid,
        data: secret.data,
      };
    };
    const before = await facts();
    await install();
    assert.deepEqual(await facts(), before);
  });

  test('two releases live side by side, each with policies of its own', async (t) => {
    const first = await makeNamespace(t);
    const second = await makeNamespace(t);
    const home = await makeNamespace(t);
    t.onTestFinished(() => install());
    await install({ namespaces: [first] });
    t.onTestFinished(async () => {
      await helm(['uninstall', 'second', '--namespace', home, '--wait']);
    });
    const values = ['defaultClass.create', 'pythonClass.create'];
    await helm([
      ...['install', 'second', chart, '--namespace', home, '--wait', '--timeout', '480s'],
      ...[
        ...values.map((value) => `${value}=false`),
        `namespaces={${second}}`,
        'image.registry=localhost,image.tag=e2e',
      ].flatMap((set) => ['--set', set]),
    ]);
    const { items } = await get(['validatingadmissionpolicies']);
    const names = items.map(({ metadata }: Any) => metadata.name).filter((name: string) => /\bberth-/.test(name));
    for (const which of ['requester', 'controller-pods', 'controller-claims', 'controller-networkpolicies']) {
      assert.ok(names.includes(`${release}-${which}.${releaseNamespace}`), names.join());
      assert.ok(names.includes(`second-berth-${which}.${home}`), names.join());
    }
    for (const namespace of [first, second]) {
      await apply(session(namespace, 'asked', { turns: 'One', input: 'hello', requester: 'ann' }));
      const { spec, status } = await ended(namespace, 'asked');
      assert.deepEqual([status.phase, spec.requester], ['Succeeded', 'ann'], JSON.stringify(status));
    }
    // The controller deletes the pod of a finished session, within what the policies of both releases allow.
    await until(second, 'session', 'asked', ({ status }) => status?.phase === 'Finished' && !status.podName);
  });

  test('a pool of the values is taken over from an earlier release’s hook, changed in place, left as it was scaled, and deleted with its entry', async (t) => {
    const namespace = await makeNamespace(t);
    t.onTestFinished(() => install());
    const labels = { 'app.kubernetes.io/managed-by': 'Helm' };
    const annotations = { 'helm.sh/hook': 'post-install,post-upgrade' };
    const metadata = { name: 'default', namespace, labels, annotations };
    const spec = { class: 'default', replicas: 0 };
    await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', metadata, spec });
    const pool = () => get(['sessionpool', 'default', '-n', namespace]);
    const before = await pool();
    await install({ pools: [{ namespace }] });
    await kubectl(['scale', 'sessionpool', 'default', '-n', namespace, '--replicas=2']);
    await install({ pools: [{ namespace }] });
    const after = await pool();
    assert.deepEqual([after.metadata.uid, after.spec.replicas], [before.metadata.uid, 2]);
    await install();
    const { stdout } = await tryKubectl(['get', 'sessionpools', '-n', namespace, '-o', 'name']);
    assert.equal(stdout, '');
  });

  test('sessions, their state and what administrators made of the default class outlive the release', async (t) => {
    const namespace = await makeNamespace(t);
    const script = 'cat >> "$BERTH_STATE_DIR/notes"; cat "$BERTH_STATE_DIR/notes"';
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' };
    await apply(session(namespace, 'notes', { agent }), turn(namespace, 'one', 'notes', '1'));
    await ended(namespace, 'one');
    await helm(['uninstall', release, '--namespace', releaseNamespace, '--wait']);
    await kubectl(['annotate', 'sessionclass', 'default', 'example.com/changed=here', '--overwrite']);
    const { metadata: before } = await get(['sessionclass', 'default']);
    await install();
    const { metadata: after } = await get(['sessionclass', 'default']);
    assert.deepEqual([after.uid, after.annotations], [before.uid, before.annotations]);
    await apply(turn(namespace, 'two', 'notes', '2'));
    const { status } = await ended(namespace, 'two');
    assert.equal(status.output, '12');
  });
});
