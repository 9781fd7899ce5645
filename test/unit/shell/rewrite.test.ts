// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not TypeScript
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { isPlainEnvironment, rewriteBackground } from '../../../runner/shell/rewrite.ts';
import { corpus } from '../../integration/shell/corpus.ts';

/** Programs of the machine where the texts run, as `programsOn` would find them. */
const PROGRAMS = new Set(
  'probe sleep cat ls sh bash env nice nohup touch grep sed stat readlink printenv /bin/sh /bin/echo /usr/bin/env'
    .concat(' true false echo printf test [ kill pwd time d/tool')
    .split(' '),
);
const isProgram = (name: string) => PROGRAMS.has(name);
const rewrite = (text: string) => rewriteBackground(text, isProgram);

describe('the rewrite of background lists', () => {
  test('exec goes before the last simple command of a background list, and nothing else changes', () => {
    const cases = {
      'true && probe &': 'true && exec probe &',
      'false || probe a &': 'false || exec probe a &',
      'a && b || cd x &&\n  probe &': 'a && b || cd x &&\n  exec probe &',
      'true && FOO=1 >x probe 2>&1 & echo $!': 'true && FOO=1 >x exec probe 2>&1 & echo $!',
      'a & true && probe & b && probe': 'a & true && exec probe & b && probe',
      'true && cat <<E &\n$(x && probe &)\nE\ny || probe&':
        'true && exec cat <<E &\n$(x && probe &)\nE\ny || exec probe&',
      'x="$(a && probe & echo $!)"': 'x="$(a && exec probe & echo $!)"',
      'for ((;;)); do a && probe & done': 'for ((;;)); do a && exec probe & done',
      'é && probe ü &': 'é && exec probe ü &',
    };
    for (const [text, expected] of Object.entries(cases)) assert.equal(rewrite(text), expected);
  });

  test('every written text is touched, or left alone, as it says', () => {
    for (const { text, touched } of corpus) assert.equal(rewrite(text) !== text, touched, text);
  });

  test('a program that a relative path names is left alone where the text moves', () => {
    assert.equal(rewrite('true && d/tool & wait'), 'true && exec d/tool & wait');
    for (const move of ['cd e', 'pushd e', 'command cd e', 'x=$(cd e; pwd)']) {
      const text = `${move}; true && d/tool & wait`;
      assert.equal(rewrite(text), text);
    }
  });

  test('a rewritten text is not rewritten again', () => {
    for (const { text } of corpus) assert.equal(rewrite(rewrite(text)), rewrite(text));
  });

  test('a text of any characters only ever gains the word exec', () => {
    const pieces = fc.constantFrom(
      ...[
        '&&',
        '||',
        '&',
        '&>',
        'a',
        'probe',
        'true',
        ' ',
        '\n',
        ';',
        '(',
        ')',
        '{',
        '}',
        '"',
        "'",
        '`',
        '$(',
        '$((',
        '))',
      ],
      ...[
        '${x:-',
        '<<E',
        '\nE\n',
        '[[',
        ']]',
        '#',
        '\\',
        '$',
        '$[',
        ']',
        '|',
        '!',
        '<(',
        'case x in',
        'esac',
        ';;',
        '=',
        'é',
      ],
      ...['if', 'then', 'fi', 'do', 'done', 'for', 'x', '>', '<', '\t', '\r', '\0', '\ud800', 'exec', 'trap', 'f()'],
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), fc.boolean(), (words, spaced) => {
        const text = words.join(spaced ? ' ' : '');
        const rewritten = rewrite(text);
        let at = 0;
        for (let i = 0; i < rewritten.length; i += 1) {
          if (
            rewritten[i] === text[at] &&
            !(rewritten.startsWith('exec probe', i) && !text.startsWith('exec probe', at))
          )
            at += 1;
          else if (rewritten.startsWith('exec probe', i)) i += 'exec '.length - 1;
          else return false;
        }
        return at === text.length;
      }),
      { numRuns: 5000, seed: 5 },
    );
  });

  test('a text too deep for the parser is left alone', () => {
    for (const text of [
      `${'$('.repeat(50_000)}a && probe &`,
      `${'('.repeat(50_000)}a && probe &${')'.repeat(50_000)}`,
    ]) {
      assert.equal(rewrite(text), text);
    }
  });

  test('a text of 32 KiB is rewritten, a longer one left alone', () => {
    const line = 'true && probe "a && b" >log 2>&1 &\n';
    const text = line.repeat(Math.floor(32_768 / line.length)).padEnd(32_768, '#');
    assert.equal(rewrite(text), text.replaceAll('&& probe', '&& exec probe'));
    assert.equal(rewrite(`${text}#`), `${text}#`);
    assert.equal(rewrite(`true && probe ${'ü'.repeat(16_384)}&`).length, 'true && probe &'.length + 16_384);
  });

  test('an environment that defines functions or options beforehand keeps every text verbatim', () => {
    assert.ok(isPlainEnvironment({ PATH: '/bin', BASHED: '1', FOO: '' }));
    for (const name of ['BASH_ENV', 'BASH_FUNC_ls%%', 'SHELLOPTS', 'BASHOPTS', 'POSIXLY_CORRECT', 'BASH_COMPAT']) {
      assert.ok(!isPlainEnvironment({ PATH: '/bin', [name]: 'x' }), name);
    }
  });
});
