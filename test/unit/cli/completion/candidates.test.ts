import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import { candidates } from '../../../../cli/completion/candidates.ts';
import { define } from '../../../../cli/program.ts';

const program = define({ name: 'berth' } as Cli, () => {});
const at = (line: string) => candidates(program, line.split(' '));
const words = (line: string) => at(line).words.map(([word]) => word);

describe('the candidates for the last word', () => {
  test('are the commands, without hidden ones, and the commands of a command', () => {
    assert.ok(words('').includes('run') && words('-n team ').includes('wait'));
    assert.ok(!words('').includes('__complete'));
    assert.deepEqual(words('env '), ['create', 'get', 'check', 'list', 'delete']);
    assert.deepEqual(words('completion '), ['bash', 'zsh', 'fish']);
  });
  test('are the flags of the command and of all commands', () => {
    const flags = words('run --');
    for (const flag of ['--text', '--class', '--namespace', '--help']) assert.ok(flags.includes(flag), flag);
    assert.ok(!words('list --').includes('--text'));
  });
  test('are the values of a flag, behind a space or =', () => {
    assert.deepEqual(words('run --result '), ['envelope', 'json', 'text']);
    assert.deepEqual(words('run --result='), ['--result=envelope', '--result=json', '--result=text']);
    assert.deepEqual(words('wait notes --for='), ['--for=ready', '--for=suspended', '--for=finished']);
  });
  test('are the names of objects', () => {
    const names = (line: string) => at(line).names;
    assert.deepEqual(names('turn '), { of: ['sessions'] });
    assert.deepEqual(names('logs '), { of: ['sessions', 'turns'] });
    assert.deepEqual(names('delete one '), { of: ['sessions'] });
    assert.deepEqual(names('delete one turn/'), { of: ['turns'], prefix: 'turn/' });
    assert.deepEqual(names('delete environment/to'), { of: ['environments'], prefix: 'environment/' });
    assert.deepEqual(words('delete '), ['turn/', 'environment/']);
    assert.deepEqual(names('update '), { of: ['sessions'] });
    assert.deepEqual(names('run --class '), { of: ['sessionclasses'] });
    assert.deepEqual(names('restart --class '), { of: ['sessionclasses'] });
    assert.deepEqual(names('restart '), { of: ['sessions'] });
    assert.deepEqual(names('env get '), { of: ['environments'] });
    assert.deepEqual(names('get turn '), { of: ['turns'] });
    assert.deepEqual(names('cancel notes --turn '), { of: ['turns'], session: 'notes' });
    assert.deepEqual(names('wait notes --for='), { of: ['turns'], prefix: '--for=turn=', session: 'notes' });
    assert.deepEqual(names('exec notes --attach '), { of: ['commands'], session: 'notes' });
    assert.deepEqual(names('exec notes --kill='), { of: ['commands'], session: 'notes', prefix: '--kill=' });
    assert.equal(names('turn notes '), undefined);
    assert.deepEqual(names('files ls '), { of: ['sessions'] });
  });
  test('are the roots of a session for a place in it', () => {
    assert.deepEqual(words('files cat notes '), ['work', 'workspace', 'state', 'output', 'agent']);
    for (const line of ['cp ', 'cp notes:work/a ']) assert.equal(at(line).files, true);
  });
  test('are paths for a file, and for all that belongs to the session’s program', () => {
    for (const line of ['run --input-file ', 'run --with a ', 'create notes -- python3 ', 'update notes --with ']) {
      assert.equal(at(line).files, true, line);
    }
    assert.equal(at('run --name ').files, undefined);
  });
  test('come from the cluster that the words before name', () => {
    assert.deepEqual(at('-n team --context=kind turn ').cluster, { namespace: 'team', context: 'kind' });
  });
});
