import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { textLine } from '../../../../core/program/log-text.ts';

const LOG = join(import.meta.dirname, '..', '..', '..', '..', 'core', 'program', 'log.ts');

/** Lines that a program writes with this code, which has `log`. */
function written(format: string, code: string): string[] {
  const script = `import { programLog } from '${LOG}'; const log = programLog(1, 'debug', '${format}'); ${code}`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout.trimEnd().split('\n');
}

const CODE = `log.debug({}, 'a'); log.child({ pod: 'p-1' }).info({ n: 1 }, 'it goes on'); log.error({ err: new TypeError('no') }, 'c');`;

describe('the log of a program', () => {
  test('is an object a line, whose level is a word', () => {
    const lines = written('json', CODE).map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ level, msg, pod, n }) => [level, msg, pod, n]),
      [
        ['debug', 'a', undefined, undefined],
        ['info', 'it goes on', 'p-1', 1],
        ['error', 'c', undefined, undefined],
      ],
    );
    assert.match(lines[0].time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(lines[2].err.type, 'TypeError');
  });

  test('is text where that is asked for, with the fields behind the message and the stack below it', () => {
    const [first = '', second = '', third = '', ...stack] = written('text', CODE);
    assert.match(first, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z DEBUG a$/);
    assert.match(second, /Z INFO {2}it goes on pod=p-1 n=1$/);
    assert.match(third, /Z ERROR c err=\{"type":"TypeError","message":"no"\}$/);
    assert.equal(stack[0], '    TypeError: no');
    assert.match(stack[1] ?? '', /^ {8}at /);
  });

  test('as text has no line that a value made, and nothing that acts on a terminal', () => {
    const forged = '\n2026-01-01T00:00:00.000Z INFO  all is well\u001b[2J';
    const json = { time: 't', level: 'warn', user: forged, msg: 'm', err: { message: forged, stack: `E: ${forged}` } };
    const [line, ...rest] = textLine(JSON.stringify(json)).trimEnd().split('\n');
    assert.equal(line?.startsWith('t WARN  m user="\\n2026-'), true, line);
    assert.deepEqual(rest, ['    E: ', '    2026-01-01T00:00:00.000Z INFO  all is well\\u001b[2J']);
    assert.ok(!line?.includes('\u001b'));
  });
});
