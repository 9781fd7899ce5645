import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { CHECKOUT, pages } from '../../support/pages.ts';

test('no page has npm take the path of a file for a repository: npm reads a/b as one of a git host', () => {
  const wrong = [...pages(), 'package/README.md'].flatMap((page) => {
    const text = readFileSync(join(CHECKOUT, page), 'utf8');
    return [...text.matchAll(/\bnpm (?:install|i|exec)\b([^\n`#]*)/g)].flatMap(([command, rest = '']) => {
      const packages = rest.split(/\s+/).filter((word) => word !== '' && !word.startsWith('-'));
      return packages.some((name) => /^[^@./~$][^/]*\//.test(name)) ? [`${page}: ${command}`] : [];
    });
  });
  assert.deepEqual(wrong, []);
});
