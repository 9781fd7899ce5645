import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { tools } from '../support/tools.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');

interface Role {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules: { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }[];
}

function rolesIn(text: string): Role[] {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Role | null);
  return objects.filter((object): object is Role => object?.kind === 'ClusterRole' || object?.kind === 'Role');
}

/** Lists every right once, sorted, in the form "berth.dev/sessions watch". */
function rightsOf(roles: Role[]): string[] {
  const rights = roles.flatMap(({ rules }) =>
    rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => `${group}/${resource} ${verb} ${resourceNames?.join() ?? ''}`.trim()),
        ),
      ),
    ),
  );
  return [...new Set(rights)].sort();
}

describe('the rights of the programs', () => {
  let embedded: Role[];
  beforeAll(async () => {
    embedded = rolesIn(await readFile(join(CHECKOUT, 'manifests', 'embedded', 'rbac.yaml'), 'utf8'));
  });
  const render = async (...more: string[]) => {
    const { helm } = await tools();
    const args = ['template', 'berth', join(CHECKOUT, 'charts', 'berth'), '--namespace', 'berth-system', ...more];
    const { stdout } = await promisify(execFile)(helm, args, { maxBuffer: 16 * 1024 * 1024 });
    return rolesIn(stdout);
  };
  const of = (program: string, roles: Role[], kind: string) =>
    rightsOf(roles.filter((role) => role.kind === kind && new RegExp(`\\bberth-${program}`).test(role.metadata.name)));

  test('are the same on the embedded cluster and by the chart', async () => {
    const chart = await render();
    for (const program of ['api', 'controller']) {
      for (const kind of ['ClusterRole', 'Role']) {
        assert.deepEqual(of(program, embedded, kind), of(program, chart, kind), `${kind} of the ${program}`);
      }
    }
    assert.ok(of('api', chart, 'ClusterRole').includes('berth.dev/sessions watch'));
  });

  test('of the API are the same in each of the namespaces that are listed', async () => {
    const chart = await render('--set', 'namespaces={one,two}');
    for (const namespace of ['one', 'two']) {
      const there = chart.filter(({ kind, metadata }) => kind === 'ClusterRole' || metadata.namespace === namespace);
      const rights = rightsOf(there.filter(({ metadata }) => /\bberth-api$/.test(metadata.name)));
      assert.deepEqual(rights, of('api', embedded, 'ClusterRole'));
    }
  });
});
