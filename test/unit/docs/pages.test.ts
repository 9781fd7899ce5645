import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { brokenLink, CHECKOUT, links, pages, pattern } from '../../support/pages.ts';

describe('the documentation', () => {
  test('every link leads to a file, and to a heading in it', () => {
    const broken = pages().flatMap((page) => links(page).flatMap((target) => brokenLink(page, target) ?? []));
    assert.deepEqual(broken, []);
  });

  test('a link to a file or a heading that is not there is told', () => {
    assert.match(brokenLink('README.md', 'docs/nothing.md') ?? '', /there is no docs\/nothing\.md/);
    assert.match(brokenLink('docs/cli.md', '#nothing') ?? '', /has no such heading/);
    assert.equal(brokenLink('docs/cli.md', 'install.md#rights'), undefined);
  });
});

test('the page about the installation names every CRD where it removes everything', () => {
  const page = readFileSync(join(CHECKOUT, 'docs', 'install.md'), 'utf8');
  const named = /kubectl delete crd \{([\w,]+)\}\.berth\.dev/.exec(page)?.[1]?.split(',') ?? [];
  const files = readdirSync(join(CHECKOUT, 'charts', 'berth-crds', 'templates'));
  assert.deepEqual(named.toSorted(), files.map((file) => file.replace(/\.yaml$/, '')).toSorted());
});

describe('what a page shows of a command’s output', () => {
  test('holds for other names, ages and widths, and for nothing else', () => {
    const shown = 'NAME    AGE\nnotes   2m10s\nsession run-k2c7lzxt\n…\n{"a":[…]}\n';
    assert.match('NAME     AGE\nnotes    3s\nsession run-aaaaaaaa\n{"a":[1]}\n', pattern(shown));
    assert.match('NAME     AGE\nnotes    3.4s\nsession run-aaaaaaaa\none\ntwo\n{"a":[1]}\n', pattern(shown));
    assert.doesNotMatch('NAME     AGE\nnotes    3s\nsession run-aaaaaaaa\n{"b":[1]}\n', pattern(shown));
    assert.doesNotMatch('NAME     AGE\nother    3s\nsession run-aaaaaaaa\n{"a":[1]}\n', pattern(shown));
    assert.doesNotMatch('NAME     AGE\nnotes    3s\nsession run-aaaaaaaa\n{"a":[1]}\nmore\n', pattern(shown));
  });
});
