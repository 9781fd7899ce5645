import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { describeProblem, findJsonProblem } from '../../../core/json-problem.ts';

describe('the place where a text stops being JSON', () => {
  const cases: [text: string, line: number, column: number, problem: RegExp][] = [
    ['', 1, 1, /expected a value, the text ends/],
    ['hello', 1, 1, /expected a value, found "h"/],
    ['{n: 3}', 1, 2, /expected a key in double quotes, found "n"/],
    [`{'n': 3}`, 1, 2, /expected a key in double quotes, found "'"/],
    ['{"n" 3}', 1, 6, /expected ":", found "3"/],
    ['{"n": 3,}', 1, 9, /expected a key in double quotes, found "}"/],
    ['{"n": 3', 1, 8, /expected "," or "}", the text ends/],
    ['[1, 2,]', 1, 7, /expected a value, found "]"/],
    ['[1 2]', 1, 4, /expected "," or "]", found "2"/],
    ['[01]', 1, 3, /expected "," or "]", found "1"/],
    ['{}{}', 1, 3, /expected nothing more, found "{"/],
    ['{\n  "a": nope\n}', 2, 8, /expected a value, found "n"/],
    ['"open', 1, 6, /not closed/],
    ['"a\nb"', 1, 3, /control character/],
    ['"\\x"', 1, 2, /escape does not exist/],
    ['["é😀", x]', 1, 8, /expected a value, found "x"/],
    ['{"n": NaN}', 1, 7, /^JSON has no NaN; write null or a string$/],
    ['[1, -Infinity]', 1, 5, /^JSON has no -Infinity; write null or a string$/],
    ['{"a": None}', 1, 7, /^JSON has no None; write null$/],
    ['[True]', 1, 2, /^JSON has no True; write true$/],
    ['[Nantes]', 1, 2, /expected a value, found "N"/],
    ['[😀]', 1, 2, /expected a value, found "😀"/],
  ];
  for (const [text, line, column, problem] of cases) {
    test(`${JSON.stringify(text)}: line ${line}, column ${column}`, () => {
      const found = findJsonProblem(text);
      assert.deepEqual([found.line, found.column], [line, column]);
      assert.match(describeProblem(found), problem);
    });
  }

  test('a JSON text that is cut is wrong at its end or in the word it was cut in', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, at) => {
        const cut = text.slice(0, at % (text.length + 1));
        fc.pre(!isJson(cut) && isWellFormed(cut));
        const { line, column } = findJsonProblem(cut);
        const position =
          cut
            .split('\n')
            .slice(0, line - 1)
            .join('\n').length +
          (line > 1 ? 1 : 0) +
          column -
          1;
        assert.match([...cut].slice(position).join(''), /^(\\.*|[a-z.+\-eE\d]*)$/);
      }),
    );
  });

  test('a text that nests deeper than the call stack has its problem told', () => {
    assert.equal(findJsonProblem('['.repeat(200_000)).column, 200_001);
    const marked = findJsonProblem('\ufeff{"a": 1}');
    assert.deepEqual([marked.line, marked.column], [1, 1]);
    assert.match(describeProblem(marked), /^a byte order mark \(U\+FEFF\); write UTF-8 without one$/);
  });

  test('a text with a string of 16 MiB, or as many lines, has its problem told', () => {
    const long = 'x'.repeat(16 * 1024 * 1024);
    assert.deepEqual(findJsonProblem(`["${long}", }`), {
      line: 1,
      column: long.length + 6,
      problem: 'expected a value',
      found: '}',
    });
    const { line, column } = findJsonProblem(`[${'\n'.repeat(long.length)} }`);
    assert.deepEqual([line, column], [long.length + 1, 2]);
  });

  test('the problem itself quotes nothing of the text', () => {
    assert.deepEqual(findJsonProblem('§'), { line: 1, column: 1, problem: 'expected a value', found: '§' });
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Reports whether no pair of surrogates is cut. */
const isWellFormed = (text: string) => text.isWellFormed();
