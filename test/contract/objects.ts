import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Connect, useBench } from './target.ts';

export function objectContract(connect: Connect): void {
  describe('objects', () => {
    const bench = useBench(connect);

    test('a new object has uid, version, generation 1 and a creation time of whole seconds', async () => {
      const { metadata } = await bench.make();
      assert.match(metadata.uid, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.match(metadata.resourceVersion, /^[1-9]\d*$/);
      assert.equal(metadata.generation, 1);
      assert.match(metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.equal(metadata.namespace, bench.namespace);
    });

    test('generateName makes a name with five more characters', async () => {
      const made = await bench.make({ spec: { size: 1 } }, { name: undefined, generateName: 'gen-' });
      assert.match(made.metadata.name, /^gen-[a-z0-9]{5}$/);
      assert.equal(made.metadata.generateName, 'gen-');
    });

    test('creating a name twice is 409 AlreadyExists', async () => {
      const made = await bench.make();
      const again = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 2 } }, { name: made.metadata.name }),
      );
      assert.equal(again.status, 409);
      assert.equal(again.body.reason, 'AlreadyExists');
      assert.equal(again.body.message, `widgets.contract.berth.dev "${made.metadata.name}" already exists`);
      assert.deepEqual(again.body.details, {
        name: made.metadata.name,
        group: 'contract.berth.dev',
        kind: 'widgets',
      });
    });

    test('a name that is no DNS name is 422 and says so', async () => {
      const { status, body } = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 1 } }, { name: 'Bad_Name' }),
      );
      assert.equal(status, 422);
      assert.equal(body.reason, 'Invalid');
      assert.equal(
        body.message,
        `Widget.contract.berth.dev "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
      );
      assert.equal(body.details.causes[0].field, 'metadata.name');
    });

    test('an object without a name is 422', async () => {
      const { status, body } = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 1 } }, { name: undefined }),
      );
      assert.equal(status, 422);
      assert.match(body.message, /metadata\.name: Required value: name or generateName is required/);
    });

    test('labels and annotations are checked', async () => {
      const bad = bench.widget({ spec: { size: 1 } }, { labels: { 'a b': 'c', ok: 'not ok!' } });
      const { status, body } = await bench.api.post(bench.widgets, bad);
      assert.equal(status, 422);
      assert.match(body.message, /metadata\.labels: Invalid value: "a b": name part must consist of alphanumeric/);
      assert.match(
        body.message,
        /metadata\.labels: Invalid value: "not ok!": a valid label must be an empty string or/,
      );
      const large = bench.widget({ spec: { size: 1 } }, { annotations: { big: 'x'.repeat(262_145) } });
      const refused = await bench.api.post(bench.widgets, large);
      assert.equal(refused.status, 422);
      assert.match(refused.body.message, /metadata\.annotations: Too long: may not be more than 262144 bytes/);
    });

    test('a missing object is 404 NotFound', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}/nobody`);
      assert.equal(status, 404);
      assert.deepEqual(body, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'widgets.contract.berth.dev "nobody" not found',
        reason: 'NotFound',
        details: { name: 'nobody', group: 'contract.berth.dev', kind: 'widgets' },
        code: 404,
      });
      for (const verb of ['PUT', 'PATCH', 'DELETE']) {
        const body = bench.widget({ spec: { size: 1 } }, { name: 'nobody', resourceVersion: '1' });
        const contentType = verb === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
        const sent = verb === 'DELETE' ? {} : { body, contentType };
        assert.equal((await bench.api.call(verb, `${bench.widgets}/nobody`, sent)).status, 404, verb);
      }
    });

    test('creating in a namespace that is not there is 404 and names the namespace', async () => {
      const { status, body } = await bench.api.post(
        '/apis/contract.berth.dev/v1/namespaces/nowhere/widgets',
        bench.widget({ spec: { size: 1 } }),
      );
      assert.equal(status, 404);
      assert.equal(body.message, 'namespaces "nowhere" not found');
    });

    test('an object with another namespace than the path is 400', async () => {
      const widget = bench.widget({ spec: { size: 1 } }, { namespace: 'default' });
      const { status, body } = await bench.api.post(bench.widgets, widget);
      assert.equal(status, 400);
      assert.equal(
        body.message,
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    });

    test('an object with another kind than the path is 422, with another version 400', async () => {
      const kind = await bench.api.post(bench.widgets, { ...bench.widget({ spec: { size: 1 } }), kind: 'Gadget' });
      assert.equal(kind.status, 422);
      assert.match(kind.body.message, /kind: Invalid value: "Gadget": must be Widget/);
      const version = await bench.api.post(bench.widgets, { ...bench.widget(), apiVersion: 'contract.berth.dev/v2' });
      assert.equal(version.status, 400);
      assert.match(version.body.message, /does not match the expected API version \(contract\.berth\.dev\/v1\)/);
      const missing = await bench.api.post(bench.widgets, { metadata: { name: 'x' } });
      assert.equal(missing.status, 400);
    });

    test('a body that is no JSON is 400, one of an unknown encoding 415', async () => {
      const garbage = await bench.api.call('POST', bench.widgets, { raw: '{"kind":' });
      assert.equal(garbage.status, 400);
      assert.equal(garbage.body.reason, 'BadRequest');
      const alien = await bench.api.call('POST', bench.widgets, { raw: 'x', contentType: 'text/plain' });
      assert.equal(alien.status, 415);
      assert.equal(alien.body.reason, 'UnsupportedMediaType');
    });

    test('a write based on an old version is 409 Conflict, the current one succeeds', async () => {
      const made = await bench.make();
      const first = await bench.api.put(bench.at(made), { ...made, spec: { size: 2 } });
      assert.equal(first.status, 200, first.text);
      const second = await bench.api.put(bench.at(made), { ...made, spec: { size: 3 } });
      assert.equal(second.status, 409);
      assert.equal(second.body.reason, 'Conflict');
      assert.equal(
        second.body.message,
        `Operation cannot be fulfilled on widgets.contract.berth.dev "${made.metadata.name}": the object has been modified; please apply your changes to the latest version and try again`,
      );
      assert.equal((await bench.api.get(bench.at(made))).body.spec.size, 2);
    });

    test('a PUT of a custom resource without a version is 422', async () => {
      const made = await bench.make();
      const { status, body } = await bench.api.put(
        bench.at(made),
        bench.widget({ spec: { size: 2 } }, { name: made.metadata.name }),
      );
      assert.equal(status, 422);
      const text = `widgets.contract.berth.dev "${made.metadata.name}" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`;
      assert.equal(bench.words(body.message), bench.words(text));
    });

    test('a PUT of a built-in kind without a version replaces it', async () => {
      const name = bench.name('cm');
      await bench.api.post(`${bench.core}/configmaps`, { metadata: { name }, data: { a: '1' } });
      const put = await bench.api.put(`${bench.core}/configmaps/${name}`, { metadata: { name }, data: { b: '2' } });
      assert.equal(put.status, 200, put.text);
      assert.deepEqual(put.body.data, { b: '2' });
    });

    test('the uid in an update is a precondition', async () => {
      const made = await bench.make();
      const other = { ...made, metadata: { ...made.metadata, uid: '11111111-1111-1111-1111-111111111111' } };
      const { status, body } = await bench.api.put(bench.at(made), other);
      assert.equal(status, 409);
      assert.match(body.message, /Precondition failed: UID in precondition: 11111111-1111-1111-1111-111111111111/);
    });

    test('the uid in a patch cannot be another, and a version in it is compared first', async () => {
      const made = await bench.make();
      const uid = '11111111-1111-1111-1111-111111111111';
      const patch = (metadata: object) => bench.api.patch(bench.at(made), { metadata }, 'merge');
      const { status, body } = await patch({ uid });
      assert.equal(status, 422);
      assert.match(
        body.message,
        /metadata\.uid: Invalid value: "11111111-1111-1111-1111-111111111111": field is immutable/,
      );
      assert.equal(body.details.causes[0].field, 'metadata.uid');
      assert.equal((await patch({ uid, resourceVersion: '1' })).status, 409);
      assert.equal((await patch({ uid: made.metadata.uid })).status, 200);
    });

    test('the name cannot be changed', async () => {
      const made = await bench.make();
      const put = await bench.api.put(bench.at(made), { ...made, metadata: { ...made.metadata, name: 'other' } });
      assert.equal(put.status, 400);
      assert.match(put.body.message, /the name of the object \(other\) does not match the name on the URL/);
    });

    test('an update that changes nothing writes nothing', async () => {
      const made = await bench.make();
      const put = await bench.api.put(bench.at(made), made);
      assert.equal(put.body.metadata.resourceVersion, made.metadata.resourceVersion);
      const patched = await bench.api.patch(bench.at(made), { spec: { size: 1 } });
      assert.equal(patched.body.metadata.resourceVersion, made.metadata.resourceVersion);
    });

    test('generation counts changes of the spec, not of metadata or status', async () => {
      const made = await bench.make();
      const labelled = await bench.api.patch(bench.at(made), { metadata: { labels: { a: 'b' } } });
      assert.equal(labelled.body.metadata.generation, 1);
      const status = await bench.api.patch(`${bench.at(made)}/status`, { status: { phase: 'Running' } });
      assert.equal(status.body.metadata.generation, 1);
      const changed = await bench.api.patch(bench.at(made), { spec: { size: 2 } });
      assert.equal(changed.body.metadata.generation, 2);
      const forced = await bench.api.patch(bench.at(made), { metadata: { generation: 9 } });
      assert.equal(forced.body.metadata.generation, 2);
    });

    test('system metadata in a create is replaced by the server', async () => {
      const made = await bench.make(
        { spec: { size: 1 } },
        {
          uid: 'mine',
          creationTimestamp: '2001-01-01T00:00:00Z',
          generation: 7,
          deletionTimestamp: '2001-01-01T00:00:00Z',
        },
      );
      assert.notEqual(made.metadata.uid, 'mine');
      assert.notEqual(made.metadata.creationTimestamp, '2001-01-01T00:00:00Z');
      assert.equal(made.metadata.generation, 1);
      assert.equal(made.metadata.deletionTimestamp, undefined);
    });

    test('a resourceVersion in a create is refused', async () => {
      const widget = bench.widget({ spec: { size: 1 } }, { resourceVersion: '1' });
      const { status, body } = await bench.api.post(bench.widgets, widget);
      assert.equal(status, 500);
      assert.equal(body.message, 'resourceVersion should not be set on objects to be created');
    });

    test('a dry run answers as the write would and stores nothing', async () => {
      const name = bench.name();
      const dry = await bench.api.post(`${bench.widgets}?dryRun=All`, bench.widget({ spec: { size: 1 } }, { name }));
      assert.equal(dry.status, 201);
      assert.equal(dry.body.spec.replicas, 1);
      assert.equal((await bench.api.get(`${bench.widgets}/${name}`)).status, 404);
      const made = await bench.make();
      await bench.api.call('PATCH', `${bench.at(made)}?dryRun=All`, {
        body: { spec: { size: 50 } },
        contentType: 'application/merge-patch+json',
      });
      await bench.api.call('DELETE', `${bench.at(made)}?dryRun=All`);
      assert.equal((await bench.api.get(bench.at(made))).body.spec.size, 1);
    });

    test('stringData of a Secret becomes base64 data', async () => {
      const name = bench.name('sec');
      const { body, status } = await bench.api.post(`${bench.core}/secrets`, {
        metadata: { name },
        stringData: { token: 'hello' },
      });
      assert.equal(status, 201);
      assert.deepEqual(body.data, { token: Buffer.from('hello').toString('base64') });
      assert.equal(body.stringData, undefined);
      assert.equal(body.type, 'Opaque');
    });

    test('a body over 3 MiB is 413', async () => {
      const raw = JSON.stringify(bench.widget({ spec: { size: 1, any: { x: 'x'.repeat(3_200_000) } } }));
      const { status, body } = await bench.api.call('POST', bench.widgets, { raw });
      assert.equal(status, 413);
      assert.equal(body.reason, 'RequestEntityTooLarge');
      assert.match(body.message, /limit is 3145728/);
    });

    test('an object that is too large to store is 500 with the words of etcd', async () => {
      const { status, body } = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 1, any: { x: 'x'.repeat(2_000_000) } } }),
      );
      assert.equal(status, 500);
      assert.equal(body.message, 'etcdserver: request is too large');
    });
  });
}
