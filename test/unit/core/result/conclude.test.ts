import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { conclude, type Ending, turnError } from '../../../../core/result/conclude.ts';
import { parseEnvelope } from '../../../../core/result/envelope.ts';
import { TurnFailure } from '../../../../core/result/failure.ts';
import { NoResult } from '../../../../core/result/no-result.ts';
import { parseJson } from '../../../../core/result/output.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';

const NONE = hiddenBy({});
const ok = { code: 0, signal: null };
const end = (ending: Partial<Ending>) =>
  conclude({ exit: ok, stopped: undefined, result: undefined, errorTail: '', secrets: NONE, ...ending });
const envelope = (value: unknown) => parseEnvelope(JSON.stringify(value), 'the result', NONE);

describe('the result of a turn', () => {
  test('a success envelope with exit code 0 succeeds', () => {
    const result = envelope({ status: 'success', output: { a: 1 }, turn_count: 2, metadata: { m: true } });
    assert.deepEqual(end({ result }), {
      outcome: 'Succeeded',
      output: { a: 1 },
      turnCount: 2,
      metadata: { m: true },
      exitCode: 0,
    });
  });
  const nothing = new NoResult({ stream: 'stdout', bytes: 12, advice: 'Print one' });
  const half = new NoResult({
    stream: 'stdout',
    bytes: 1,
    found: 'the start marker stands alone',
    advice: 'Print one',
  });
  const killed = { code: null, signal: 'SIGKILL' };
  for (const [what, result, exit, code, message] of [
    [
      'says how much there is and what to do',
      nothing,
      ok,
      'MissingEnvelope',
      'the program ended with exit code 0 without a result; its stdout has 12 bytes. Print one',
    ],
    [
      'says what was found in its place',
      half,
      ok,
      'MissingEnvelope',
      'the program ended with exit code 0 without a result; its stdout has 1 byte, and the start marker stands alone. Print one',
    ],
    [
      'claims no exit code that is not known',
      new NoResult({ stream: 'log', bytes: 0, advice: 'Print one' }),
      undefined,
      'MissingEnvelope',
      'the program ended without a result; its log is empty. Print one',
    ],
    ['is no news after another exit code', nothing, { code: 7, signal: null }, 'AgentFailed', 'exit code 7'],
    [
      'says what was found after a signal',
      half,
      killed,
      'AgentFailed',
      'killed by SIGKILL; the start marker stands alone',
    ],
  ] as const) {
    test(`a program without a result ${what}`, () => {
      const ended = end({ exit, result });
      assert.deepEqual([ended.outcome, ended.error], ['Failed', { code, message }]);
    });
  }
  test('advice follows what is wrong with a result, unless the program has failed itself', () => {
    const result = new TurnFailure('InvalidResult', 'stdout is empty', 'Print JSON');
    assert.equal(end({ result }).error?.message, 'stdout is empty. Print JSON');
    assert.equal(end({ exit: { code: 2, signal: null }, result }).error?.message, 'exit code 2; stdout is empty');
  });
  test('with a non-zero exit an error envelope wins over stderr', () => {
    const result = envelope({ status: 'error', error: 'quota used up' });
    const ended = end({ exit: { code: 3, signal: null }, result, errorTail: 'Traceback' });
    assert.deepEqual(ended.error, { code: 'AgentFailed', message: 'quota used up' });
    assert.equal(ended.exitCode, 3);
  });
  test('with exit code 0 an error envelope fails the turn with its text, its output kept', () => {
    const ended = end({ result: envelope({ status: 'error', error: 'no', output: 'part' }) });
    assert.deepEqual(
      [ended.outcome, ended.error, ended.output],
      ['Failed', { code: 'AgentFailed', message: 'no' }, 'part'],
    );
  });
  test('a non-zero exit without an envelope is exit code N and the tail of stderr', () => {
    const ended = end({ exit: { code: 7, signal: null }, errorTail: 'boom' });
    assert.deepEqual(ended.error, { code: 'AgentFailed', message: 'exit code 7\nboom' });
  });
  test('a signal is named', () => {
    const ended = end({ exit: { code: null, signal: 'SIGSEGV' } });
    assert.deepEqual([ended.error?.message, ended.signal], ['killed by SIGSEGV', 'SIGSEGV']);
  });
  test('a non-zero exit after a success envelope fails, the output kept', () => {
    const result = envelope({ status: 'success', output: 1 });
    const ended = end({ exit: { code: 1, signal: null }, result });
    assert.deepEqual([ended.outcome, ended.error?.message, ended.output], ['Failed', 'exit code 1', 1]);
  });
  test('invalid JSON between the markers is an error that says so, exit code or not', () => {
    const result = new TurnFailure('InvalidResult', 'the result is not valid JSON');
    assert.deepEqual(end({ result }).error, { code: 'InvalidResult', message: 'the result is not valid JSON' });
    assert.equal(
      end({ exit: { code: 2, signal: null }, result }).error?.message,
      'exit code 2; the result is not valid JSON',
    );
  });
  test('a stopped turn keeps its reason, and what the agent said before as information', () => {
    const stopped = { outcome: 'TimedOut' as const, error: { code: 'TurnTimedOut', message: 'late' }, graceMs: 1 };
    const ended = end({ stopped, result: envelope({ status: 'success', output: 'part' }) });
    assert.deepEqual([ended.outcome, ended.error?.code, ended.output], ['TimedOut', 'TurnTimedOut', 'part']);
  });
  test('an output over 8 MiB is refused with the numbers', () => {
    const ended = end({ result: { status: 'success', output: 'x'.repeat(8 * 1024 * 1024 - 1) } });
    assert.equal(ended.error?.code, 'OutputTooLarge');
    assert.match(ended.error?.message ?? '', /8388609 bytes; at most 8388608/);
    assert.equal(ended.output, undefined);
    assert.equal(end({ result: { status: 'success', output: 'x'.repeat(8 * 1024 * 1024 - 2) } }).outcome, 'Succeeded');
  });
  test('an output keeps every digit of its numbers; metadata and payload show as strings those that a status would round', () => {
    const said = '{"a":[12345678901234567890,1e999,9007199254740993]}';
    const text = `{"status":"approval","prompt":"?","payload":${said},"output":${said},"metadata":${said}}`;
    const { output, metadata, asks } = end({ result: parseEnvelope(text, 'the result', NONE) });
    assert.equal(JSON.stringify(output), said);
    const shown = '{"a":["12345678901234567890","1e999",9007199254740993]}';
    assert.deepEqual([JSON.stringify(metadata), JSON.stringify(asks?.payload)], [shown, shown]);
  });
  test('a byte order mark before JSON is told by its name, also before nothing', () => {
    for (const text of ['\ufeff{"a": 1}', '\ufeff', '\ufeff\n'])
      assert.throws(
        () => parseJson(text, 'stdout', NONE),
        /^TurnFailure: stdout is not valid JSON: .*a byte order mark/,
      );
    assert.throws(() => parseJson(' \r\n\t', 'stdout', NONE), /stdout is empty; it must be JSON/);
  });
  test('a key that API servers may refuse is refused', () => {
    assert.throws(() => parseJson('{"a":{"__proto__":1}}', 'the output', NONE), /the output has the key "__proto__"/);
    assert.equal(parseJson('"__proto__"', 'the output', NONE), '__proto__');
  });
  test('metadata over 4 KiB is refused with the numbers, the output kept', () => {
    const ended = end({ result: envelope({ status: 'success', output: 1, metadata: { m: 'x'.repeat(4096) } }) });
    assert.deepEqual([ended.error?.code, ended.output], ['ResultRejected', 1]);
    assert.match(ended.error?.message ?? '', /4104 bytes as JSON; at most 4096/);
  });
  test('an error message is cut at 4 KiB between characters', () => {
    const { message } = turnError('AgentFailed', `a${'é'.repeat(4000)}`, NONE);
    assert.equal(Buffer.byteLength(message), 4095);
    assert.ok(message.isWellFormed() && message.endsWith('é'));
  });
  test('secrets are redacted from output, its keys, metadata and error messages, and counted but for the error', () => {
    const secrets = hiddenBy({ values: ['correct-horse'] });
    const text = 'x correct-horse sk-0123456789';
    const result = { status: 'success' as const, output: { [text]: [text] }, metadata: { m: text } };
    const ended = end({ result, secrets });
    const clean = 'x [REDACTED] sk-0123456789';
    assert.deepEqual([ended.output, ended.metadata, ended.redactions], [{ [clean]: [clean] }, { m: clean }, 3]);
    const failed = end({ result: { status: 'error', error: text }, secrets });
    assert.deepEqual([failed.error?.message, failed.redactions], ['x [REDACTED] [REDACTED]', undefined]);
  });
});

describe('the envelope', () => {
  const wrong: [value: unknown, message: RegExp][] = [
    [[], /must be an object; it is an array/],
    ['x', /must be an object; it is a string/],
    [{}, /"status" must be "success", "error" or "approval"; it is absent. Print, for example, {"status": "success"/],
    [{ status: 'done' }, /"status" must be "success", "error" or "approval"; it is "done"/],
    [{ status: 'error', error: {} }, /"error" must be a string; it is an object/],
    [{ status: 'success', turn_count: -1 }, /"turn_count" must be a whole number/],
    [{ status: 'success', turn_count: '1' }, /"turn_count" must be a whole number/],
    [{ status: 'success', metadata: [] }, /"metadata" must be an object; it is an array/],
  ];
  for (const [value, message] of wrong) {
    test(`names what is wrong: ${JSON.stringify(value)}`, () => {
      assert.throws(() => envelope(value), { code: 'InvalidResult', message });
    });
  }
  test('has an output and metadata of 64 levels, and no deeper ones', () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    assert.deepEqual(envelope({ status: 'success', output: nested(64) }).output, nested(64));
    const message = /nested deeper than 65 levels, at output\[0\]/;
    assert.throws(() => envelope({ status: 'success', output: nested(65) }), { code: 'InvalidResult', message });
    const metadata = { m: nested(64) };
    assert.throws(() => envelope({ status: 'success', metadata }), { code: 'InvalidResult' });
  });
  test('null stands for absent, unknown fields are no error', () => {
    const value = { status: 'success', output: null, error: null, turn_count: null, metadata: null, extra: 1 };
    assert.deepEqual(envelope(value), { status: 'success', output: null });
  });
});

describe('JSON from an agent', () => {
  test('that is none is quoted from its redacted beginning', () => {
    assert.throws(() => parseJson('Error: hunter2', 'stdout', hiddenBy({ values: ['hunter2'] })), {
      code: 'InvalidResult',
      message: 'stdout is not valid JSON: line 1, column 1: expected a value; it begins "Error: [REDACTED]"',
    });
  });
  test('that stops being JSON in a secret has the place told, and no character of it', () => {
    const text = '{"a": 1,\n "b" hunter2}';
    assert.throws(() => parseJson(text, 'stdout', hiddenBy({ values: ['hunter2'] })), {
      message:
        'stdout is not valid JSON: line 2, column 6: expected ":"; it begins "{\\"a\\": 1,\\n \\"b\\" [REDACTED]}"',
    });
  });
  test('that is empty is told so', () => assert.throws(() => parseJson(' \n', 'stdout', NONE), /stdout is empty/));
  test('nested too deep is refused, not a crash', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    assert.throws(() => parseJson(deep, 'stdout', NONE), { code: 'InvalidResult', message: /nested deeper than 64/ });
  });
});
