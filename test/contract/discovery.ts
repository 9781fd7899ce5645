import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { OLDEST_SUPPORTED } from '../../core/kube/server-version.ts';
import { eventually } from '../support/eventually.ts';
import { type Connect, useBench } from './target.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

const gadget = (plural: string, schema: object) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.contract.berth.dev` },
  spec: {
    group: 'contract.berth.dev',
    scope: 'Cluster',
    names: { plural, kind: plural[0]?.toUpperCase() + plural.slice(1) },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
});

export function discoveryContract(connect: Connect): void {
  describe('discovery and definitions', () => {
    const bench = useBench(connect);
    beforeAll(async () => {
      // A kind is served before it is listed.
      for (const [path, accept] of [
        ['/apis/contract.berth.dev/v1', 'application/json'],
        ['/apis', aggregated],
      ] as const) {
        await eventually(async () => (await bench.api.get(path, { accept })).text.includes('"widgets"'), {
          what: `${path} lists the widgets`,
        });
      }
    });

    test('the version is one that Berth supports', async () => {
      const { body } = await bench.api.get('/version');
      assert.equal(body.major, '1');
      assert.ok(Number.parseInt(body.minor, 10) >= OLDEST_SUPPORTED.minor, body.minor);
      assert.match(body.gitVersion, /^v1\.\d+\.\d+/);
    });

    test('the server says that it is well', async () => {
      for (const path of ['/healthz', '/livez', '/readyz']) assert.equal((await bench.api.get(path)).text, 'ok', path);
    });

    test('a group lists its resources with subresources, short names and categories', async () => {
      const { body } = await bench.api.get('/apis/contract.berth.dev/v1');
      assert.equal(body.kind, 'APIResourceList');
      assert.equal(body.groupVersion, 'contract.berth.dev/v1');
      const find = (name: string) => body.resources.find((resource: { name: string }) => resource.name === name);
      const { kind, namespaced, shortNames, categories, verbs, singularName } = find('widgets');
      assert.deepEqual(
        { kind, namespaced, shortNames, categories, singularName },
        { kind: 'Widget', namespaced: true, shortNames: ['wd'], categories: ['contract'], singularName: 'widget' },
      );
      assert.deepEqual(verbs.toSorted(), [
        'create',
        'delete',
        'deletecollection',
        'get',
        'list',
        'patch',
        'update',
        'watch',
      ]);
      assert.equal(find('widgets/status').kind, 'Widget');
      assert.equal(find('widgets/scale').kind, 'Scale');
    });

    test('clients can ask for all of discovery in one document', async () => {
      for (const path of ['/api', '/apis']) {
        const { body, headers } = await bench.api.get(path, { accept: `${aggregated},application/json` });
        assert.equal(body.kind, 'APIGroupDiscoveryList', path);
        assert.equal(body.apiVersion, 'apidiscovery.k8s.io/v2');
        assert.match(String(headers['content-type']), /as=APIGroupDiscoveryList/);
      }
      const { body } = await bench.api.get('/apis', { accept: aggregated });
      const group = body.items.find(
        (item: { metadata: { name: string } }) => item.metadata.name === 'contract.berth.dev',
      );
      const widgets = group.versions[0].resources.find((r: { resource: string }) => r.resource === 'widgets');
      assert.deepEqual(widgets.responseKind, { group: 'contract.berth.dev', version: 'v1', kind: 'Widget' });
      assert.equal(widgets.scope, 'Namespaced');
      assert.ok(widgets.subresources.some((s: { subresource: string }) => s.subresource === 'status'));
    });

    test('OpenAPI v3 describes the kinds that are served', async () => {
      const document = await eventually(
        async () => {
          const index = await bench.api.get('/openapi/v3');
          const entry = index.body.paths['apis/contract.berth.dev/v1'];
          return entry && (await bench.api.get(entry.serverRelativeURL)).body;
        },
        { what: 'the group is described' },
      );
      const schema = Object.values(document.components.schemas).find((each) =>
        (each as { 'x-kubernetes-group-version-kind'?: { kind: string }[] })['x-kubernetes-group-version-kind']?.some(
          ({ kind }) => kind === 'Widget',
        ),
      ) as { properties: { spec: { properties: { size: { type: string } } } } };
      assert.equal(schema.properties.spec.properties.size.type, 'integer');
      const path = document.paths['/apis/contract.berth.dev/v1/namespaces/{namespace}/widgets/{name}'];
      const parameters = path.patch.parameters.map((each: { name: string }) => each.name);
      assert.ok(parameters.includes('fieldValidation') && parameters.includes('dryRun'));
      assert.equal(path.get['x-kubernetes-group-version-kind'].kind, 'Widget');
    });

    test('a path that nothing is served at is 404', async () => {
      for (const path of [
        '/nothing',
        '/apis/no.such.group/v1/things',
        '/api/v1/things',
        `${bench.widgets}/x/nothing`,
      ]) {
        assert.equal((await bench.api.get(path)).status, 404, path);
      }
    });

    test('a verb that a resource does not have is 405', async () => {
      const { status, body } = await bench.api.get('/apis/authentication.k8s.io/v1/tokenreviews');
      assert.equal(status, 405);
      assert.equal(body.reason, 'MethodNotAllowed');
    });

    test('a definition is established, serves its kind, follows updates, and takes its objects with it', async () => {
      const plural = `gadgets${bench.namespace.replaceAll(/[^a-z]/g, '')}`;
      const schema = {
        type: 'object',
        properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
      };
      const made = await bench.api.post(definitions, gadget(plural, schema));
      assert.equal(made.status, 201, made.text);
      const established = await eventually(async () => {
        const { body } = await bench.api.get(`${definitions}/${plural}.contract.berth.dev`);
        const conditions: { type: string; status: string }[] = body.status?.conditions ?? [];
        return conditions.some(({ type, status }) => type === 'Established' && status === 'True') && body;
      });
      assert.equal(established.status.acceptedNames.plural, plural);
      assert.deepEqual(established.status.storedVersions, ['v1']);
      const base = `/apis/contract.berth.dev/v1/${plural}`;
      await eventually(async () => (await bench.api.get(base)).status === 200);
      const object = {
        apiVersion: 'contract.berth.dev/v1',
        kind: established.spec.names.kind,
        metadata: { name: 'one' },
      };
      const first = await bench.api.post(base, { ...object, spec: { a: 'x', b: 'y' } });
      assert.deepEqual(first.body.spec, { a: 'x' });

      const wider = {
        type: 'object',
        properties: {
          spec: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string', default: 'new' } } },
        },
      };
      // The server writes to a definition as well, for as long as it has something to say of it.
      await eventually(
        async () => {
          const current = (await bench.api.get(`${definitions}/${plural}.contract.berth.dev`)).body;
          current.spec.versions[0].schema.openAPIV3Schema = wider;
          const updated = await bench.api.put(`${definitions}/${plural}.contract.berth.dev`, current);
          assert.equal(updated.status, 200, updated.text);
          return true;
        },
        { what: 'the definition is replaced' },
      );
      await eventually(async () => (await bench.api.get(`${base}/one`)).body.spec.b === 'new', {
        what: 'what was stored before is shown with the new default',
      });
      // A watch of it ends with its objects. One that is opened while the server still changes over to the new schema ends
      // without any event (apiextensions-apiserver closes the old storage), so the first that shows the object counts.
      const watch = await eventually(
        async () => {
          const opened = await bench.api.watch(`${base}?watch=true`);
          return (await opened.next())?.type === 'ADDED' ? opened : undefined;
        },
        { timeoutMs: 180_000, what: 'a watch that shows the object' },
      );
      await bench.api.delete(`${definitions}/${plural}.contract.berth.dev`);
      let event = await watch.next();
      while (event?.type === 'MODIFIED') event = await watch.next();
      assert.equal(event?.type, 'DELETED');
      assert.equal(await watch.next(), undefined);
      await eventually(async () => (await bench.api.get(base)).status === 404, {
        timeoutMs: 180_000,
        what: 'it is gone',
      });
    });

    for (const [what, schema, message] of [
      [
        'a field without a type',
        { type: 'object', properties: { spec: {} } },
        /properties\[spec\]\.type: Required value/,
      ],
      [
        'a rule that cannot be compiled',
        {
          type: 'object',
          properties: { spec: { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.a ==' }] } },
        },
        /x-kubernetes-validations\[0\]\.rule: Invalid value: .*compilation failed/s,
      ],
      [
        'properties beside additionalProperties',
        {
          type: 'object',
          properties: {
            spec: { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
          },
        },
        /additionalProperties: Forbidden/,
      ],
    ] as const) {
      test(`a definition with ${what} is 422`, async () => {
        const { status, body } = await bench.api.post(`${definitions}?dryRun=All`, gadget('badgets', schema));
        assert.equal(status, 422);
        assert.match(body.message, message);
      });
    }

    test('a definition whose name does not fit is 422', async () => {
      const { status, body } = await bench.api.post(`${definitions}?dryRun=All`, {
        ...gadget('badgets', { type: 'object' }),
        metadata: { name: 'other.contract.berth.dev' },
      });
      assert.equal(status, 422);
      assert.match(
        body.message,
        /metadata\.name: Invalid value: "other\.contract\.berth\.dev": must be spec\.names\.plural\+"\."\+spec\.group/,
      );
    });
  });
}
