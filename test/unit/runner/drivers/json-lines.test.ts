import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { Envelope } from '../../../../core/result/envelope.ts';
import { NoResult } from '../../../../core/result/no-result.ts';
import { JsonLinesReader, valueAt } from '../../../../runner/drivers/json-lines.ts';
import { LineSplitter } from '../../../../runner/text/lines.ts';

type Spec = ConstructorParameters<typeof JsonLinesReader>[0];

/** The end and the output stand in one line. */
const ONE: Spec = {
  resultWhen: { '/type': 'result' },
  output: '/result',
  errorWhen: { '/type': 'result', '/is_error': 'true' },
  error: '/result',
  usage: { inputTokens: '/usage/input_tokens', costUSD: '/cost', nothing: '/not/there', text: '/type' },
};
/** The output stands in another line than the end. */
const TWO: Spec = {
  resultWhen: { '/type': 'turn.completed' },
  outputWhen: { '/type': 'item', '/item/type': 'message' },
  output: '/item/text',
  errorWhen: { '/type': 'turn.failed' },
  error: '/error/message',
};

function read(spec: Spec, lines: (object | string)[]) {
  const events: unknown[] = [];
  let log = '';
  const reader = new JsonLinesReader(spec, {
    onEvent: (event) => events.push(event),
    onLog: (bytes) => {
      log += bytes.toString();
    },
  });
  for (const line of lines) reader.push(Buffer.from(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`));
  return { finish: () => envelopeOf(reader), missing: () => reader.finish(), events, log: () => log };
}

function envelopeOf(reader: JsonLinesReader): Envelope {
  const found = reader.finish();
  assert.ok(!(found instanceof NoResult), 'there is a result');
  return found;
}

describe('the result among lines of JSON', () => {
  test('whose error is nested too deep is refused, and nothing breaks', () => {
    const line = `{"type":"result","is_error":true,"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    assert.throws(() => read(ONE, [line]).finish(), { code: 'InvalidResult', message: /nested deeper than 64/ });
  });

  test('is where the pointers say; every other object is an event, the rest is log', () => {
    const { finish, events, log } = read(ONE, [
      'Starting…',
      { type: 'init' },
      '[1, 2]',
      { type: 'result', is_error: false, result: 'fine', usage: { input_tokens: 3 }, cost: 0.5 },
      '{broken',
      { type: 'after' },
    ]);
    assert.deepEqual(finish(), {
      status: 'success',
      output: 'fine',
      metadata: { usage: { inputTokens: 3, costUSD: 0.5 } },
    });
    assert.deepEqual(events, [{ type: 'init' }, { type: 'after' }]);
    assert.equal(log(), 'Starting…\n[1, 2]\n{broken\n');
  });

  test('can say that the turn failed', () => {
    const { finish } = read(ONE, [{ type: 'result', is_error: true, result: 'no credit' }]);
    assert.deepEqual(finish(), { status: 'error', error: 'no credit' });
  });

  test('without the error’s text has all of the line', () => {
    const { finish } = read(ONE, [{ type: 'result', is_error: true }]);
    assert.deepEqual(finish(), { status: 'error', error: '{"type":"result","is_error":true}' });
  });

  test('that is no JSON is told by its place in the line, where there is no other result', () => {
    const told = (...lines: (object | string)[]) => {
      const found = read(ONE, lines).missing();
      assert.ok(found instanceof NoResult);
      return found.found;
    };
    const none = (count: number) =>
      `none of the ${count} JSON objects in lines of stdout is the one that agent.jsonLines.resultWhen describes`;
    assert.equal(
      told({ type: 'x' }, '{"type": "result", "result": NaN}'),
      `${none(1)}; 1 line begins like an object and is no JSON, the last at column 30: JSON has no NaN; write null or a string`,
    );
    assert.equal(
      told('{broken', "{'type': 'result'}"),
      `${none(0)}; 2 lines begin like an object and are no JSON, the last at column 2: expected a key in double quotes, found "'"`,
    );
    assert.equal(told('Starting', '[NaN]'), none(0));
  });

  test('takes the output from the last line that has it', () => {
    const message = (text: string) => ({ type: 'item', item: { type: 'message', text } });
    const { finish, events } = read(TWO, [
      message('first'),
      { type: 'item', item: {} },
      message('last'),
      { type: 'turn.completed' },
    ]);
    assert.equal(finish().output, 'last');
    assert.equal(events.length, 3);
  });

  test('after an error counts instead of it, and the other way round', () => {
    const [failed, completed] = [{ type: 'turn.failed', error: { message: 'x' } }, { type: 'turn.completed' }];
    const message = { type: 'item', item: { type: 'message', text: 'out' } };
    assert.equal(read(TWO, [failed, message, completed]).finish().status, 'success');
    assert.deepEqual(read(TWO, [message, completed, failed]).finish(), { status: 'error', error: 'x' });
  });

  test('is missing where no line is it, and says so', () => {
    const missing = read(ONE, [{ type: 'init' }, 'text', { type: 'item' }]).missing();
    assert.ok(missing instanceof NoResult);
    const { code, message } = missing.failure('exit code 0');
    assert.equal(code, 'MissingEnvelope');
    assert.equal(
      message,
      'the program ended with exit code 0 without a result; its stdout has 37 bytes, and none of the 2 JSON objects in lines of stdout is the one that agent.jsonLines.resultWhen describes',
    );
    assert.throws(() => read(ONE, [{ type: 'result' }]).finish(), {
      code: 'InvalidResult',
      message: /nothing at .*\/result/,
    });
    assert.throws(() => read(TWO, [{ type: 'turn.completed' }]).finish(), {
      code: 'InvalidResult',
      message: /outputWhen/,
    });
  });

  test('is the whole line without a pointer', () => {
    assert.deepEqual(read({ resultWhen: { '/done': 'true' } }, [{ done: true, n: 1 }]).finish().output, {
      done: true,
      n: 1,
    });
  });

  test('an event that is too large to be handed on is log', () => {
    const { finish, events, log } = read(ONE, [
      { type: 'big', x: 'y'.repeat(20_000) },
      { type: 'result', result: 1 },
    ]);
    assert.equal(finish().output, 1);
    assert.deepEqual([events.length, log().length > 20_000], [0, true]);
  });

  test('the last line needs no line feed', () => {
    const reader = new JsonLinesReader(ONE, { onEvent: () => {}, onLog: () => {} });
    reader.push(Buffer.from('{"type":"result",'));
    reader.push(Buffer.from('"result":7}'));
    assert.equal(envelopeOf(reader).output, 7);
  });
});

describe('a JSON pointer', () => {
  test('finds what RFC 6901 says', () => {
    const value = { foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'm~n': 8, ' ': 7 };
    const found = ['', '/foo', '/foo/0', '/', '/a~1b', '/m~0n', '/ '].map((pointer) => valueAt(value, pointer));
    assert.deepEqual(found, [value, ['bar', 'baz'], 'bar', 0, 1, 8, 7]);
    for (const pointer of ['/nope', '/foo/2', '/foo/x', '/foo/length/x', '/constructor', '/__proto__']) {
      assert.equal(valueAt(value, pointer), undefined, pointer);
    }
  });
});

describe('lines', () => {
  test('are the same however they come', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.nat({ max: 60 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.join('\n'));
        const places = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
        const got: string[] = [];
        const splitter = new LineSplitter({
          maxBytes: 1000,
          onLine: (line) => got.push(line.toString()),
          onTooLong: () => {},
        });
        for (const [i, from] of [0, ...places].entries())
          splitter.push(bytes.subarray(from, places[i] ?? bytes.length));
        splitter.end();
        assert.equal(got.join(''), bytes.toString());
        assert.ok(got.slice(0, -1).every((line) => line.indexOf('\n') === line.length - 1));
      }),
    );
  });

  test('that are too long are handed on in pieces, whole', () => {
    const pieces: string[] = [];
    const lines: string[] = [];
    const splitter = new LineSplitter({
      maxBytes: 5,
      onLine: (line) => lines.push(line.toString()),
      onTooLong: (piece) => pieces.push(piece.toString()),
    });
    for (const piece of ['ab', 'cd', 'efgh', 'i\nno\n']) splitter.push(Buffer.from(piece));
    splitter.end();
    assert.deepEqual([pieces.join(''), lines], ['abcdefghi\n', ['no\n']]);
  });
});
