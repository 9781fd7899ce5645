import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { CHECKOUT, pages } from '../../support/pages.ts';

const MAX_WORDS = 34;

interface Sentence {
  /** Line of the page on which its paragraph, item or cell begins, from 1. */
  line: number;
  text: string;
}

test(`no sentence of the documentation has more than ${MAX_WORDS} words`, () => {
  const written = pages().filter((page) => page === 'README.md' || /^docs\/(?!reference\/)/.test(page));
  assert.ok(written.length > 30);
  const long = written.flatMap((page) =>
    sentencesOf(readFileSync(join(CHECKOUT, page), 'utf8'))
      .filter(({ text }) => words(text) > MAX_WORDS)
      .map(({ line, text }) => `${page}:${line}: ${words(text)} words: ${text}`),
  );
  assert.deepEqual(long, []);
});

test('a sentence ends with its paragraph, its item or its cell, and code counts as one word', () => {
  const page =
    '# No\n\nOne `a b` two.\nThree\n\n- four [five six](x.md)\n- seven\n\n```\nno\n```\n| eight | nine; ten |\n';
  assert.deepEqual(
    sentencesOf(page).map(({ line, text }) => [line, text]),
    [
      [3, 'One code two.'],
      [3, 'Three'],
      [6, 'four five six'],
      [7, 'seven'],
      [12, 'eight'],
      [12, 'nine'],
      [12, 'ten'],
    ],
  );
});

const words = (text: string) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** Sentences of a page's prose: of paragraphs, items, and cells, in which a semicolon ends one, too. */
function sentencesOf(page: string): Sentence[] {
  const found: Sentence[] = [];
  let block: string[] = [];
  let start = 0;
  let isCode = false;
  const end = () => {
    const text = plain(block.join(' '));
    block = [];
    for (const sentence of text.split(/(?<=[.!?])\s+/)) if (sentence) found.push({ line: start, text: sentence });
  };
  for (const [index, line] of page.split('\n').entries()) {
    const isFence = /^\s*```/.test(line);
    if (isFence) isCode = !isCode;
    const isItem = /^\s*([-*]|\d+\.)\s/.test(line);
    const isRow = /^\s*\|/.test(line);
    if (isFence || isItem || isRow || line.trim() === '' || line.startsWith('#')) end();
    if (isFence || isCode || line.startsWith('#') || line.trim() === '') continue;
    if (block.length === 0) start = index + 1;
    if (!isRow) {
      block.push(line.trim().replace(/^([-*]|\d+\.)\s+/, ''));
      continue;
    }
    for (const cell of line.split(/(?<!\\)\||;/)) {
      block.push(cell.trim());
      end();
    }
  }
  end();
  return found;
}

/** The text without marks of Markdown; a piece of code is one word. */
const plain = (text: string) =>
  text
    .replace(/`[^`]*`/g, 'code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '');
