import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  MAX_REQUIREMENTS,
  packageName,
  parseRequirements,
  requirementProblem,
} from '../../../core/environments/requirements.ts';

const SHA = 'a'.repeat(64);

describe('requirements', () => {
  test('are taken from a file with comments, empty lines, continued lines and hashes', () => {
    const text = `# agents\nhttpx==0.28.1   # the client\r\n\nPyYAML[fast, safe] >= 6 , <7 ; python_version < "3.13"\nuv \\\n    --hash=sha256:${SHA} \\\n    --hash=sha256:${SHA}\n    # via -r x\n`;
    assert.deepEqual(parseRequirements(text), [
      'httpx==0.28.1',
      'PyYAML[fast, safe] >= 6 , <7 ; python_version < "3.13"',
      `uv --hash=sha256:${SHA} --hash=sha256:${SHA}`,
    ]);
    assert.deepEqual(parseRequirements('\n# nothing\n'), []);
  });

  test.for([
    ['-e .', /line 2: the option -e is not taken/],
    ['--find-links /tmp/wheels', /line 2: the option --find-links is not taken/],
    ['--index-url https://u:p@example.com/simple', /line 2: the option --index-url is not taken; .*SessionClass/],
    ['-r /etc/hostname', /line 2: the option -r is not taken/],
    ['./local', /line 2: "\.\/local" is a URL or a path/],
    ['/etc/hostname', /is a URL or a path/],
    ['file:///etc/passwd', /is a URL or a path/],
    ['pkg @ file:///tmp/x.whl', /is a URL or a path/],
    ['git+https://example.com/x.git', /is a URL or a path/],
    ['pkg@https://example.com/x.whl', /is a URL or a path/],
    ['pkg==$' + '{HOME}', /variables are not expanded/],
    ['pkg; os_name == "$(id)"', /variables are not expanded/],
    ['pkg==1 --hash=md5:abc', /is not of the form/],
    ['pkg; --index-url=x', /is not of the form/],
    ['pkg; os_name == "posix" --index-url x', /is not of the form/],
    ['two words', /is not of the form/],
    ['shout-1.2-py3-none-any.whl', /is a URL or a path/],
    ['shout-1.2.tar.gz ; os_name == "posix"', /is a URL or a path/],
    ['pkg\0', /is not of the form/],
    ['x'.repeat(20_000), /longer than 16384 characters/],
  ] as const)('refuse %s with its line', ([line, message]) => {
    assert.throws(() => parseRequirements(`httpx\n${line}\nuv`), { code: 'RequirementInvalid', message });
  });

  test('are not more than the limit', () => {
    const many = Array.from({ length: MAX_REQUIREMENTS + 1 }, (_, i) => `p${i}`).join('\n');
    assert.throws(() => parseRequirements(many), /line 257: there are more than 256/);
  });

  test('of one text cannot be two: a line break is refused', () => {
    assert.notEqual(requirementProblem('httpx\n-r /etc/hostname'), undefined);
  });

  test('name a package as indexes do', () => {
    assert.equal(packageName('Ruamel_YAML.clib[x]>=1'), 'ruamel-yaml-clib');
  });
});
