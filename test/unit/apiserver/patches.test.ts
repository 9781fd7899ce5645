import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { prototypeKeyAt } from '../../../core/prototype-key.ts';
import { applyConfiguration } from '../../../local/apiserver/apply/apply.ts';
import { fieldsOf, fromFieldsV1, toFieldsV1 } from '../../../local/apiserver/apply/field-set.ts';
import { type ApiObject, clone, isObject } from '../../../local/apiserver/object.ts';
import { jsonPatch } from '../../../local/apiserver/patch/json-patch.ts';
import { mergePatch } from '../../../local/apiserver/patch/patch.ts';
import { customResources } from '../../../local/apiserver/registry/crd/custom.ts';
import type { Crd } from '../../../local/apiserver/registry/crd/types.ts';
import type { ResourceType } from '../../../local/apiserver/registry/types.ts';
import { widgetDefinition } from '../../contract/widget.ts';

const [widgets] = customResources(widgetDefinition as unknown as Crd) as [ResourceType];

/** Values of a body, without the one key that is refused there. */
const documents = fc
  .dictionary(fc.string(), fc.jsonValue())
  .filter((document) => prototypeKeyAt(document) === undefined)
  .map(clone);

describe('JSON merge patch', () => {
  // The examples of RFC 7386, appendix A.
  const examples: [unknown, unknown, unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, result] of examples) {
    test(`${JSON.stringify(target)} patched by ${JSON.stringify(patch)} is ${JSON.stringify(result)}`, () => {
      assert.deepEqual(mergePatch(target, patch), result);
    });
  }

  test('applied twice it is as applied once, and the target is left alone', () => {
    fc.assert(
      fc.property(documents, documents, (target, patch) => {
        const before = clone(target);
        const once = mergePatch(target, patch);
        assert.deepEqual(mergePatch(once, patch), once);
        assert.deepEqual(target, before);
      }),
    );
  });
});

describe('JSON patch', () => {
  // Cases of RFC 6902, appendix A.
  const examples: [unknown, object[], unknown][] = [
    [{ foo: ['bar', 'baz'] }, [{ op: 'add', path: '/foo/1', value: 'qux' }], { foo: ['bar', 'qux', 'baz'] }],
    [{ baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
    [
      { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
      [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
      { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
    ],
    [
      { foo: ['all', 'grass', 'cows', 'eat'] },
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      { foo: ['all', 'cows', 'eat', 'grass'] },
    ],
    [{ foo: ['bar'] }, [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }], { foo: ['bar', ['abc', 'def']] }],
    [{ '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: 10 }], { '/': 9, '~1': 10 }],
  ];
  for (const [target, operations, result] of examples) {
    test(`${JSON.stringify(operations)} does as the RFC says`, () => {
      assert.deepEqual(jsonPatch(target, operations), result);
    });
  }

  test('an operation that does not fit is 422 and does not change the target', () => {
    const target = { a: [1, 2], b: { c: 'd' } };
    for (const operation of [
      { op: 'remove', path: '/x' },
      { op: 'replace', path: '/a/5', value: 1 },
      { op: 'add', path: '/a/5', value: 1 },
      { op: 'add', path: '/b/c/d', value: 1 },
      { op: 'test', path: '/b/c', value: 'e' },
      { op: 'copy', path: '/e', from: '/x' },
      { op: 'frobnicate', path: '/a' },
      { op: 'remove' },
    ]) {
      assert.throws(() => jsonPatch(target, [{ op: 'remove', path: '/b' }, operation]), { code: 422 });
    }
    assert.deepEqual(target, { a: [1, 2], b: { c: 'd' } });
  });
});

const specs = fc.record(
  {
    size: fc.nat(9),
    label: fc.constantFrom('ab', 'cd'),
    tags: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 }),
    options: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2')),
    nested: fc.record({ level: fc.constantFrom('low', 'high'), other: fc.constantFrom('o') }, { requiredKeys: [] }),
    parts: fc.uniqueArray(
      fc.record({ name: fc.constantFrom('p', 'q'), count: fc.nat(3) }, { requiredKeys: ['name'] }),
      {
        selector: ({ name }) => name,
        maxLength: 2,
      },
    ),
    any: fc.dictionary(fc.constantFrom('k', 'l'), fc.array(fc.nat(3), { maxLength: 2 })),
  },
  { requiredKeys: [] },
);
const widgetOf = (spec: object): ApiObject => ({
  apiVersion: 'contract.berth.dev/v1',
  kind: 'Widget',
  metadata: { name: 'w' },
  spec: clone(spec),
});
const as = (name: string, force = true) => ({ manager: { name, operation: 'Apply' } as const, force, now: 0 });

describe('server-side apply', () => {
  test('a set of fields survives its stored form', () => {
    fc.assert(
      fc.property(specs, fc.boolean(), (spec, containers) => {
        const fields = fieldsOf(widgetOf(spec), widgets.schema ?? {}, containers);
        assert.deepEqual([...fromFieldsV1(toFieldsV1(fields))].sort(), [...fields].sort());
      }),
    );
  });

  test('applying the same configuration again changes nothing', () => {
    fc.assert(
      fc.property(specs, specs, (live, wanted) => {
        const once = applyConfiguration(widgetOf(live), widgetOf(wanted), widgets, as('one'));
        assert.deepEqual(applyConfiguration(once, widgetOf(wanted), widgets, as('one', false)), once);
      }),
    );
  });

  test('every field that is wanted is there with its value afterwards', () => {
    fc.assert(
      fc.property(specs, specs, (live, wanted) => {
        const { spec } = applyConfiguration(widgetOf(live), widgetOf(wanted), widgets, as('one'));
        assert.deepEqual(mergeable(spec, wanted), clone(wanted));
      }),
    );
  });

  test('a field that a manager drops is removed unless another manager has set it', () => {
    fc.assert(
      fc.property(specs, specs, (others, wanted) => {
        const theirs = applyConfiguration(widgetOf({}), widgetOf(others), widgets, as('other'));
        const both = applyConfiguration(theirs, widgetOf(wanted), widgets, as('one'));
        const left = applyConfiguration(both, widgetOf({}), widgets, as('one'));
        const owned = new Set(
          both.metadata.managedFields
            ?.filter(({ manager }) => manager === 'other')
            .map((e) => JSON.stringify(e.fieldsV1)),
        );
        const still = new Set(
          left.metadata.managedFields
            ?.filter(({ manager }) => manager === 'other')
            .map((e) => JSON.stringify(e.fieldsV1)),
        );
        assert.deepEqual(still, owned);
        assert.ok(
          !left.metadata.managedFields?.some(
            ({ manager, fieldsV1 }) => manager === 'one' && 'f:size' in Object(fieldsV1['f:spec']),
          ),
        );
      }),
    );
  });

  test('without force another value than another manager’s is a conflict, the same value is shared', () => {
    const first = applyConfiguration(widgetOf({}), widgetOf({ size: 1 }), widgets, as('one'));
    assert.throws(() => applyConfiguration(first, widgetOf({ size: 2 }), widgets, as('two', false)), { code: 409 });
    const shared = applyConfiguration(first, widgetOf({ size: 1 }), widgets, as('two', false));
    assert.deepEqual(
      shared.metadata.managedFields
        ?.filter(({ fieldsV1 }) => 'f:size' in Object(fieldsV1['f:spec']))
        .map((e) => e.manager),
      ['one', 'two'],
    );
  });
});

/** The part of a value that another one speaks of: fields, list items by key or value. */
function mergeable(value: unknown, wanted: unknown, field = ''): unknown {
  if (Array.isArray(wanted) && Array.isArray(value)) {
    if (field !== 'tags' && field !== 'parts') return value;
    const identity = (item: unknown) => (isObject(item) ? item.name : item);
    return wanted.map((item) =>
      mergeable(
        value.find((other) => identity(other) === identity(item)),
        item,
      ),
    );
  }
  if (!isObject(wanted) || !isObject(value)) return value;
  return Object.fromEntries(Object.keys(wanted).map((key) => [key, mergeable(value[key], wanted[key], key)]));
}
