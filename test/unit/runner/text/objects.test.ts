import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { ObjectSyntax, type Verdict } from '../../../../runner/text/json-syntax.ts';
import { ObjectScanner } from '../../../../runner/text/objects.ts';

interface Seen {
  objects: unknown[];
  log: string;
  broken: string[];
  tooLarge: number[];
}

/** Scans the pieces. An object with `"log":true`, or with a number that JSON does not allow, is log. */
function scan(pieces: (string | Buffer)[], maxBytes = 1000): Seen {
  const { scanner, seen } = scannerOf(maxBytes);
  for (const piece of pieces) scanner.push(Buffer.from(piece));
  scanner.end();
  return seen;
}

function scannerOf(maxBytes = 1000): { scanner: ObjectScanner; seen: Seen } {
  const seen: Seen = { objects: [], log: '', broken: [], tooLarge: [] };
  const scanner = new ObjectScanner({
    maxBytes,
    onObject: (bytes) => {
      const value = parsed(bytes.toString('utf8'));
      if (!value || value.log) return false;
      seen.objects.push(value);
      return true;
    },
    onTooLarge: (bytes) => seen.tooLarge.push(bytes),
    onBroken: (text) => seen.broken.push(text),
    onLog: (bytes) => {
      seen.log += bytes.toString('latin1');
    },
  });
  return { scanner, seen };
}

/** Returns undefined for an object with a number like `-`, which the scanner does not check. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function judge(text: string): { verdict: Verdict; at: number } {
  const syntax = new ObjectSyntax();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at++) {
    const verdict = syntax.push(bytes[at] as number);
    if (verdict !== 'More') return { verdict, at };
  }
  return { verdict: 'More', at: bytes.length };
}

const anObject = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue());
const laidOut = fc
  .tuple(anObject, fc.constantFrom(undefined, 1, 2, '\t'))
  .map(([value, indent]) => JSON.stringify(value, null, indent));

describe('the syntax of an object', () => {
  test('every object is done with its last byte, and not before', () => {
    fc.assert(
      fc.property(laidOut, (text) => {
        assert.deepEqual(judge(text), { verdict: 'Done', at: Buffer.byteLength(text) - 1 });
      }),
    );
  });

  test('text that is told to be broken is no JSON', () => {
    fc.assert(
      fc.property(
        laidOut,
        fc.nat(),
        fc.constantFrom(...'{}[]",:\\tn0e \n'),
        fc.boolean(),
        (text, where, by, replace) => {
          const at = 1 + (where % Math.max(1, text.length - 1));
          const changed = text.slice(0, at) + by + text.slice(replace ? at + 1 : at);
          const { verdict } = judge(changed);
          if (verdict !== 'Broken') return;
          assert.throws(() => JSON.parse(changed), SyntaxError);
        },
      ),
    );
  });

  for (const text of [
    '{x',
    "{'",
    '{"a"}',
    '{"a":1,}',
    '{"a":[1}',
    '{"a" "',
    '{"a":tru}',
    '{"a\n',
    '{"a":"\\x',
    '{,',
    '{"a":N',
    '{"a":"\\u12g',
  ]) {
    test(`is broken as soon as it can be told: ${JSON.stringify(text)}`, () => {
      assert.deepEqual(judge(text), { verdict: 'Broken', at: text.length - 1 });
    });
  }

  test('deep nesting ends', () => assert.equal(judge(`{"a":${'['.repeat(2000)}`).verdict, 'Broken'));
});

describe('objects among text', () => {
  test('one line, many lines, several on a line, after blanks; the text between them is log', () => {
    const text = 'hello\n{"a":1}\n  {\n "b": {"c":\n[2]}\n}{"d":3} tail\n{"log":true}\nend {"no":1}\n\n';
    assert.deepEqual(scan([text]), {
      objects: [{ a: 1 }, { b: { c: [2] } }, { d: 3 }],
      log: 'hello\n   tail\n{"log":true}\nend {"no":1}\n\n',
      broken: [],
      tooLarge: [],
    });
  });

  test('an open brace swallows nothing: what follows is found', () => {
    const { objects, log, broken } = scan(['{\n{"a":1}\n{ "x": [\n{"a":2}\nwords\n{"a":3}\n']);
    assert.deepEqual(objects, [{ a: 1 }, { a: 2 }, { a: 3 }]);
    assert.equal(log, '{\n{ "x": [\nwords\n');
    assert.equal(broken.length, 2);
  });

  test('an open object that is given up is log, and whole objects among its lines are found', () => {
    const { scanner, seen } = scannerOf();
    const text = '{"list": [\n{"a":1},\n{"b":\n2}\n';
    scanner.push(Buffer.from(text));
    assert.deepEqual([scanner.isOpen, seen.objects, seen.log], [true, [], '']);
    scanner.abandon();
    assert.deepEqual([scanner.isOpen, seen.objects, seen.broken.length], [false, [{ a: 1 }, { b: 2 }], 1]);
    assert.equal(seen.log, '{"list": [\n,\n');
    scanner.push(Buffer.from('{"c":3}\n'));
    assert.deepEqual(seen.objects.at(-1), { c: 3 });
  });

  test('an open object knows of whole objects on lines of their own, and of nothing else', () => {
    const { scanner } = scannerOf();
    const seen: string[] = [];
    const look = () => scanner.hasInside((line) => seen.push(line) > 0 && line === '{"a":1}');
    assert.equal(look(), false);
    scanner.push(Buffer.from('{"text": "{\\"a\\":1}", "list": [\n'));
    assert.equal(look(), false);
    scanner.push(Buffer.from('{"a":1}\n'));
    assert.equal(look(), true);
  });

  test('an object that never ends is log in the end', () => {
    assert.deepEqual(scan(['{"a":', '1,']).log, '{"a":1,');
  });

  test('however the text is cut into pieces, the same is found', () => {
    const line = fc.oneof(
      laidOut,
      fc.string(),
      fc.constantFrom('{', '{"a":', '{"a":1', '}', '{"log":true}', ' \t', '{"a":"'),
    );
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat({ max: 200 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.join('\n'));
        const places = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
        const pieces = [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
        const whole = scan([bytes]);
        const cut = scan(pieces);
        // The quoted part of a broken text depends on the pieces in which it came.
        assert.deepEqual({ ...cut, broken: cut.broken.length }, { ...whole, broken: whole.broken.length });
      }),
    );
  });

  test('an object with a number that JSON does not allow is log', () => {
    const text = '{"a":\n-}';
    assert.deepEqual(scan([text]), { objects: [], log: text, broken: [], tooLarge: [] });
  });

  test('text without objects is log, without loss', () => {
    const line = fc.oneof(fc.string(), fc.constantFrom('{', '{"a":', '{"a":[\n', '{"a":"', '{"log":true}'));
    fc.assert(
      fc.property(fc.array(line), (lines) => {
        const text = lines.join('\n');
        fc.pre(scan([text]).objects.length === 0);
        assert.equal(scan([text]).log, Buffer.from(text).toString('latin1'));
      }),
    );
  });

  test('an object that is too large is counted and is log, and the objects after it are found', () => {
    const text = `{"a":"${'x'.repeat(2000)}"}`;
    for (const pieces of [
      [`${text}\n{"b":1}\n`],
      [text.slice(0, 50), text.slice(50, 300), `${text.slice(300)}\n{"b":1}\n`],
    ]) {
      const { objects, tooLarge, log } = scan(pieces, 100);
      assert.deepEqual([objects, tooLarge, log], [[{ b: 1 }], [2008], text]);
    }
  });

  test('nested beginnings without end are scanned in bounded time', () => {
    const text = `${'{"a":\n'.repeat(900)}${'"x",\n'.repeat(1)}${'{"a":[\n1,\n'.repeat(400_000)}`;
    const { objects, log } = scan([text, '!\n{"z":1}\n'], 64_000_000);
    assert.deepEqual(objects, [{ z: 1 }]);
    assert.equal(log.length, text.length + 2);
  });
});
