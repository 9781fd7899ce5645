import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { ActedCluster } from './acted.ts';

const BIN = join(import.meta.dirname, '..', '..', '..', 'bin');
const needs = (shell: 'zsh' | 'fish') => {
  const has = spawnSync(shell, ['-c', 'exit 0']).status === 0;
  return skipIf(skipWithout(shell, has, `${shell} is not installed`));
};

describe('berth completion', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    for (const name of ['notes', 'other']) await cluster.session(name);
    await cluster.turn('notes-1', 'notes');
    await cluster.turn('other-1', 'other');
    await cluster.say('notes', { phase: 'Ready' });
  });
  afterAll(() => cluster.close());

  /** Runs a script in a shell that has loaded the completion; resolves with the lines that it prints. */
  async function lines(shell: string, args: string[], script: string): Promise<string[]> {
    const { stdout: completion } = await cluster.berth('completion', shell);
    const env = { ...process.env, ...cluster.env, PATH: `${BIN}${delimiter}${process.env.PATH}` };
    // The cluster is served by this process, which must not stand still meanwhile.
    return new Promise((resolve, reject) =>
      execFile(
        shell,
        [...args, '-c', `${shell === 'zsh' ? 'compdef() { : }\n' : ''}${completion}\n${script}`],
        { env },
        (error, stdout, stderr) => {
          if (error || stderr) reject(error ?? new Error(stderr));
          else resolve(stdout.split('\n').filter(Boolean));
        },
      ),
    );
  }

  describe('in bash', () => {
    /** Candidates for the last word; the words are cut as bash cuts them. */
    const at = (...words: string[]) =>
      lines(
        'bash',
        ['--norc', '--noprofile'],
        `COMP_WORDS=(berth ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _berth; printf '%s\\n' "\${COMPREPLY[@]}"`,
      );
    test('completes commands, flags and values', async () => {
      assert.deepEqual(await at('ver'), ['version']);
      assert.deepEqual(await at('run', '--text'), ['--text', '--text-file']);
      assert.deepEqual(await at('run', '--result', 'j'), ['json']);
      assert.deepEqual(await at('run', '--result', '=', 'j'), ['json']);
    });
    test('completes names of sessions, classes and turns', async () => {
      assert.deepEqual(await at('turn', ''), ['notes', 'other']);
      assert.deepEqual(await at('turn', 'no'), ['notes']);
      assert.deepEqual(await at('run', '--class', 'de'), ['default']);
      assert.deepEqual(await at('logs', 'notes', '--turn', ''), ['notes-1']);
      assert.deepEqual(await at('wait', 'notes', '--for', '=', 'turn', '=', ''), ['notes-1']);
    });
    test('completes nothing, and says nothing, where the cluster cannot be reached', async () => {
      assert.deepEqual(await at('--kubeconfig', '/nowhere', 'turn', ''), []);
    });
    test('is registered for berth', async () => {
      assert.deepEqual(await lines('bash', ['--norc', '--noprofile'], 'complete -p berth'), [
        'complete -F _berth berth',
      ]);
    });
  });

  test('completes commands and names with their phase in zsh', needs('zsh'), async () => {
    const at = (...words: string[]) =>
      lines(
        'zsh',
        ['-f'],
        `words=(berth ${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length + 1}
_describe() { print -l -- "\${(@P)4}" }
_berth`,
      );
    assert.deepEqual(await at('ver'), [
      'version:Prints the version of this program, and of Berth and Kubernetes in the cluster.',
    ]);
    assert.deepEqual(await at('turn', 'no'), ['notes:Ready']);
  });

  test('completes commands and names with their phase in fish', needs('fish'), async () => {
    const at = (line: string) => lines('fish', ['--no-config'], `complete -C '${line}'`);
    assert.match((await at('berth ver'))[0] ?? '', /^version\t/);
    assert.deepEqual(await at('berth turn no'), ['notes\tReady']);
  });

  test('refuses another shell, and another name than berth', async () => {
    const { code, stderr } = await cluster.berth('completion', 'tcsh');
    assert.equal(code, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish/);
    const env = { ...cluster.env, BERTH_INVOKED_AS: 'kubectl session' };
    assert.match((await cluster.caller.berth(['completion', 'bash'], { env })).stderr, /for the command berth/);
  });
});
