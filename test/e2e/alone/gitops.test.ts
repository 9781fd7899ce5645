import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Any, apply, checkout, helm, kubectl, remove, tryKubectl } from '../support/cluster.ts';

/** Field manager of a tool that applies what Git has. */
const MANAGER = 'gitops';

/**
 * Fields that the API server or the cluster adds, and that the charts leave to it. Path, as in `Deployment spec.replicas`, and reason.
 * `[]` stands for each item of a list.
 */
const ADDED = new Map([
  ['Service spec.clusterIP', 'given by the cluster'],
  ['Service spec.clusterIPs', 'given by the cluster'],
  ['Service spec.ipFamilies', 'those of the cluster'],
  ['Service spec.ipFamilyPolicy', 'that of the cluster'],
  ['Service spec.ports[].nodePort', 'given by the cluster'],
  ['Deployment spec.template.spec.serviceAccount', 'a deprecated copy of serviceAccountName'],
]);

/** Paths below `path` at which two values differ. */
function differences(wanted: Any, live: Any, path: string): string[] {
  if (typeof wanted !== 'object' || typeof live !== 'object' || wanted === null || live === null)
    return wanted === live ? [] : [path];
  if (Array.isArray(wanted) !== Array.isArray(live)) return [path];
  const keys = new Set([...Object.keys(wanted), ...Object.keys(live)]);
  return [...keys].flatMap((key) => {
    const below = Array.isArray(wanted) ? `${path}[]` : `${path}${path.endsWith(' ') ? '' : '.'}${key}`;
    return differences(wanted[key], live[key], below);
  });
}

/** Paths at which what the API server has differs from what was applied, without those of `ADDED`. */
function drift(wanted: Any, live: Any): string[] {
  const { metadata, status: _, ...rest } = wanted;
  const { metadata: liveMetadata, status: __, ...liveRest } = live;
  const found = differences(rest, liveRest, `${wanted.kind} `);
  for (const part of ['labels', 'annotations']) {
    for (const [name, value] of Object.entries(metadata[part] ?? {}))
      if (liveMetadata[part]?.[name] !== value) found.push(`${wanted.kind} metadata.${part}.${name}`);
  }
  return found.filter((path) => !ADDED.has(path)).map((path) => `${path} of ${metadata.name}`);
}

/** Paths at which the objects of `input`, a text of YAML, differ from those that the API server has. */
function drifts(input: string, items: Any[]): string[] {
  const wanted: Any[] = parseAllDocuments(input).flatMap((document) => document.toJS() ?? []);
  const id = ({ kind, metadata }: Any) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  const live = new Map(items.map((object) => [id(object), object]));
  assert.deepEqual([...live.keys()].toSorted(), wanted.map(id).toSorted());
  return wanted.flatMap((object) => drift(object, live.get(id(object))));
}

async function namespaceFor(t: TestContext): Promise<string> {
  const name = `e2e-${randomBytes(4).toString('hex')}`;
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  t.onTestFinished(() => remove('namespace', name));
  return name;
}

/** Everything that the chart can render of kinds that every cluster has, for a release that serves the namespace. */
const everything = (namespace: string) => ({
  namespaces: [namespace],
  pools: [{ namespace, name: 'pool', replicas: 0 }],
  quotas: [{ namespace, sessions: 200, turns: 5000, storeBytes: 1_000_000 }],
  'networkPolicies.enabled': true,
  'image.pullSecrets': ['pull'],
  'metrics.annotations': true,
  'metrics.readers': [{ namespace: 'monitoring', name: 'prometheus' }],
  'api.enter.enabled': true,
  'api.tls.secretName': 'cert',
  'api.service.type': 'LoadBalancer',
  'api.ingress': { enabled: true, host: 'berth.example.com', className: 'none', tlsSecretName: 'cert' },
});

describe('a tool that applies the charts from Git', () => {
  for (const [title, more] of [
    ['by default', () => ({})],
    ['with everything switched on', everything],
  ] as const) {
    test(`finds what it applied, ${title}, and nothing to apply again`, async (t) => {
      const namespace = await namespaceFor(t);
      const values: Record<string, unknown> = {
        // Neither pods nor classes that others use.
        'image.registry': 'registry.example.com',
        'image.tag': 'none',
        'controller.replicas': 0,
        'api.replicas': 0,
        'defaultClass.name': `${namespace}-default`,
        'pythonClass.name': `${namespace}-python`,
        ...more(await namespaceFor(t)),
      };
      const sets = Object.entries(values).flatMap(([name, value]) => [
        '--set-json',
        `${name}=${JSON.stringify(value)}`,
      ]);
      const input = await helm([
        'template',
        namespace,
        join(checkout, 'charts/berth'),
        '-n',
        namespace,
        '--no-hooks',
        ...sets,
      ]);
      t.onTestFinished(async () => {
        await kubectl(['delete', '-f', '-', '--ignore-not-found', '--wait=false'], { input });
      });
      await kubectl(['apply', '--server-side', `--field-manager=${MANAGER}`, '-f', '-'], { input });
      const { items } = JSON.parse(await kubectl(['get', '-f', '-', '-o', 'json'], { input }));
      assert.deepEqual(drifts(input, items), []);
      const again = ['diff', '--server-side', `--field-manager=${MANAGER}`, '-f', '-'];
      const { code, stdout, stderr } = await tryKubectl(again, { input });
      assert.deepEqual([code, stdout], [0, ''], stderr);
    });
  }

  test('finds the CRDs as it would apply them', async () => {
    const input = await helm(['template', 'crds', join(checkout, 'charts/berth-crds')]);
    const dryRun = ['apply', '--server-side', '--force-conflicts', `--field-manager=${MANAGER}`, '--dry-run=server'];
    const { items } = JSON.parse(await kubectl([...dryRun, '-o', 'json', '-f', '-'], { input }));
    assert.deepEqual(drifts(input, items), []);
  });
});
