import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { refusals } from './refusals.ts';
import { type Connect, useBench } from './target.ts';

const skippedRules =
  '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';

/** Errors after which CEL rules are not evaluated. */
const blocking = [
  'FieldValueRequired',
  'FieldValueTypeInvalid',
  'FieldValueNotSupported',
  'FieldValueTooLong',
  'FieldValueTooMany',
];

/** `spec.free` of a widget, a list, as it stands in the text. */
const freeOf = (text: string) => /"free":(\[[^\]]*\])/.exec(text)?.[1] ?? '';

export function schemaContract(connect: Connect): void {
  describe('schemas', () => {
    const bench = useBench(connect);

    for (const { name, spec, message, field, reason } of refusals) {
      test(`${name} is 422 with its path and what is wrong`, async () => {
        const widget = bench.widget({ spec });
        const { status, body } = await bench.api.post(bench.widgets, widget);
        assert.equal(status, 422);
        assert.equal(body.reason, 'Invalid');
        const all = blocking.includes(reason) ? `[${message}, ${skippedRules}]` : message;
        const whole = `Widget.contract.berth.dev "${widget.metadata.name}" is invalid: ${all}`;
        assert.equal(bench.words(body.message), bench.words(whole));
        const [cause] = body.details.causes;
        const expected = { reason, message: bench.words(message.slice(field.length + 2)), field };
        assert.deepEqual({ ...cause, message: bench.words(cause.message) }, expected);
        assert.equal(body.details.kind, 'Widget');
        assert.equal(body.details.group, 'contract.berth.dev');
      });
    }

    test('several errors are told at once', async () => {
      const { body } = await bench.api.post(bench.widgets, bench.widget({ spec: { size: 101, label: 'a' } }));
      assert.match(body.message, /is invalid: \[.*spec\.size in body.*\]/s);
      assert.match(body.message, /spec\.label in body/);
      assert.equal(body.details.causes.length, 2);
    });

    const stored = async (name: string) => freeOf((await bench.api.get(`${bench.widgets}/${name}`)).text);
    const given = '[9007199254740993,9223372036854775807,-9223372036854775808,0.1,1.0,1e2]';
    const kept = '[9007199254740993,9223372036854775807,-9223372036854775808,0.1,1,100]';

    test('an integer of 64 bits is kept exactly by create, replace, patch and apply, and in a watch', async () => {
      const { metadata, ...widget } = bench.widget({ spec: { size: 1, free: 'FREE' } });
      const path = `${bench.widgets}/${metadata.name}`;
      const texts: string[] = [];
      const send = async (method: string, to: string, type: string, body: object | string) => {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        const raw = text.replace('"FREE"', given);
        const answer = await bench.api.call(method, to, { raw, contentType: type });
        assert.ok(answer.status < 300, answer.text);
        texts.push(freeOf(answer.text), await stored(metadata.name));
        return answer.body.metadata.resourceVersion;
      };
      const clear = () => bench.api.patch(path, { spec: { free: null } });
      const json = 'application/json';
      const resourceVersion = await send('POST', bench.widgets, json, { metadata, ...widget });
      await clear();
      const { body } = await bench.api.get(path);
      await send('PUT', path, json, { ...body, spec: { size: 1, free: 'FREE' } });
      await clear();
      await send('PATCH', path, 'application/merge-patch+json', { spec: { free: 'FREE' } });
      await clear();
      const add = [{ op: 'add', path: '/spec/free', value: 'FREE' }];
      await send('PATCH', path, 'application/json-patch+json', add);
      await clear();
      const yaml = `apiVersion: ${body.apiVersion}\nkind: Widget\nmetadata: {name: ${metadata.name}}\nspec: {size: 1, free: "FREE"}\n`;
      await send('PATCH', `${path}?fieldManager=a&force=true`, 'application/apply-patch+yaml', yaml);
      assert.deepEqual(
        texts,
        texts.map(() => kept),
      );
      const watched = await bench.api.call(
        'GET',
        `${bench.widgets}?watch=true&timeoutSeconds=3&fieldSelector=metadata.name%3D${metadata.name}&resourceVersion=${resourceVersion}`,
      );
      assert.equal(freeOf(watched.text.trim().split('\n').at(-1) ?? ''), kept);
    });

    test('a larger integer becomes a double, and a number that no double holds is 400', async () => {
      const widget = bench.widget({ spec: { size: 1, free: 'FREE' } });
      const post = (number: string) =>
        bench.api.post(bench.widgets, undefined, { raw: JSON.stringify(widget).replace('"FREE"', number) });
      const { status, text } = await post('1e999');
      assert.equal(status, 400, text);
      assert.match(text, /1e999/);
      const made = await post('[9223372036854775808,12345678901234567890,1.00000000000000000001]');
      assert.equal(made.status, 201, made.text);
      assert.equal(await stored(widget.metadata.name), '[9223372036854776000,12345678901234567000,1]');
    });

    test('unknown fields are dropped and warned of', async () => {
      const answer = await bench.api.post(
        bench.widgets,
        bench.widget({ spec: { size: 1, colour: 'red', nested: { deep: 1 }, parts: [{ name: 'a', x: 1 }] }, extra: 1 }),
      );
      assert.equal(answer.status, 201);
      assert.equal(answer.body.extra, undefined);
      assert.equal(answer.body.spec.colour, undefined);
      assert.deepEqual(answer.body.spec.nested, { level: 'low' });
      assert.deepEqual(answer.body.spec.parts, [{ name: 'a', mode: 'auto' }]);
      const warnings = [answer.headers.warning].flat().join('\n');
      for (const path of ['extra', 'spec.colour', 'spec.nested.deep', 'spec.parts[0].x']) {
        assert.ok(warnings.includes(`299 - "unknown field \\"${path}\\""`), `${path} in ${warnings}`);
      }
    });

    test('unknown fields are refused with strict field validation', async () => {
      const body = bench.widget({ spec: { size: 1, colour: 'red', nested: { deep: 1 } } });
      const answer = await bench.api.post(`${bench.widgets}?fieldValidation=Strict`, body);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.reason, 'BadRequest');
      assert.match(
        answer.body.message,
        /^Widget in version "v1" cannot be handled as a Widget: strict decoding error: /,
      );
      assert.match(answer.body.message, /unknown field "spec\.colour"/);
      assert.match(answer.body.message, /unknown field "spec\.nested\.deep"/);
    });

    test('unknown metadata is refused with strict field validation', async () => {
      const answer = await bench.api.post(
        `${bench.widgets}?fieldValidation=Strict`,
        bench.widget({ spec: { size: 1 } }, { label: { a: 'b' } }),
      );
      assert.equal(answer.status, 400);
      assert.match(answer.body.message, /unknown field "metadata\.label"/);
    });

    test('unknown fields are dropped silently when validation ignores them', async () => {
      const answer = await bench.api.post(
        `${bench.widgets}?fieldValidation=Ignore`,
        bench.widget({ spec: { size: 1, colour: 'red' } }),
      );
      assert.equal(answer.status, 201);
      assert.equal(answer.body.spec.colour, undefined);
      assert.equal(answer.headers.warning, undefined);
    });

    test('strict field validation holds for patches', async () => {
      const made = await bench.make();
      const answer = await bench.api.call('PATCH', `${bench.at(made)}?fieldValidation=Strict`, {
        body: { spec: { colour: 'red' } },
        contentType: 'application/merge-patch+json',
      });
      assert.equal(answer.status, 422);
      assert.match(answer.body.message, /unknown field "spec\.colour"/);
    });

    test('unknown fields of a built-in kind are refused with strict field validation', async () => {
      const { status, body } = await bench.api.post(`${bench.core}/configmaps?fieldValidation=Strict`, {
        metadata: { name: bench.name('cm') },
        dataa: {},
      });
      assert.equal(status, 400);
      assert.equal(
        body.message,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dataa"',
      );
    });

    test('defaults are filled in, explicit values stay', async () => {
      const made = await bench.make({ spec: { size: 1, enabled: false, nested: {} } });
      assert.equal(made.spec.replicas, 1);
      assert.equal(made.spec.enabled, false);
      assert.deepEqual(made.spec.nested, { level: 'low' });
    });

    test('a null is a default, or kept where allowed, or as if it were not there', async () => {
      const made = await bench.make({ spec: { size: 1, enabled: null, note: null, code: null } });
      assert.equal(made.spec.enabled, true);
      assert.equal(made.spec.note, null);
      assert.ok(!('code' in made.spec));
    });

    test('fields marked to be kept are kept whatever they hold', async () => {
      const any = { a: [1, { b: null }], c: 'd' };
      const made = await bench.make({ spec: { size: 1, any, free: [1, 'x', { y: true }], port: 'http', ratio: 2 } });
      assert.deepEqual(made.spec.any, any);
      assert.deepEqual(made.spec.free, [1, 'x', { y: true }]);
      assert.equal(made.spec.port, 'http');
      assert.equal(made.spec.ratio, 2);
    });

    test('a transition rule compares with what is stored, on updates only', async () => {
      const made = await bench.make({ spec: { size: 1, color: 'red' } });
      const { status, body } = await bench.api.patch(bench.at(made), { spec: { color: 'green' } });
      assert.equal(status, 422);
      const text = `Widget.contract.berth.dev "${made.metadata.name}" is invalid: spec.color: Invalid value: "green": color cannot change`;
      assert.equal(bench.words(body.message), bench.words(text));
      const other = await bench.api.patch(bench.at(made), { spec: { size: 2 } });
      assert.equal(other.status, 200);
      const without = await bench.make({ spec: { size: 1 } });
      const set = await bench.api.patch(bench.at(without), { spec: { color: 'green' } });
      assert.equal(set.status, 200, set.text);
    });

    test('a transition rule within a list map finds the old item by its key', async () => {
      const made = await bench.make({
        spec: {
          size: 1,
          parts: [
            { name: 'a', count: 5 },
            { name: 'b', count: 1 },
          ],
        },
      });
      const parts = [
        { name: 'c', count: 0 },
        { name: 'b', count: 2 },
        { name: 'a', count: 4 },
      ];
      const { status, body } = await bench.api.patch(bench.at(made), { spec: { parts } });
      assert.equal(status, 422);
      assert.equal(body.details.causes.length, 1);
      const [{ reason, message, field }] = body.details.causes;
      assert.deepEqual([reason, field], ['FieldValueInvalid', 'spec.parts[2].count']);
      assert.equal(bench.words(message), bench.words('Invalid value: 4: count only grows'));
    });

    test('a terminal status cannot be left', async () => {
      const made = await bench.make();
      const status = `${bench.at(made)}/status`;
      assert.equal((await bench.api.patch(status, { status: { phase: 'Done' } })).status, 200);
      const back = await bench.api.patch(status, { status: { phase: 'Running' } });
      assert.equal(back.status, 422);
      const text = `Widget.contract.berth.dev "${made.metadata.name}" is invalid: status: Invalid value: a finished widget stays finished`;
      assert.equal(bench.words(back.body.message), bench.words(text));
      assert.equal((await bench.api.patch(status, { status: { replicas: 3 } })).status, 200);
    });

    test('a wrong status is 422 with its path', async () => {
      const made = await bench.make();
      const { status, body } = await bench.api.patch(`${bench.at(made)}/status`, { status: { phase: 'Flying' } });
      assert.equal(status, 422);
      assert.match(
        body.message,
        /status\.phase: Unsupported value: "Flying": supported values: "Waiting", "Running", "Done"/,
      );
    });

    test('a value that was stored before its rule existed blocks only its own change', async () => {
      const definition = (label: object) => ({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'growing.contract.berth.dev' },
        spec: {
          group: 'contract.berth.dev',
          scope: 'Namespaced',
          names: { plural: 'growing', kind: 'Growing' },
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: {
                openAPIV3Schema: {
                  type: 'object',
                  properties: {
                    short: { type: 'string', ...label },
                    ruled: {
                      type: 'string',
                      maxLength: 50,
                      'x-kubernetes-validations':
                        'maxLength' in label ? [{ rule: "self != 'old'", message: 'not old' }] : [],
                    },
                    other: { type: 'integer' },
                  },
                },
              },
            },
          ],
        },
      });
      const path = `/apis/contract.berth.dev/v1/namespaces/${bench.namespace}/growing`;
      const object = (name: string) => ({
        apiVersion: 'contract.berth.dev/v1',
        kind: 'Growing',
        metadata: { name },
        short: 'much too long',
        ruled: 'old',
        other: 1,
      });
      await bench.define(definition({}), path);
      // An earlier run may have left the tighter definition behind.
      await eventually(async () => (await bench.api.post(path, object('grown'))).status === 201, {
        what: 'no rule yet',
      });
      await bench.define(definition({ maxLength: 5 }), path);
      await eventually(async () => (await bench.api.post(`${path}?dryRun=All`, object('new'))).status === 422, {
        what: 'the new rules are in effect',
      });
      const other = await bench.api.patch(`${path}/grown`, { other: 2 });
      assert.equal(other.status, 200, other.text);
      const short = await bench.api.patch(`${path}/grown`, { short: 'again too long' });
      assert.equal(short.status, 422);
      assert.match(short.body.message, /short: Too long: may not be more than 5 bytes/);
      assert.equal((await bench.api.patch(`${path}/grown`, { short: 'right' })).status, 200);
      assert.equal((await bench.api.patch(`${path}/grown`, { ruled: 'new' })).status, 200);
      const back = await bench.api.patch(`${path}/grown`, { ruled: 'old' });
      assert.equal(back.status, 422);
      const text = 'Growing.contract.berth.dev "grown" is invalid: ruled: Invalid value: "old": not old';
      assert.equal(bench.words(back.body.message), bench.words(text));
    });
  });
}
