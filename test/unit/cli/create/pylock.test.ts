import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { PYLOCK } from '../../../../cli/create/environments.ts';
import { requirementsOfLock } from '../../../../cli/create/pylock.ts';
import { parseRequirements } from '../../../../core/environments/requirements.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const HEAD = 'lock-version = "1.0"\ncreated-by = "uv"\n';
const WHEEL = (hash: string) => `{ url = "https://x.example/six.whl", hashes = { sha256 = "${hash}", md5 = "1" } }`;

describe('a pylock.toml', () => {
  test('gives its packages with versions, markers and the digests of their files', () => {
    const text = `${HEAD}
[[packages]]
name = "six"
version = "1.17.0"
marker = "python_version < '3.13'"
wheels = [${WHEEL(A)}]
sdist = ${WHEEL(B)}

[[packages]]
name = "Ruamel.YAML"
version = "0.18"
`;
    assert.deepEqual(parseRequirements(requirementsOfLock(text)), [
      `six==1.17.0 ; python_version < '3.13' --hash=sha256:${A} --hash=sha256:${B}`,
      'Ruamel.YAML==0.18',
    ]);
    assert.deepEqual(parseRequirements(requirementsOfLock(`${HEAD}packages = []\n`)), []);
  });

  test.for([
    ['name = "x"\nversion = "1"\nvcs = { type = "git" }', /package "x" is a vcs/],
    ['name = "x"\ndirectory = { path = "." }', /package "x" is a directory/],
    ['name = "x"', /package "x" has no version/],
    [
      'name = "x"\nversion = "1"\nwheels = [{ hashes = { md5 = "1" } }]\nsdist = { hashes = { md5 = "2" } }',
      /package "x" has digests of md5 only, which are not checked; lock it with sha256, sha384, sha512/,
    ],
    [`name = "x"\nversion = "1"\nmarker = "'dev' in dependency_groups"`, /package "x" is for an extra or a group/],
    ['version = "1"', /packages\.0\.name: .*PEP 751/],
    ['name = ', /line 5: /],
  ] as const)('with %j is refused with the package or the line', ([table, message]) => {
    const text = `${HEAD}\n[[packages]]\n${table}\n`;
    assert.throws(() => requirementsOfLock(text), { code: 'RequirementInvalid', message });
  });

  test('is known by its name', () => {
    const names = ['pylock.toml', 'pylock.dev.toml', 'pylock.a.b.toml', 'pyproject.toml', 'pylock.txt'];
    assert.deepEqual(
      names.map((name) => PYLOCK.test(name)),
      [true, true, false, false, false],
    );
  });
});
