import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { agentEnvironment } from '../../../../runner/drivers/environment.ts';
import { checkWorkingDirectory, findProgram } from '../../../../runner/process/program.ts';
import { directoriesUnder } from '../../../../runner/system/directories.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-program-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, 'bin'));
writeFileSync(join(root, 'bin', 'tool'), '', { mode: 0o755 });
writeFileSync(join(root, 'plain'), '', { mode: 0o644 });

describe('the program', () => {
  test('is found in PATH, by a path from the working directory, and by an absolute path', () => {
    const tool = join(root, 'bin', 'tool');
    assert.equal(findProgram('tool', `/nowhere:${root}/bin`, '/'), tool);
    assert.equal(findProgram('./bin/tool', '', root), tool);
    assert.equal(findProgram(tool, '', '/'), tool);
  });
  test('that does not exist is CommandNotFound with the folders that were searched', () => {
    assert.throws(() => findProgram('nope', '/bin:/x', '/'), {
      code: 'CommandNotFound',
      message: /"nope" .*\/bin:\/x/,
    });
    assert.throws(() => findProgram('./nope', '', root), { code: 'CommandNotFound', message: /nope does not exist/ });
  });
  test('is found behind folders of PATH that cannot be read', () => {
    symlinkSync('loop', join(root, 'loop'));
    assert.equal(
      findProgram('tool', `${root}/loop:${root}/${'x'.repeat(300)}:${root}/bin`, '/'),
      join(root, 'bin', 'tool'),
    );
    assert.throws(() => findProgram('x'.repeat(300), '/bin', '/'), { code: 'CommandNotFound' });
  });
  test('without permission to execute, or a directory, is CommandNotExecutable', () => {
    assert.throws(() => findProgram('./plain', '', root), { code: 'CommandNotExecutable', message: /chmod \+x/ });
    assert.throws(() => findProgram('plain', root, '/'), { code: 'CommandNotExecutable' });
    assert.throws(() => findProgram('./bin', '', root), { code: 'CommandNotExecutable', message: /is a directory/ });
  });
});

describe('the working directory', () => {
  test('has to exist and be a directory', () => {
    checkWorkingDirectory(root);
    const check = (path: string, message: RegExp) =>
      assert.throws(() => checkWorkingDirectory(path), { code: 'WorkingDirInvalid', message });
    check(join(root, 'nope'), /does not exist/);
    check(join(root, 'plain'), /is not a directory/);
    check(join(root, 'plain', 'x'), /below something that is not a directory/);
  });
});

describe('the environment', () => {
  const directories = directoriesUnder(undefined);
  const agent = {
    driver: 'Command' as const,
    command: ['x'],
    args: [],
    input: 'Stdin' as const,
    result: 'Text' as const,
  };
  const facts = {
    name: 'n',
    uid: 'u-1',
    incarnation: 1,
    secrets: new Map([['V', 's3cret']]),
    hidden: hiddenBy({}),
    takesArtifacts: false,
    hasFiles: false,
    hasEnvironment: false,
  };

  test('of a pod is exactly the list, and what the session sets', () => {
    const env = [
      { name: 'A', value: '$(BERTH_STATE_DIR)/$(SESSION_UID)' },
      { name: 'S', secret: 'V' },
      { name: 'LANG', value: 'de_DE.UTF-8' },
    ];
    assert.deepEqual(agentEnvironment({ ...facts, agent: { ...agent, env } }, directories, '/bin', { BERTH_X: '1' }), {
      PATH: '/bin',
      HOME: '/tmp',
      TMPDIR: '/tmp',
      USER: 'agent',
      LOGNAME: 'agent',
      SHELL: '/bin/sh',
      LANG: 'de_DE.UTF-8',
      LC_ALL: 'C.UTF-8',
      PYTHONUNBUFFERED: '1',
      PYTHONDONTWRITEBYTECODE: '1',
      PYTHONHASHSEED: '0',
      PYTHONIOENCODING: 'utf-8',
      PYTHONPATH: '',
      A: '/berth/state/u-1',
      S: 's3cret',
      BERTH_SOCKET: '/berth/run/berth.sock',
      BERTH_X: '1',
    });
  });
  test('a secret that the pod was not given fails the turn by name', () => {
    const env = [{ name: 'S', secret: 'MISSING' }];
    assert.throws(() => agentEnvironment({ ...facts, agent: { ...agent, env } }, directories, '/bin', {}), {
      code: 'PodConfigError',
      message: /agent\.env S: .*MISSING/,
    });
  });
});
