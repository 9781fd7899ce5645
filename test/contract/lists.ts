import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { type Connect, useBench } from './target.ts';

// biome-ignore lint/suspicious/noExplicitAny: items of any kind
const names = (list: { items: any[] }) => list.items.map((item) => item.metadata.name);

export function listContract(connect: Connect): void {
  describe('lists', () => {
    const bench = useBench(connect);
    beforeAll(async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await bench.make(
          { spec: { size: name.charCodeAt(0) % 50, ...(name < 'c' ? { color: 'red' } : {}) } },
          { name, labels: { letter: name, ...(name < 'd' ? { early: 'yes' } : {}), n: String(name.charCodeAt(0)) } },
        );
      }
    });
    const list = async (query: string) => {
      const { status, body, text } = await bench.api.get(`${bench.widgets}?${query}`);
      assert.equal(status, 200, text);
      return body;
    };

    test('a list has its kind, its version and all objects sorted by name', async () => {
      const body = await list('');
      assert.equal(body.kind, 'WidgetList');
      assert.equal(body.apiVersion, 'contract.berth.dev/v1');
      assert.match(body.metadata.resourceVersion, /^\d+$/);
      assert.deepEqual(names(body), ['a', 'b', 'c', 'd', 'e']);
      assert.equal(body.items[0].kind, 'Widget');
      assert.equal(body.items[0].apiVersion, 'contract.berth.dev/v1');
    });

    test('pages show the state of the first page', async () => {
      const first = await list('limit=2');
      assert.deepEqual(names(first), ['a', 'b']);
      assert.equal(first.metadata.remainingItemCount, 3);
      const late = await bench.make({ spec: { size: 1 } }, { name: 'cc' });
      const token = encodeURIComponent(first.metadata.continue);
      const second = await list(`limit=2&continue=${token}`);
      assert.deepEqual(names(second), ['c', 'd']);
      assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
      const third = await list(`limit=2&continue=${encodeURIComponent(second.metadata.continue)}`);
      assert.deepEqual(names(third), ['e']);
      assert.equal(third.metadata.continue ?? '', '');
      await bench.api.delete(bench.at(late));
    });

    test('a version that is no number is 400', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}?resourceVersion=abc`);
      assert.equal(status, bench.isOlder ? 500 : 400);
      assert.match(
        body.message,
        bench.isOlder ? /^resourceVersion: Invalid value: "abc"/ : /^invalid resource version: /,
      );
    });

    test('a continue token that is none is 400', async () => {
      const { status } = await bench.api.get(`${bench.widgets}?limit=1&continue=garbage`);
      assert.equal(status, 400);
    });

    for (const [selector, expected] of [
      ['letter=a', ['a']],
      ['letter==b', ['b']],
      ['letter!=a', ['b', 'c', 'd', 'e']],
      ['letter in (a, c)', ['a', 'c']],
      ['letter notin (a,c)', ['b', 'd', 'e']],
      ['early', ['a', 'b', 'c']],
      ['!early', ['d', 'e']],
      ['early,letter!=b', ['a', 'c']],
      ['n>99', ['d', 'e']],
      ['n<99', ['a', 'b']],
    ] as const) {
      test(`the label selector "${selector}" selects ${expected.join(', ')}`, async () => {
        assert.deepEqual(names(await list(`labelSelector=${encodeURIComponent(selector)}`)), expected);
      });
    }

    for (const [selector, expected] of [
      ['metadata.name=b', ['b']],
      ['metadata.name!=b', ['a', 'c', 'd', 'e']],
      ['spec.color=red', ['a', 'b']],
      ['spec.color!=red', ['c', 'd', 'e']],
      ['spec.color=red,metadata.name=a', ['a']],
      ['status.phase=', ['a', 'b', 'c', 'd', 'e']],
    ] as const) {
      test(`the field selector "${selector}" selects ${expected.join(', ')}`, async () => {
        assert.deepEqual(names(await list(`fieldSelector=${encodeURIComponent(selector)}`)), expected);
      });
    }

    test('a field that cannot be selected by is 400 and named', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}?fieldSelector=spec.size%3D1`);
      assert.equal(status, 400);
      assert.match(body.message, /field label not supported: spec\.size/);
    });

    test('a selector that cannot be parsed is 400', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}?labelSelector=${encodeURIComponent('a in (')}`);
      assert.equal(status, 400);
      assert.equal(body.reason, 'BadRequest');
    });

    test('a version that has not been reached yet is 504 and says so', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}?resourceVersion=999999999`);
      assert.equal(status, 504);
      assert.equal(body.reason, 'Timeout');
      assert.match(body.message, /^Timeout: Too large resource version: 999999999, current: \d+$/);
      assert.equal(body.details.causes[0].reason, 'ResourceVersionTooLarge');
    });

    test('a list over all namespaces holds this one', async () => {
      const { body } = await bench.api.get('/apis/contract.berth.dev/v1/widgets');
      assert.ok(
        body.items.some((item: { metadata: { namespace: string } }) => item.metadata.namespace === bench.namespace),
      );
    });

    test('a table has the printer columns, ages and the metadata of its objects', async () => {
      const { body } = await bench.api.get(`${bench.widgets}?limit=1`, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
      });
      assert.equal(body.kind, 'Table');
      assert.equal(body.apiVersion, 'meta.k8s.io/v1');
      assert.deepEqual(
        body.columnDefinitions.map((c: { name: string; type: string; priority: number }) => [
          c.name,
          c.type,
          c.priority,
        ]),
        [
          ['Name', 'string', 0],
          ['Color', 'string', 0],
          ['Size', 'integer', 1],
          ['Ready', 'string', 0],
          ['Age', 'date', 0],
        ],
      );
      const [row] = body.rows;
      assert.deepEqual(row.cells.slice(0, 4), ['a', 'red', 47, null]);
      assert.match(row.cells[4], /^\d+[sm]/);
      assert.equal(row.object.kind, 'PartialObjectMetadata');
      assert.equal(row.object.metadata.name, 'a');
      assert.notEqual(body.metadata.continue ?? '', '');
    });

    test('a table can hold whole objects or none', async () => {
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const whole = await bench.api.get(`${bench.widgets}/a?includeObject=Object`, { accept });
      assert.equal(whole.body.rows[0].object.kind, 'Widget');
      assert.equal(whole.body.rows[0].object.spec.color, 'red');
      const none = await bench.api.get(`${bench.widgets}?includeObject=None`, { accept });
      assert.equal(none.body.rows[0].object ?? null, null);
    });

    test('metadata alone can be asked for', async () => {
      const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
      const { body } = await bench.api.get(bench.widgets, { accept });
      assert.equal(body.kind, 'PartialObjectMetadataList');
      assert.equal(body.items[0].spec, undefined);
      assert.equal(body.items[0].metadata.name, 'a');
      const none = await bench.api.get(`${bench.widgets}?labelSelector=no%3Dbody`, { accept });
      assert.equal(none.body.items, null, 'an empty list of metadata is null');
    });

    test('a collection is deleted by selector', async () => {
      await bench.make({ spec: { size: 1 } }, { name: 'x1', labels: { drop: 'yes' } });
      await bench.make({ spec: { size: 1 } }, { name: 'x2', labels: { drop: 'yes' } });
      const { status } = await bench.api.delete(`${bench.widgets}?labelSelector=drop%3Dyes`);
      assert.equal(status, 200);
      assert.deepEqual(names(await list('')), ['a', 'b', 'c', 'd', 'e']);
    });
  });
}
