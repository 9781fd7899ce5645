import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { systemClock } from '../../../../core/system.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { expand } from '../../../../core/text/placeholders.ts';
import type { SessionFacts } from '../../../../runner/drivers/driver.ts';
import { argsWith, checkArguments, requestOf, textOf, writeInputFile } from '../../../../runner/drivers/input.ts';

const facts: SessionFacts = {
  name: 'sess',
  uid: 'uid-1',
  incarnation: 2,
  agent: { driver: 'Command', command: ['x'], args: [], env: [], input: 'Stdin', result: 'Envelope' },
  secrets: new Map(),
  hidden: hiddenBy({}),
  takesArtifacts: false,
  hasFiles: false,
  hasEnvironment: false,
};
const turn = (input: unknown) => ({ turn: 't1', name: 'turn-1', index: 1, attempt: 1, input, timeoutMs: 1000 });
const request = (input: unknown) =>
  requestOf(facts, { turn: turn(input), restored: undefined, approval: undefined }, systemClock);
const none = () => undefined;

describe('the request', () => {
  test('has type, id, input, timestamp, session and turn, and no method without one in the input', () => {
    const { timestamp, ...rest } = request({ n: 3 }) as Record<string, unknown>;
    assert.match(String(timestamp), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.deepEqual(rest, {
      type: 'request',
      id: 't1-1',
      input: { n: 3 },
      session: { name: 'sess', uid: 'uid-1', incarnation: 2 },
      turn: { name: 'turn-1', index: 1, attempt: 1 },
    });
  });
  test('takes method and parameters from an input object', () => {
    const { method, parameters } = request({ method: 'add', parameters: { a: 1 } }) as Record<string, unknown>;
    assert.deepEqual({ method, parameters }, { method: 'add', parameters: { a: 1 } });
  });
  test('parameters default to an empty object', () => {
    assert.deepEqual((request({ method: 'add' }) as Record<string, unknown>).parameters, {});
  });
  for (const method of ['', '  ', 3, null, ['x']]) {
    test(`an empty or non-string method is refused by name: ${JSON.stringify(method)}`, () => {
      assert.throws(() => request({ method }), { code: 'InvalidInput', message: /^input\.method must be a non-empty/ });
    });
  }
  for (const parameters of [[], 'x', null, 1]) {
    test(`parameters that are no object are refused by name: ${JSON.stringify(parameters)}`, () => {
      assert.throws(() => request({ method: 'm', parameters }), {
        code: 'InvalidInput',
        message: /^input\.parameters must be an object/,
      });
    });
  }
});

describe('input as text', () => {
  test('is the string itself', () => assert.equal(textOf('a\nb'), 'a\nb'));
  test('is refused when it is no string', () => {
    assert.throws(() => textOf({}), { code: 'InvalidInput', message: /agent\.input is Text; it is an object/ });
  });
});

describe('input as arguments', () => {
  test('a string input stays one argument whatever it holds', () => {
    assert.deepEqual(argsWith(['-p', '$(INPUT)'], '$(id); rm "x" $(SESSION_UID)', none), [
      '-p',
      '$(id); rm "x" $(SESSION_UID)',
    ]);
  });
  test('other input is JSON, fields are found by path', () => {
    assert.deepEqual(argsWith(['$(INPUT)', 'n=$(INPUT.a.n)', '$(INPUT.s)'], { a: { n: 1 }, s: 'x y' }, none), [
      '{"a":{"n":1},"s":"x y"}',
      'n=1',
      'x y',
    ]);
  });
  test('a missing field is refused by its name', () => {
    assert.throws(() => argsWith(['$(INPUT.who)'], { whom: 1 }, none), {
      code: 'InvalidInput',
      message: /\$\(INPUT\.who\)/,
    });
    assert.throws(() => argsWith(['$(INPUT.toString)'], {}, none), { code: 'InvalidInput' });
  });
  test('arguments without a placeholder for the input are refused', () => {
    assert.throws(() => argsWith(['-v'], 'x', none), { code: 'InvalidInput', message: /no \$\(INPUT\)/ });
  });
  test('an argument of 131,072 bytes is refused with the numbers, one byte less is taken', () => {
    checkArguments(['x'.repeat(131_071)]);
    assert.throws(() => checkArguments(['a', 'x'.repeat(131_072)]), {
      code: 'InvalidInput',
      message: /agent\.args\[1\] has 131072 bytes .* can have 131071/,
    });
  });
  test('an argument with NUL is refused', () => {
    assert.throws(() => checkArguments(['a\0b']), { code: 'InvalidInput', message: /NUL/ });
  });
});

describe('placeholders', () => {
  const value = (name: string) => (name === 'A' ? '<$(A)>' : undefined);
  test('known ones are replaced once, unknown ones are kept, doubled ones are literal', () => {
    assert.equal(expand('$(A) $(B) $$(A) $A $(', value), '<$(A)> $(B) $(A) $A $(');
  });
});

describe('the input file', () => {
  test('is readable by its owner alone, and gone after remove', () => {
    const directory = mkdtempSync(join(tmpdir(), 'berth-input-'));
    const file = writeInputFile(directory, 'input.json', '{}');
    assert.equal(statSync(file.path).mode & 0o777, 0o600);
    file.remove();
    assert.ok(!existsSync(file.path));
    rmSync(directory, { recursive: true });
  });
  test('is gone when it was only half written', () => {
    const directory = mkdtempSync(join(tmpdir(), 'berth-input-'));
    writeFileSync(join(directory, 'input.json'), 'half');
    assert.throws(() => writeInputFile(directory, 'input.json', '{}'), { code: 'InternalError', message: /EEXIST/ });
    assert.ok(!existsSync(join(directory, 'input.json')));
    rmSync(directory, { recursive: true });
  });
});
