import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { type Connect, useBench } from './target.ts';

const text = { type: 'string', maxLength: 50 };
const texts = { type: 'array', maxItems: 10, items: text };
const numbers = { type: 'array', maxItems: 10, items: { type: 'integer' } };

/** A rule over an object with these properties, objects that it accepts, and such that it refuses. */
const rules: { rule: string; properties: object; good: object[]; bad: object[] }[] = [
  {
    rule: 'has(self.a) != has(self.b)',
    properties: { a: text, b: text },
    good: [{ a: 'x' }, { b: 'x' }],
    bad: [{}, { a: 'x', b: 'y' }],
  },
  {
    rule: 'size(self.a) <= 2 || self.a.size() > 4',
    properties: { a: text },
    good: [{ a: 'äö' }, { a: '12345' }],
    bad: [{ a: '123' }],
  },
  {
    rule: "self.a.matches('^[a-z]+$') && self.a.startsWith('ab') && self.a.endsWith('yz') && self.a.contains('m')",
    properties: { a: text },
    good: [{ a: 'abmyz' }],
    bad: [{ a: 'abyz' }, { a: 'ab m yz' }],
  },
  { rule: "self.a in ['x', 'y']", properties: { a: text }, good: [{ a: 'x' }], bad: [{ a: 'z' }] },
  {
    rule: "self.l.all(v, v.startsWith('a')) && self.l.exists(v, v == 'ab') && self.l.exists_one(v, v == 'ac')",
    properties: { l: texts },
    good: [{ l: ['ab', 'ac', 'ab'] }],
    bad: [{ l: ['ab'] }, { l: ['ab', 'ac', 'b'] }],
  },
  {
    rule: 'self.l.filter(n, n > 1).map(n, n * 2) == [4, 6]',
    properties: { l: numbers },
    good: [{ l: [1, 2, 3] }],
    bad: [{ l: [2] }],
  },
  {
    rule: 'self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3',
    properties: { l: numbers },
    good: [{ l: [1, 2, 3] }],
    bad: [{ l: [3, 2, 1] }],
  },
  {
    rule: "self.m.all(k, k != 'no') && (!('x' in self.m) || self.m['x'] == 'y')",
    properties: { m: { type: 'object', maxProperties: 5, additionalProperties: text } },
    good: [{ m: {} }, { m: { x: 'y' } }],
    bad: [{ m: { no: 'z' } }, { m: { x: 'z' } }],
  },
  {
    rule: "self.?a.orValue('none') == 'none'",
    properties: { a: text },
    good: [{}, { a: 'none' }],
    bad: [{ a: 'some' }],
  },
  {
    rule: 'self.?o.?i.hasValue() ? self.o.i > 3 : true',
    properties: { o: { type: 'object', properties: { i: { type: 'integer' } } } },
    good: [{}, { o: {} }, { o: { i: 4 } }],
    bad: [{ o: { i: 3 } }],
  },
  { rule: "duration(self.a) < duration('1h')", properties: { a: text }, good: [{ a: '59m' }], bad: [{ a: '61m' }] },
  {
    rule: "self.d < duration('1h')",
    properties: { d: { type: 'string', format: 'duration' } },
    good: [{ d: '59m' }],
    bad: [{ d: '1h30m' }],
  },
  {
    rule: "self.t > timestamp('2024-01-01T00:00:00Z')",
    properties: { t: { type: 'string', format: 'date-time' } },
    good: [{ t: '2025-01-01T00:00:00Z' }],
    bad: [{ t: '2023-01-01T00:00:00Z' }],
  },
  {
    rule: "isQuantity(self.a) && quantity(self.a).isLessThan(quantity('1Gi'))",
    properties: { a: text },
    good: [{ a: '500Mi' }],
    bad: [{ a: '2Gi' }, { a: 'abc' }],
  },
  {
    rule: "quantity(self.a).compareTo(quantity('1000m')) == 0",
    properties: { a: text },
    good: [{ a: '1' }],
    bad: [{ a: '2' }],
  },
  { rule: 'isURL(self.a)', properties: { a: text }, good: [{ a: 'https://example.com/x' }], bad: [{ a: 'not a url' }] },
  {
    rule: "self.a.find('[0-9]+') == '12' && self.a.findAll('[0-9]+').size() == 2",
    properties: { a: text },
    good: [{ a: 'x12y3' }],
    bad: [{ a: 'x1' }],
  },
  {
    rule: "self.a.replace('a', 'b') == 'bb' && self.a.lowerAscii() == 'aa' && self.a.upperAscii() == 'AA'",
    properties: { a: text },
    good: [{ a: 'aa' }],
    bad: [{ a: 'ab' }],
  },
  {
    rule: "self.a.split(',').size() == 2 && self.a.trim() == self.a && self.a.indexOf(',') == 1 && self.a.substring(2) == 'z' && self.a.charAt(0) == 'y'",
    properties: { a: text },
    good: [{ a: 'y,z' }],
    bad: [{ a: 'y,x' }],
  },
  { rule: "self.l.join('-') == 'a-b'", properties: { l: texts }, good: [{ l: ['a', 'b'] }], bad: [{ l: ['a'] }] },
  {
    rule: 'self.n > 1.5 && self.i >= 2 && self.i % 2 == 0',
    properties: { n: { type: 'number' }, i: { type: 'integer' } },
    good: [
      { n: 2, i: 2 },
      { n: 1.6, i: 4 },
    ],
    bad: [
      { n: 1.5, i: 2 },
      { n: 2, i: 3 },
    ],
  },
  {
    rule: 'type(self.p) == int ? self.p > 0 : self.p.size() > 0',
    properties: { p: { 'x-kubernetes-int-or-string': true } },
    good: [{ p: 1 }, { p: 'x' }],
    bad: [{ p: 0 }, { p: '' }],
  },
  {
    rule: 'has(self.n) ? self.n.size() > 1 : true',
    properties: { n: { type: 'string', nullable: true, maxLength: 10 } },
    good: [{ n: null }, { n: 'ab' }],
    bad: [{ n: 'a' }],
  },
  {
    rule: "self.__namespace__ == 'x' && self.a__dash__b == 'y'",
    properties: { namespace: text, 'a-b': text },
    good: [{ namespace: 'x', 'a-b': 'y' }],
    bad: [{ namespace: 'y', 'a-b': 'y' }],
  },
  {
    rule: 'self.b.size() == 2',
    properties: { b: { type: 'string', format: 'byte', maxLength: 20 } },
    good: [{ b: 'YWI=' }],
    bad: [{ b: 'YQ==' }],
  },
  {
    rule: "self.a == 'it''s' || self.a == \"oldSelf\"".replace("''", "\\'"),
    properties: { a: text },
    good: [{ a: "it's" }, { a: 'oldSelf' }],
    bad: [{ a: 'x' }],
  },
];

const definition = (plural: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.contract.berth.dev` },
  spec: {
    group: 'contract.berth.dev',
    scope: 'Namespaced',
    names: { plural, kind: 'Probe' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            'x-kubernetes-validations': [
              { rule: "self.metadata.name.startsWith('p')", message: 'the name must begin with p' },
              {
                rule: 'oldSelf.hasValue() || !has(self.once)',
                optionalOldSelf: true,
                message: 'once cannot be set at creation',
              },
            ],
            properties: {
              once: { type: 'string' },
              ...Object.fromEntries(
                rules.map(({ rule, properties }, i) => [
                  `r${i}`,
                  { type: 'object', properties, 'x-kubernetes-validations': [{ rule, message: `broken: ${i}` }] },
                ]),
              ),
            },
          },
        },
      },
    ],
  },
});

export function ruleContract(connect: Connect): void {
  describe('CEL rules', () => {
    const bench = useBench(connect);
    const probes = () => `/apis/contract.berth.dev/v1/namespaces/${bench.namespace}/probes`;
    const probe = (fields: object, name = bench.name('p')) => ({
      apiVersion: 'contract.berth.dev/v1',
      kind: 'Probe',
      metadata: { name },
      ...fields,
    });
    beforeAll(() => bench.define(definition('probes'), probes()));

    rules.forEach(({ rule, good, bad }, i) => {
      test(`the rule ${rule} accepts and refuses what it should`, async () => {
        for (const value of good) {
          const { status, text: answer } = await bench.api.post(probes(), probe({ [`r${i}`]: value }));
          assert.equal(status, 201, `${JSON.stringify(value)}: ${answer}`);
        }
        for (const value of bad) {
          const { status, body } = await bench.api.post(probes(), probe({ [`r${i}`]: value }));
          assert.equal(status, 422, `${JSON.stringify(value)} is accepted`);
          assert.match(body.message, new RegExp(`r${i}: Invalid value: .*broken: ${i}`));
        }
      });
    });

    test('a rule that asks for a field that is not there fails and says so', async () => {
      const { status, body } = await bench.api.post(probes(), probe({ r4: {} }));
      assert.equal(status, 422);
      assert.match(body.message, /r4: Invalid value: "?object"?: no such key: l evaluating rule: broken: 4/i);
    });

    test('a rule at the root sees the name', async () => {
      const { status, body } = await bench.api.post(probes(), probe({}, 'other'));
      assert.equal(status, 422);
      const text = 'Probe.contract.berth.dev "other" is invalid: <nil>: Invalid value: the name must begin with p';
      assert.equal(bench.words(body.message), bench.words(text));
    });

    test('a rule with an optional oldSelf holds for creation too', async () => {
      const refused = await bench.api.post(probes(), probe({ once: 'x' }));
      assert.equal(refused.status, 422);
      assert.match(refused.body.message, /once cannot be set at creation/);
      const made = await bench.api.post(probes(), probe({}));
      const set = await bench.api.patch(`${probes()}/${made.body.metadata.name}`, { once: 'x' });
      assert.equal(set.status, 200, set.text);
    });
  });
}
