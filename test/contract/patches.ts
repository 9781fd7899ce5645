import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Connect, useBench } from './target.ts';

export function patchContract(connect: Connect): void {
  describe('patches', () => {
    const bench = useBench(connect);

    test('a merge patch merges objects, replaces lists and removes by null', async () => {
      const made = await bench.make({ spec: { size: 1, label: 'abc', tags: ['a'], options: { a: '1', b: '2' } } });
      const { body } = await bench.api.patch(bench.at(made), {
        spec: { label: null, tags: ['b', 'c'], options: { a: null, c: '3' } },
      });
      assert.equal(body.spec.label, undefined);
      assert.deepEqual(body.spec.tags, ['b', 'c']);
      assert.deepEqual(body.spec.options, { b: '2', c: '3' });
      assert.equal(body.spec.size, 1);
    });

    test('a JSON patch adds, replaces, moves, copies, tests and removes', async () => {
      const made = await bench.make({ spec: { size: 1, tags: ['a', 'c'], options: { 'a/b': '1' } } });
      const { status, body, text } = await bench.api.patch(
        bench.at(made),
        [
          { op: 'test', path: '/spec/size', value: 1 },
          { op: 'add', path: '/spec/tags/1', value: 'b' },
          { op: 'replace', path: '/spec/size', value: 2 },
          { op: 'copy', from: '/spec/options/a~1b', path: '/spec/options/copied' },
          { op: 'move', from: '/spec/options/a~1b', path: '/spec/options/moved' },
          { op: 'remove', path: '/spec/tags/0' },
          { op: 'add', path: '/metadata/labels', value: { x: 'y' } },
        ],
        'json',
      );
      assert.equal(status, 200, text);
      assert.equal(body.spec.size, 2);
      assert.deepEqual(body.spec.tags, ['b', 'c']);
      assert.deepEqual(body.spec.options, { copied: '1', moved: '1' });
      assert.deepEqual(body.metadata.labels, { x: 'y' });
    });

    test('a JSON patch whose test fails changes nothing and is 422', async () => {
      const made = await bench.make();
      const operations = [
        { op: 'replace', path: '/spec/size', value: 9 },
        { op: 'test', path: '/spec/size', value: 1 },
      ];
      const { status, body } = await bench.api.patch(bench.at(made), operations, 'json');
      assert.equal(status, 422);
      assert.equal(body.reason, 'Invalid');
      assert.equal(body.message, 'the server rejected our request due to an error in our request');
      assert.equal((await bench.api.get(bench.at(made))).body.spec.size, 1);
    });

    test('patches that are none are 400', async () => {
      const made = await bench.make();
      assert.equal((await bench.api.patch(bench.at(made), [], 'merge')).status, 400);
      assert.equal((await bench.api.patch(bench.at(made), {}, 'json')).status, 400);
    });

    test('a custom resource takes no strategic merge patch: 415 with what it takes', async () => {
      const made = await bench.make();
      const { status, body } = await bench.api.patch(bench.at(made), { spec: { size: 2 } }, 'strategic');
      assert.equal(status, 415);
      assert.equal(
        body.message,
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
      );
    });

    test('a strategic merge patch merges lists of a built-in kind by key', async () => {
      const name = bench.name('pod');
      const pod = {
        metadata: { name },
        spec: {
          restartPolicy: 'Never',
          containers: [
            { name: 'a', image: 'x:1' },
            { name: 'b', image: 'x:1' },
          ],
        },
      };
      const made = await bench.api.post(`${bench.core}/pods`, pod);
      assert.equal(made.status, 201, made.text);
      const patched = await bench.api.patch(
        `${bench.core}/pods/${name}`,
        { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'b', image: 'x:2' }] } },
        'strategic',
      );
      assert.equal(patched.status, 200, patched.text);
      assert.deepEqual(
        patched.body.spec.containers.map((c: { name: string; image: string }) => [c.name, c.image]),
        [
          ['a', 'x:1'],
          ['b', 'x:2'],
        ],
      );
      await bench.api.delete(`${bench.core}/pods/${name}`, { gracePeriodSeconds: 0 });
    });

    const apply = (name: string, spec: object, query: string) =>
      bench.api.call('PATCH', `${bench.widgets}/${name}?${query}`, {
        body: { apiVersion: 'contract.berth.dev/v1', kind: 'Widget', metadata: { name }, spec },
        contentType: 'application/apply-patch+yaml',
      });

    test('an apply creates what is not there and notes its manager', async () => {
      const { status, body, text } = await apply(bench.name(), { size: 1, label: 'abc' }, 'fieldManager=one');
      assert.equal(status, 201, text);
      const [entry] = body.metadata.managedFields;
      assert.equal(entry.manager, 'one');
      assert.equal(entry.operation, 'Apply');
      assert.deepEqual(entry.fieldsV1, { 'f:spec': { 'f:label': {}, 'f:size': {} } });
    });

    test('an apply removes what its manager no longer wants, and nothing else', async () => {
      const name = bench.name();
      await apply(name, { size: 1, label: 'abc', options: { a: '1' } }, 'fieldManager=one');
      await bench.api.patch(`${bench.widgets}/${name}`, { spec: { options: { b: '2' } } });
      const { status, body, text } = await apply(name, { size: 1 }, 'fieldManager=one');
      assert.equal(status, 200, text);
      assert.equal(body.spec.label, undefined);
      assert.deepEqual(body.spec.options, { b: '2' });
    });

    test('an apply that changes what another manager set is 409, unless forced', async () => {
      const name = bench.name();
      await apply(name, { size: 1 }, 'fieldManager=one');
      const refused = await apply(name, { size: 2 }, 'fieldManager=two');
      assert.equal(refused.status, 409);
      assert.equal(refused.body.reason, 'Conflict');
      assert.equal(refused.body.message, 'Apply failed with 1 conflict: conflict with "one": .spec.size');
      assert.deepEqual(refused.body.details.causes, [
        { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.size' },
      ]);
      const forced = await apply(name, { size: 2 }, 'fieldManager=two&force=true');
      assert.equal(forced.status, 200, forced.text);
      assert.equal(forced.body.spec.size, 2);
    });

    test('an apply without a manager is 422, one with an unknown field is refused', async () => {
      const without = await apply(bench.name(), { size: 1 }, '');
      assert.equal(without.status, 422);
      assert.match(without.body.message, /fieldManager: Required value: is required for apply patch/);
      const name = bench.name();
      const unknown = await apply(name, { size: 1, colour: 'x' }, 'fieldManager=one');
      assert.equal(unknown.status, 500);
      assert.equal(
        unknown.body.message,
        `failed to create typed patch object (/${name}; contract.berth.dev/v1, Kind=Widget): .spec.colour: field not declared in schema`,
      );
    });

    test('an apply may be written in YAML', async () => {
      const name = bench.name();
      const { status, body, text } = await bench.api.call('PATCH', `${bench.widgets}/${name}?fieldManager=yaml`, {
        raw: `apiVersion: contract.berth.dev/v1\nkind: Widget\nmetadata:\n  name: ${name}\nspec:\n  size: 4\n`,
        contentType: 'application/apply-patch+yaml',
      });
      assert.equal(status, 201, text);
      assert.equal(body.spec.size, 4);
    });

    test('an object may be written in YAML', async () => {
      const { status, text } = await bench.api.call('POST', `${bench.core}/configmaps`, {
        raw: `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${bench.name('cm')}\ndata:\n  a: "1"\n`,
        contentType: 'application/yaml',
      });
      assert.equal(status, 201, text);
    });
  });
}
