import assert from 'node:assert/strict';
import { test } from 'vitest';
import { applied, mutantsOf } from '../../mutation/mutants.ts';

const lines = (source: string) => mutantsOf('a.ts', source).map((mutant) => applied(source, mutant));

test('a mutant edits code and never a type, a comment, a string, a template or a regular expression', () => {
  const source = [
    '// a === b',
    "const text: 'x' | true = 'a === b';",
    'const pattern = /a < 1/; /* true */',
    `const template = \`\${text} === 1\`;`,
    'type Flag = false;',
    'const is = (text as unknown) === template;',
  ].join('\n');
  assert.deepEqual(lines(source), [source.replace('unknown) ===', 'unknown) !==')]);
});

test('a statement that is a call is left out as a whole, whatever strings it holds', () => {
  const source = 'function f() {\n  this.#log.info({ a }, "done (well)");\n}\n';
  assert.deepEqual(lines(source), ['function f() {\n  ;\n}\n']);
});

test('an edit that does not stand where it should is refused', () => {
  assert.throws(() => applied('a < b', { file: 'a.ts', offset: 2, find: ' < ', replace: ' <= ' }), /not at offset 2/);
});
