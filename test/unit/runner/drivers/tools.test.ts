import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { toolSchemaProblem } from '../../../../core/resources/tool-schema.ts';
import { argumentsProblem } from '../../../../runner/drivers/tool-arguments.ts';
import { PrefixLines } from '../../../../runner/text/lines.ts';

const object = (more: object) => ({ type: 'object', ...more });

describe('the schema of a tool’s arguments', () => {
  for (const schema of [
    object({}),
    object({ properties: { a: { type: ['string', 'null'], pattern: '^a+$', enum: ['a'] }, b: true }, required: ['a'] }),
    object({
      properties: { list: { type: 'array', items: { $ref: '#/$defs/item' } } },
      $defs: { item: { anyOf: [{}, false] } },
    }),
    object({ additionalProperties: { type: 'number', minimum: 0 }, description: 'x', examples: [1], title: 't' }),
  ]) {
    test(`can be ${JSON.stringify(schema).slice(0, 70)}`, () => assert.equal(toolSchemaProblem(schema), undefined));
  }

  for (const [schema, problem] of [
    ['x', /^must be a JSON Schema with type: object/],
    [{ type: 'string' }, /^must be a JSON Schema with type: object/],
    [object({ properties: { a: { type: 'strin' } } }), /^\/properties\/a: type must be of/],
    [object({ properties: [] }), /^\/properties must be an object of schemas/],
    [object({ properties: { a: 5 } }), /^\/properties\/a must be a schema/],
    [object({ required: 'a' }), /^the schema: required must be a list of names/],
    [object({ properties: { a: { pattern: '(' } } }), /^\/properties\/a: pattern must be a regular expression/],
    [object({ patternProperties: { '(': {} } }), /^the schema: pattern must be/],
    [object({ properties: { a: { $ref: '#/$defs/none' } } }), /^\/properties\/a: \$ref must name a place/],
    [object({ $ref: 'https://example.com/schema' }), /^the schema: \$ref must name a place/],
    [object({ anyOf: {} }), /^\/anyOf must be a list of schemas/],
    [object({ properties: { n: { minimum: '1' } } }), /^\/properties\/n: minimum must be a number/],
    [object({ properties: { n: { $id: 'x' } } }), /^\/properties\/n: \$id is not supported/],
  ] as const) {
    test(`cannot be ${JSON.stringify(schema).slice(0, 70)}`, () =>
      assert.match(toolSchemaProblem(schema) ?? '', problem));
  }

  test('cannot be nested without end', () => {
    let schema: object = {};
    for (let i = 0; i < 40; i++) schema = { not: schema };
    assert.match(toolSchemaProblem(object({ not: schema })) ?? '', /nested deeper than 32/);
  });
});

describe('the arguments of a call', () => {
  const problem = (schema: object, args: object) =>
    argumentsProblem({ name: 'x', description: '', parameters: object(schema), timeoutMs: 1 }, args);

  for (const [schema, args, expected] of [
    [{ properties: { a: { type: 'string' } } }, { a: 'x' }, undefined],
    [{ properties: { a: { type: 'string' } } }, { a: 1 }, /^args\.a: .*"number".*"string"/],
    [{ properties: { 'a/b~c': { type: 'string' } } }, { 'a/b~c': 1 }, /^args\.a\/b~c: /],
    [{ properties: { 'my €%20#key': { type: 'string' } } }, { 'my €%20#key': 1 }, /^args\.my €%20#key: /],
    [
      { additionalProperties: { type: 'string' } },
      { 'a\ud800': 'x' },
      /^args has a key that is not well-formed Unicode/,
    ],
    [{ properties: { a: { items: { required: ['b'] } } } }, { a: [{ b: 1 }, {}] }, /^args\.a\.1: .*property "b"/],
    [{ additionalProperties: false }, { z: 1 }, /^args\.z is not allowed$/],
    [{ properties: { a: { format: 'email' } } }, { a: 'nobody' }, /^args\.a: .*format "email"/],
    [{ properties: { a: { format: 'of-ours' } } }, { a: 'x' }, undefined],
  ] as const) {
    test(`${expected ? 'that are wrong are named' : 'can be right'}: ${JSON.stringify([schema, args])}`, () => {
      const found = problem(schema, args);
      if (expected) assert.match(found ?? '', expected);
      else assert.equal(found, undefined);
    });
  }

  test('are not judged by a schema that cannot be applied: the tool is named', () => {
    for (const schema of [
      { allOf: [{ $ref: '#' }] },
      { dependentRequired: { a: 5 } },
      { properties: { '\ud800': {} } },
    ]) {
      const wrong = { code: 'InvalidSpec', message: /^agent\.tools x: parameters: / };
      assert.throws(() => problem(schema, { a: 1 }), wrong, JSON.stringify(schema));
    }
  });

  test('are checked for a second at most, whatever pattern or format the schema has', () => {
    const text = `${'a'.repeat(60)}b`;
    for (const schema of [{ pattern: '^(a+)+$' }, { format: 'url' }]) {
      const found = problem({ properties: { a: schema } }, { a: `http://${text}` });
      const slow = problem({ properties: { a: schema } }, { a: text });
      assert.match([found, slow].join(), /args could not be checked within 1s/, JSON.stringify(schema));
    }
  });
});

describe('lines with a prefix', () => {
  test('are whole, however they come', () => {
    let got = '';
    const lines = new PrefixLines('[x] ', (text) => {
      got += text;
    });
    for (const piece of ['a', 'b\nc\n', '', '\nd']) lines.push(piece);
    lines.end();
    assert.equal(got, '[x] ab\n[x] c\n[x] \n[x] d\n');
  });

  test('that never end are cut', () => {
    const got: string[] = [];
    const lines = new PrefixLines('', (text) => got.push(text));
    for (let i = 0; i < 100; i++) lines.push('x'.repeat(10_000));
    lines.end();
    assert.ok(got.every((line) => line.length < 100_000));
    assert.equal(got.join('').replaceAll('\n', '').length, 1_000_000);
  });
});
