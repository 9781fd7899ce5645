import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { RunnerlessLog } from '../../../../controller/pod/runnerless-log.ts';

const markers = { start: '<<<BERTH_RESULT_START>>>', end: '<<<BERTH_RESULT_END>>>' };
const { start, end } = markers;

/** Result of a log that is read in the given pieces. */
function concluded(text: string, exitCode: number | undefined = 0, pieces = [text], lateSeconds?: number) {
  const log = new RunnerlessLog(markers);
  for (const piece of pieces) log.push(Buffer.from(piece));
  const { block, log: rest } = log.finish();
  return { ...log.conclude(block, rest.text, exitCode, lateSeconds), log: rest.text };
}
const success = (output: unknown) => `${start}${JSON.stringify({ status: 'success', output })}${end}`;

describe('the log of a pod without a runner', () => {
  for (const { what, text, exitCode, outcome, output, code, message } of [
    { what: 'one pair', text: `a\n${success(1)}\nb`, outcome: 'Succeeded', output: 1 },
    { what: 'the last of two pairs', text: `${success(1)}${success(2)}`, outcome: 'Succeeded', output: 2 },
    { what: 'a pair before an unterminated one', text: `${success(1)}${start}{`, outcome: 'Succeeded', output: 1 },
    { what: 'the inner of two nested pairs', text: `${start}x${success(2)}${end}`, outcome: 'Succeeded', output: 2 },
    { what: 'markers on lines of their own', text: `${start}\n{"status":"success"}\n${end}\n`, outcome: 'Succeeded' },
    {
      what: 'no marker',
      text: 'hello',
      code: 'MissingEnvelope',
      message:
        /^the program ended with exit code 0 without a result; its log has 5 bytes\. Print \$BERTH_RESULT_START_M/,
    },
    { what: 'nothing', text: '', code: 'MissingEnvelope', message: /its log is empty\. Print/ },
    {
      what: 'markers of another turn',
      text: '<<<BERTH_RESULT_START:0123>>>{}<<<BERTH_RESULT_END:0123>>>',
      code: 'MissingEnvelope',
      message: /its log has \d+ bytes, and BERTH_RESULT_START is in it, but not this turn’s start marker/,
    },
    { what: 'an end without a start', text: `x${end}`, code: 'MissingEnvelope', message: /rotated away/ },
    {
      what: 'a start without an end',
      text: `${start}{}`,
      code: 'MissingEnvelope',
      message: /its log has 26 bytes, and the start marker has no end marker after it\. Print/,
    },
    {
      what: 'an exit code and a start without an end',
      text: `oops ${start}{}`,
      exitCode: 3,
      code: 'AgentFailed',
      message: /^exit code 3; the start marker has no end marker after it\noops \{\}$/,
    },
    {
      what: 'an exit code and no marker',
      text: 'oops',
      exitCode: 3,
      code: 'AgentFailed',
      message: /^exit code 3\noops$/,
    },
    {
      what: 'an exit code and an end without a start',
      text: `x${end}`,
      exitCode: 3,
      code: 'AgentFailed',
      message: /^exit code 3; the end marker is there without its start, .*rotated away/,
    },
    {
      what: 'an error envelope, which wins over the exit code',
      text: `${start}{"status":"error","error":"no model"}${end}`,
      exitCode: 3,
      code: 'AgentFailed',
      message: /^no model$/,
    },
    {
      what: 'an exit code, which wins over success',
      text: success(1),
      exitCode: 3,
      output: 1,
      code: 'AgentFailed',
      message: /^exit code 3/,
    },
    {
      what: 'a question',
      text: `${start}{"status":"approval","prompt":"?"}${end}`,
      code: 'InvalidResult',
      message: /nobody can be asked/,
    },
    { what: 'what is no envelope', text: `${start}[1]${end}`, code: 'InvalidResult', message: /must be an object/ },
  ]) {
    test(`with ${what} gives ${code ?? outcome}`, () => {
      const found = concluded(text, exitCode);
      assert.equal(found.outcome, outcome ?? 'Failed');
      assert.deepEqual(found.output, output);
      assert.equal(found.error?.code, code);
      if (message) assert.match(found.error?.message ?? '', message);
    });
  }

  test('without a marker that begins long after the program did says that what was before is gone', () => {
    const { error } = concluded('the rest', 0, undefined, 31);
    assert.equal(error?.code, 'MissingEnvelope');
    assert.match(
      error?.message ?? '',
      /^the program .*; its log has 8 bytes, and nothing of .* first 31 s is there: .* rotated away\. .*print/,
    );
    assert.equal(concluded(success(1), 0, undefined, 31).output, 1, 'a result that is there counts');
  });

  test('of a program that was ended from outside gives the result it had printed', () => {
    const log = new RunnerlessLog(markers);
    log.push(Buffer.from(success(1)));
    const { block, log: rest } = log.finish();
    assert.equal(log.conclude(block, rest.text, undefined).outcome, 'Succeeded');
  });

  test('and its error lose what looks like a secret; the output does not', () => {
    const found = concluded(`token=abcdef\n${success('key=lambda_of_x')}`);
    assert.equal(found.log, 'token=[REDACTED]\n');
    assert.equal(found.output, 'key=lambda_of_x');
    const failed = concluded('password=hunter2', 1).error?.message ?? '';
    assert.match(failed, /^exit code 1\npassword=\[REDACTED\]$/);
  });

  test('is redacted by the patterns of its class', () => {
    const log = new RunnerlessLog(markers, { patterns: ['acct-\\d{4}', '(broken'] });
    log.push(Buffer.from(`acct-1234 ${success('acct-5678')}`));
    const { block, log: rest } = log.finish();
    assert.equal(rest.text, '[REDACTED] ');
    assert.equal(log.conclude(block, rest.text, 0).output, '[REDACTED]');
  });

  test('gives the same however it is cut into pieces', () => {
    const text = `before token=abcdef\n${success('ü')}\nafter ${start} ${success([1])} sk-1234567890abc`;
    const whole = concluded(text);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((to, i) => text.slice(at[i], to));
        assert.deepEqual(concluded(text, 0, pieces), whole);
      }),
      { numRuns: 200 },
    );
  });
});
