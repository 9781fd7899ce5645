import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { brokenLink, links, pages } from '../../support/pages.ts';

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
