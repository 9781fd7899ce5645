import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type TestServer, testServer } from '../support/api-server.ts';
import { type Any, CHARTS, REQUIRED, render, renderWithTests } from '../support/chart.ts';
import { RawApi } from '../support/raw-api.ts';
import { tools } from '../support/tools.ts';

const CHECKOUT = join(CHARTS, '..');
const FORMER_VALUE = /crds.install is gone: the CRDs are in a chart of their own, berth-crds/;

const objectsIn = (text: string): Any[] => parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);

async function helm(env: Record<string, string>, ...args: string[]): Promise<Any[]> {
  const options = { env: { ...process.env, ...env }, maxBuffer: 16 * 1024 * 1024, timeout: 60_000 };
  return objectsIn((await promisify(execFile)((await tools()).helm, args, options)).stdout);
}

const definitions = () => helm({ KUBECONFIG: '/dev/null' }, 'template', 'crds', join(CHARTS, 'berth-crds'));

describe('the CRDs', () => {
  test('are the chart berth-crds, which keeps them when it is uninstalled, and no part of the chart berth', async () => {
    const files = (await readdir(join(CHECKOUT, 'manifests'))).filter((name) => name.endsWith('.yaml'));
    const plain = await Promise.all(
      files.map(async (name) => parse(await readFile(join(CHECKOUT, 'manifests', name), 'utf8'))),
    );
    const byName = (objects: Any[]) => objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8'));
    const annotations = { 'berth.dev/release': version, 'helm.sh/resource-policy': 'keep' };
    const expected = plain.map((object) => ({ ...object, metadata: { ...object.metadata, annotations } }));
    assert.deepEqual(byName(await definitions()), byName(expected));
    assert.ok(!(await render()).some(({ kind }) => kind === 'CustomResourceDefinition'));
  });

  test('are of the release and for the Kubernetes of the chart berth', async () => {
    const { version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8'));
    const [berth, crds] = await Promise.all(
      ['berth', 'berth-crds'].map(async (name) => parse(await readFile(join(CHARTS, name, 'Chart.yaml'), 'utf8'))),
    );
    const of = ({ version, appVersion, kubeVersion }: Any) => ({ version, appVersion, kubeVersion });
    assert.deepEqual(of(crds), of(berth));
    assert.deepEqual(of(berth), { version, appVersion: version, kubeVersion: berth.kubeVersion });
  });

  test('are where the value crds.install of earlier charts was, says the chart', async () => {
    await assert.rejects(render('crds.install=true'), FORMER_VALUE);
    await assert.rejects(render('crds.install=false'), FORMER_VALUE);
  });
});

describe('the chart berth on a cluster', () => {
  let server: TestServer;
  let api: RawApi;
  let folder: string;
  beforeAll(async () => {
    server = await testServer();
    api = new RawApi(server.connection);
    folder = await mkdtemp(join(tmpdir(), 'berth-chart-'));
    await writeFile(join(folder, 'kubeconfig'), JSON.stringify(server.kubeconfig('test-admin')));
    // Helm looks up the kind of each object that it renders, and the embedded API server has none of these.
    const lacking = /\/(?:api|controller\/d[^/]*\.yaml|flowschemas\.yaml)$/;
    const filter = (path: string) => !lacking.test(path);
    await cp(join(CHARTS, 'berth'), join(folder, 'berth'), { recursive: true, filter });
  });
  afterAll(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Renders the chart as an installation does: Helm asks the cluster, and writes nothing. */
  const seen = (...values: string[]) =>
    helm(
      { KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder },
      ...[
        'template',
        'berth',
        join(folder, 'berth'),
        '--namespace',
        'berth-system',
        '--dry-run=server',
        '--take-ownership',
      ],
      ...[...REQUIRED, ...values].flatMap((value) => ['--set', value]),
    );
  /** Creates the CRDs that are missing. */
  const installDefinitions = async () => {
    const made = await definitions();
    for (const object of made) {
      const { status, text } = await api.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object);
      assert.ok(status === 201 || status === 409, text);
    }
    return made;
  };
  const classes = async (...values: string[]) =>
    (await seen(...values))
      .filter(({ kind }) => kind === 'SessionClass')
      .map(({ metadata }) => `${metadata.name} ${metadata.annotations['helm.sh/hook'] ?? 'plain'}`);

  test('says what to install first while it has no CRDs, or those of an earlier release', async () => {
    await assert.rejects(
      seen(),
      /the cluster has no kind Session of berth.dev\/v1alpha1. Install the chart berth-crds of this release first: helm upgrade --install berth-crds/,
    );
    const made = await installDefinitions();
    const release = async (value: string | null) => {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sessions.berth.dev';
      const body = { metadata: { annotations: { 'berth.dev/release': value } } };
      const { status, text } = await api.patch(path, body);
      assert.equal(status, 200, text);
    };
    await release(null);
    await assert.rejects(seen(), /the CRDs in the cluster are not of the chart berth-crds. Install the chart/);
    await release('0.0.1');
    await assert.rejects(seen(), /are of release 0.0.1, and this chart is of release [\d.]+. Install the chart/);
    for (const newer of ['99.0.0', made[0].metadata.annotations['berth.dev/release']]) {
      await release(newer);
      assert.ok((await seen()).length > 0);
    }
  });

  test('creates a class once, and owns one only where that is said', async () => {
    await installDefinitions();
    assert.deepEqual(await classes(), ['default post-install', 'python post-install,post-upgrade']);
    const existing = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name: 'default' },
      spec: {},
    };
    const { status, text } = await api.post('/apis/berth.dev/v1alpha1/sessionclasses', existing);
    assert.equal(status, 201, text);
    assert.deepEqual(await classes(), ['python post-install,post-upgrade']);
    assert.deepEqual(await classes('defaultClass.manage=true'), ['default plain', 'python post-install,post-upgrade']);
    assert.deepEqual(await classes('pythonClass.create=false'), []);
  });
});

describe('the chart berth rendered without a cluster', () => {
  test('has no hooks but those of `helm test`: its classes and pools are objects like the others, and the classes are kept', async () => {
    const objects = await renderWithTests('pools[0].namespace=team-a');
    const hooks = objects.flatMap(({ metadata }) => metadata.annotations?.['helm.sh/hook'] ?? []);
    assert.deepEqual([...new Set(hooks)], ['test']);
    const made = objects.filter(({ apiVersion }) => apiVersion === 'berth.dev/v1alpha1');
    assert.deepEqual(
      made.map(({ kind, metadata }) => [kind, metadata.name, metadata.annotations?.['helm.sh/resource-policy']]),
      [
        ['SessionClass', 'default', 'keep'],
        ['SessionClass', 'python', 'keep'],
        ['SessionPool', 'default', undefined],
      ],
    );
    const without = await render('defaultClass.create=false', 'pythonClass.create=false');
    assert.ok(!without.some(({ kind }) => kind === 'SessionClass'));
  });
});
