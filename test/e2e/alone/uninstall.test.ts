import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { CHECKOUT, commands } from '../../support/pages.ts';
import { tools } from '../../support/tools.ts';
import {
  type Any,
  apply,
  ended,
  finish,
  get,
  kubectl,
  makeNamespace,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { full, makeClass, pool } from '../support/pools.ts';
import { install } from '../support/release.ts';
import { makeVolume } from '../support/volume.ts';

/** Other kinds that Berth makes objects of. */
const KINDS = [
  ...['pods', 'persistentvolumeclaims', 'secrets', 'configmaps', 'serviceaccounts', 'services', 'resourcequotas'],
  ...['deployments', 'poddisruptionbudgets', 'networkpolicies', 'leases', 'roles', 'rolebindings', 'clusterroles'],
  ...['clusterrolebindings', 'flowschemas', 'customresourcedefinitions', 'namespaces'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
];
/** Names of Berth's objects: those of pods and volumes begin with the UID of a Session or a SessionPool. */
const OURS = /berth|^[swp]-[0-9a-f]{8}-/;

/** Objects of the tests' cluster, which is called berth, and of other tests. */
const OTHERS = /^(?:\w+-)*berth-(?:control-plane|worker)$|\.contract\.berth\.dev$/;

/** Every object in the cluster that is Berth's by its name or its labels, as kind/namespace/name. */
async function ours(): Promise<string[]> {
  const { items } = await get([KINDS.join(), '-A']);
  return items
    .filter(({ metadata: { name, labels = {} } }: Any) => {
      if (OTHERS.test(name)) return false;
      return (
        OURS.test(name) ||
        labels['app.kubernetes.io/managed-by'] === 'berth' ||
        Object.keys(labels).some((key) => key.startsWith('berth.dev/'))
      );
    })
    .map(({ kind, metadata: { namespace = '', name } }: Any) => `${kind}/${namespace}/${name}`)
    .sort();
}

test('the commands of the page on uninstalling leave no object, pod, policy or volume, with pools, running and suspended sessions', async (t) => {
  const namespace = await makeNamespace(t);
  const storageClassName = await makeVolume(t, namespace);
  const name = await makeClass(t, namespace, {
    agent: { command: ['sh', '-c', 'echo >"$BERTH_STATE_DIR/note"; cat'], input: 'Text', result: 'Text' },
  });
  // The class and the volume are removed by their kinds, which are there again by then.
  t.onTestFinished(() => install());
  const workspace = { type: 'Volume', size: '16Mi', storageClassName };
  await apply(pool(namespace, 'warm', { class: name, replicas: 1 }));
  await full(namespace);
  await apply(
    session(namespace, 'suspended', { class: name, agent: undefined, persistence: { workspace } }),
    turn(namespace, 'suspended-1', 'suspended', 'hello'),
    session(namespace, 'running', { class: name, agent: { command: ['sleep', '3600'] } }),
    turn(namespace, 'running-1', 'running', ''),
  );
  assert.equal((await ended(namespace, 'suspended-1')).status.phase, 'Succeeded');
  await kubectl([
    'patch',
    'session',
    'suspended',
    '-n',
    namespace,
    '--type=merge',
    '-p',
    '{"spec":{"suspendRequest":"now"}}',
  ]);
  await until(namespace, 'session', 'suspended', ({ status }) => status.phase === 'Suspended');
  await until(namespace, 'turn', 'running-1', ({ status }) => status?.phase === 'Running');
  const before = await ours();
  for (const kind of [
    'Pod',
    'PersistentVolumeClaim',
    'NetworkPolicy',
    'Secret',
    'FlowSchema',
    'CustomResourceDefinition',
  ]) {
    assert.ok(
      before.some((object) => object.startsWith(`${kind}/`)),
      `there is a ${kind}: ${before.join(' ')}`,
    );
  }

  const { helm, kubectl: program } = await tools();
  const page = await readFile(join(CHECKOUT, 'docs/install.md'), 'utf8');
  const begin = page.slice(0, page.indexOf('\n### Uninstalling\n')).split('\n').length;
  const lines = commands('docs/install.md')
    .filter(({ line }) => line > begin)
    .map(({ typed }) => typed);
  assert.ok(lines.length >= 5, 'the page has the commands');
  for (const line of lines) {
    const script = line.replace(/^helm /, `${helm} `).replace(/^kubectl /, `${program} `);
    const { code, stdout, stderr } = await finish('bash', ['-c', script], { cwd: CHECKOUT, timeoutMs: 300_000 });
    assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
  }
  const gone = eventually(async () => (await ours()).length === 0, { timeoutMs: 120_000, what: 'everything is gone' });
  await gone.catch(async (error: Error) => {
    throw new Error(`${error.message}: ${(await ours()).join(' ')}`, { cause: error });
  });
});
