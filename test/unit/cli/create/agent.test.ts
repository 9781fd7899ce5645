import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { agentFrom } from '../../../../cli/create/agent.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-cli-agent-'));
afterAll(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, 'bin'));
mkdirSync(join(root, 'work', 'sub'), { recursive: true });
writeFileSync(join(root, 'bin', 'tool'), '');
chmodSync(join(root, 'bin', 'tool'), 0o755);
symlinkSync('tool', join(root, 'bin', 'link'));
symlinkSync('loop', join(root, 'bin', 'loop'));
writeFileSync(join(root, 'bin', 'plain.py'), '');
writeFileSync(join(root, 'work', 'agent.sh'), '');
chmodSync(join(root, 'work', 'agent.sh'), 0o755);

const here = { cwd: join(root, 'work'), env: { PATH: `/nowhere:${join(root, 'bin')}`, TOKEN: 't=1' } };
const local = { ...here, embedded: true };
const remote = { ...here, embedded: false };
const refuses = (act: () => unknown, message: RegExp) =>
  assert.throws(act, (error: { exitCode: number; message: string }) => {
    assert.equal(error.exitCode, 2);
    assert.match(error.message, message);
    return true;
  });

describe('the agent of a session on the embedded cluster', () => {
  test('is found in PATH, its links kept, and runs in the caller’s directory', () => {
    assert.deepEqual(agentFrom(['link', '-x', ''], {}, local), {
      command: [join(root, 'bin', 'link')],
      args: ['-x', ''],
      workingDir: here.cwd,
    });
  });
  test('with a slash is found from the caller’s directory, also when it is to run in another', () => {
    assert.deepEqual(agentFrom(['./agent.sh'], { workdir: 'sub' }, local), {
      command: [join(root, 'work', 'agent.sh')],
      args: [],
      workingDir: join(root, 'work', 'sub'),
    });
  });
  test('without a path is left as it is where the session has an environment, whose programs come first', () => {
    const { command } = agentFrom(['link'], { hasEnvironment: true }, local) ?? {};
    assert.deepEqual(command, ['link']);
    const { command: own } = agentFrom(['./agent.sh'], { hasEnvironment: true }, local) ?? {};
    assert.deepEqual(own, [join(root, 'work', 'agent.sh')]);
  });
  test('is left to the class where no program is named', () => {
    assert.equal(agentFrom([], {}, local), undefined);
  });

  test('is refused when it is in no folder of PATH', () => {
    refuses(() => agentFrom(['nothing'], {}, local), /"nothing" is in no folder of PATH/);
  });
  test('is refused with ./ where it is in the directory but not in PATH', () => {
    refuses(() => agentFrom(['agent.sh'], {}, local), /write \.\/agent\.sh/);
  });
  test('is refused when it does not exist, is a directory, lies below a file or is a link to itself', () => {
    refuses(() => agentFrom(['./none'], {}, local), /does not exist/);
    refuses(() => agentFrom(['./sub'], {}, local), /is a directory/);
    refuses(() => agentFrom(['./agent.sh/x'], {}, local), /does not exist/);
    refuses(() => agentFrom(['../bin/loop'], {}, local), /does not exist/);
  });
  test('is refused when it is not executable, with what makes it so and its interpreter', () => {
    refuses(
      () => agentFrom(['../bin/plain.py'], {}, local),
      /chmod \+x \.\.\/bin\/plain\.py.*-- python3 \.\.\/bin\/plain\.py/,
    );
    refuses(() => agentFrom(['plain.py'], {}, local), /is not executable/);
  });
  test('is refused with a working directory that is a file or does not exist', () => {
    refuses(() => agentFrom(['tool'], { workdir: 'agent.sh' }, local), /--workdir: .*agent\.sh is not a directory/);
    refuses(() => agentFrom(['tool'], { workdir: 'none' }, local), /--workdir: .*none does not exist/);
  });
});

describe('the agent of a session on a cluster', () => {
  test('is what was written, because it is found in the image', () => {
    assert.deepEqual(agentFrom(['python3', 'agent.py'], { workdir: '/srv' }, remote), {
      command: ['python3'],
      args: ['agent.py'],
      workingDir: '/srv',
    });
  });
  test('is refused with a relative working directory', () => {
    refuses(() => agentFrom(['python3'], { workdir: 'src' }, remote), /not absolute/);
  });
});

describe('flags of an agent', () => {
  test('name the kinds of input and result', () => {
    assert.deepEqual(agentFrom([], { inputAs: 'args', result: 'text' }, remote), { input: 'Args', result: 'Text' });
  });
  test('--env gives a value, or the caller’s own; the last of a name counts', () => {
    assert.deepEqual(agentFrom([], { env: ['A=1=2', 'TOKEN', 'B=', 'A=line\nfeed'] }, remote), {
      env: [
        { name: 'A', value: 'line\nfeed' },
        { name: 'TOKEN', value: 't=1' },
        { name: 'B', value: '' },
      ],
    });
  });
  test('--env refuses what is not set, is no name, or belongs to Berth', () => {
    refuses(() => agentFrom([], { env: ['NONE'] }, remote), /NONE: it is not set/);
    refuses(() => agentFrom([], { env: ['1A=x'] }, remote), /"1A" is no variable name/);
    refuses(() => agentFrom([], { env: ['=x'] }, remote), /"" is no variable name/);
    refuses(() => agentFrom([], { env: ['BERTH_STATE_DIR=/x'] }, remote), /names that begin with BERTH_/);
  });
});
