import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';

const MODULE = new URL('../../support/requires.ts', import.meta.url).href;

/** Output of `skipWithout` in a process of its own, or what it throws. */
function skipWithout(REQUIRE: string, has: boolean): string {
  const script = `import(${JSON.stringify(MODULE)}).then(({ skipWithout }) => console.log(skipWithout('root', ${has}, 'no root')))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { env: { REQUIRE }, encoding: 'utf8' });
  return stdout.trim() || (/^Error: .*/m.exec(stderr)?.[0] ?? stderr);
}

test('a test that needs something runs where it is there, is skipped with the reason where not, and fails where REQUIRE names it', () => {
  assert.equal(skipWithout('', true), 'false');
  assert.equal(skipWithout('keeper,root', true), 'false');
  assert.equal(skipWithout('keeper', false), 'no root');
  assert.equal(skipWithout('keeper,root', false), 'Error: REQUIRE names "root", but: no root');
});

test('a need in REQUIRE that no test has is refused, and the needs are listed', () => {
  assert.match(
    skipWithout('keeper,rooot', true),
    /^Error: REQUIRE names "rooot", which no test needs: use keeper, .*root/,
  );
});
