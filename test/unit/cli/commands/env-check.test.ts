import assert from 'node:assert/strict';
import { test } from 'vitest';
import { compared } from '../../../../cli/commands/env-check.ts';

const A = `sha256:${'a'.repeat(64)}`;
const B = `sha256:${'b'.repeat(64)}`;

test('a package that was installed by a digest that its requirement does not name is a difference', () => {
  const found = { python: '3.12.1', isolated: true, packages: [['six', '1.16.0'] as [string, string]] };
  const check = (requirements: string[], hashes?: string[]) =>
    compared(
      {
        spec: { class: 'c', requirements },
        status: { packages: [{ name: 'six', version: '1.16.0', ...(hashes && { hashes }) }] },
      },
      found,
    );
  const [difference, ...others] = check([`SIX==1.16.0 --hash=${A}`], [A, B]);
  assert.match(difference ?? '', /^six was installed by the digest sha256:b+, which its requirement does not name/);
  assert.deepEqual(others, []);
  assert.deepEqual(check([`SIX==1.16.0 --hash=${A} --hash=${B}`], [A]), []);
  assert.deepEqual(check(['six==1.16.0'], [A, B]), []);
  assert.deepEqual(check([`six==1.16.0 --hash=${A}`]), [], 'the status could not hold the digests');
});
