import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import type { AgentSpec } from '../../../../core/frames/messages.ts';
import { type Conclusion, conclude } from '../../../../core/result/conclude.ts';
import { TurnFailure } from '../../../../core/result/failure.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { type ReaderOptions, type ResultReader, resultReader } from '../../../../runner/drivers/result.ts';

const directory = mkdtempSync(join(tmpdir(), 'berth-result-'));
afterAll(() => rmSync(directory, { recursive: true }));

const START = '<<<BERTH_RESULT_START:7f>>>';
const END = '<<<BERTH_RESULT_END:7f>>>';
const secrets = hiddenBy({ values: ['correct-horse'] });

let number = 0;
/** Concludes a turn whose program printed the text, perhaps left a file, and ended. */
function concluded(printed: string, { result = 'Envelope', file, exitCode = 0, pieces = 1 }: Case = {}): Conclusion {
  const path = join(directory, `result-${number++}.json`);
  if (file !== undefined) writeFileSync(path, file);
  const options: ReaderOptions = {
    markers: { start: START, end: END },
    file: path,
    secrets,
    onLog: () => {},
    onEvent: () => {},
  };
  const reader = resultReader({ result } as AgentSpec, options);
  const bytes = Buffer.from(printed);
  const length = Math.ceil(bytes.length / pieces) || 1;
  for (let at = 0; at < bytes.length; at += length) reader.push(bytes.subarray(at, at + length));
  const exit = { code: exitCode, signal: null };
  return conclude({ exit, stopped: undefined, result: finished(reader), errorTail: '', secrets });
}

interface Case {
  result?: AgentSpec['result'];
  file?: string;
  exitCode?: number;
  pieces?: number;
}

function finished(reader: ResultReader) {
  try {
    return reader.finish();
  } catch (error) {
    assert.ok(error instanceof TurnFailure);
    return error;
  }
}

const HOW =
  'Print $BERTH_RESULT_START_MARKER, an envelope such as {"status": "success", "output": "hello"}, and $BERTH_RESULT_END_MARKER; or write the envelope to the file $BERTH_RESULT_FILE; or set agent.result to Text (berth run --result text) to take all of stdout as the result';
const NONE = 'the program ended with exit code 0 without a result; its stdout';
const OTHER =
  'and BERTH_RESULT_START is in it, but not this turn’s start marker, which is the value of the variable BERTH_RESULT_START_MARKER';
const JSON_HOW =
  'With agent.result Json all of stdout is the result: print everything else to stderr, or set agent.result to Text (berth run --result text) to take all of stdout as the result';

describe('a program that gives no result is told what Berth has seen, and how to give one:', () => {
  const cases: [what: string, printed: string, given: Case, code: string, message: string][] = [
    ['nothing printed', '', {}, 'MissingEnvelope', `${NONE} is empty. ${HOW}`],
    ['text alone', 'hello\n', {}, 'MissingEnvelope', `${NONE} has 6 bytes. ${HOW}`],
    [
      'a start marker alone',
      `a ${START}{}`,
      {},
      'MissingEnvelope',
      `${NONE} has 31 bytes, and the start marker has no end marker after it. ${HOW}`,
    ],
    [
      'an end marker alone',
      `{}${END}`,
      {},
      'MissingEnvelope',
      `${NONE} has 27 bytes, and the end marker has no start marker before it. ${HOW}`,
    ],
    [
      'markers in the wrong order',
      `${END}{}${START}`,
      {},
      'MissingEnvelope',
      `${NONE} has 54 bytes, and the start marker has no end marker after it. ${HOW}`,
    ],
    [
      'markers of another turn',
      '<<<BERTH_RESULT_START:0e>>>{}<<<BERTH_RESULT_END:0e>>>',
      {},
      'MissingEnvelope',
      `${NONE} has 54 bytes, ${OTHER}. ${HOW}`,
    ],
    [
      'the name of the variable',
      '$BERTH_RESULT_START_MARKER {}',
      {},
      'MissingEnvelope',
      `${NONE} has 29 bytes, ${OTHER}. ${HOW}`,
    ],
    [
      'a file without content',
      '',
      { file: '' },
      'MissingEnvelope',
      `${NONE} is empty, and the file BERTH_RESULT_FILE is empty. ${HOW}`,
    ],
    [
      'a start marker alone, and an exit code',
      `${START}correct-horse`,
      { exitCode: 3 },
      'AgentFailed',
      'exit code 3; the start marker has no end marker after it',
    ],
    ['text alone, and an exit code', 'hello', { exitCode: 3 }, 'AgentFailed', 'exit code 3'],
    [
      'JSON that is cut, between the markers',
      `${START}{"status": "success", "output": ${END}`,
      {},
      'InvalidResult',
      'the result between the markers is not valid JSON: line 1, column 33: expected a value, the text ends; it begins "{\\"status\\": \\"success\\", \\"output\\":"',
    ],
    [
      'a secret that is no JSON, in the file',
      '',
      { file: '{"output":\n correct-horse}' },
      'InvalidResult',
      'the result in BERTH_RESULT_FILE is not valid JSON: line 2, column 2: expected a value; it begins "{\\"output\\":\\n [REDACTED]}"',
    ],
    ['nothing as Json', '', { result: 'Json' }, 'InvalidResult', `stdout is empty; it must be JSON. ${JSON_HOW}`],
    [
      'a line before the Json',
      'done\n{}',
      { result: 'Json' },
      'InvalidResult',
      `stdout is not valid JSON: line 1, column 1: expected a value; it begins "done\\n{}". ${JSON_HOW}`,
    ],
  ];
  for (const [what, printed, given, code, message] of cases) {
    test(what, () => {
      for (const pieces of [1, 3, printed.length]) {
        const { outcome, error } = concluded(printed, { ...given, pieces });
        assert.deepEqual([outcome, error], ['Failed', { code, message }]);
      }
    });
  }

  test('nothing of that is said beside a result', () => {
    const envelope = '{"status":"success","output":1}';
    for (const printed of [
      `$BERTH_RESULT_START_MARKER ${START}${envelope}${END}`,
      `${END}${START}${envelope}${END}${START}{}`,
    ]) {
      assert.deepEqual(concluded(printed), { outcome: 'Succeeded', output: 1, exitCode: 0 });
    }
    assert.equal(concluded(`${START}half`, { file: envelope }).output, 1);
  });
});
