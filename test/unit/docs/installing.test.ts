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

/** Commands that get a package by its name from a registry. */
const BY_NAME =
  /\b(?:(?:npm|pnpm|yarn|bun|deno) (?:install|i|add|exec|create|x)|npx|bunx|pip3? install|pipx (?:install|run)|uv (?:add|pip install|tool install|tool run)|uvx|poetry add)\b([^\n`#]*)/g;

test('no page gets a package called berth or berth-client by its name: on the registries these are strangers’', () => {
  const wrong = [...pages(), 'package/README.md'].flatMap((page) => {
    const text = readFileSync(join(CHECKOUT, page), 'utf8');
    return [...text.matchAll(BY_NAME)].flatMap(([command, rest = '']) => {
      const words = rest.split(/\s+/).filter((word) => word !== '');
      // What npx finds in the project itself it runs; with --no it gets nothing.
      const isLocal = command.startsWith('npx') && words.includes('--no');
      const isNamed = words.some((word) => /^['"]?berth(?:[-_]client)?(?:[@=[<>~].*)?['"]?$/.test(word));
      return isNamed && !isLocal ? [`${page}: ${command}`] : [];
    });
  });
  assert.deepEqual(wrong, []);
});
