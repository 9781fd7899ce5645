import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Installation } from '../../support/installation.ts';

describe('the driver Shell on the embedded cluster', () => {
  let cluster: Installation;
  before(async () => {
    cluster = await Installation.start();
    cluster.startController();
  });
  after(() => cluster.stop());

  test('a turn is a command, its output the result; what it leaves running serves the next turn', async () => {
    await cluster.create('terminal', { agent: { driver: 'Shell' } });
    await cluster.turn('terminal', 'terminal-1', { command: 'true && sleep 1000 & echo $!; exit 3' });
    const { status } = await cluster.ended('terminal-1');
    const { stdout = '', background, ...rest } = (status?.output ?? {}) as { stdout?: string; background?: unknown };
    assert.deepEqual([status?.phase, status?.exitCode], ['Succeeded', 3]);
    assert.deepEqual(rest, { stderr: '', exitCode: 3, signal: null, shell: 'bash' });
    assert.deepEqual(background, [{ pid: Number(stdout), command: 'sleep 1000' }]);
    await cluster.turn('terminal', 'terminal-2', { command: `kill ${stdout.trim()} && echo stopped`, cwd: '/' });
    const next = await cluster.ended('terminal-2');
    assert.deepEqual(next.status?.output, { ...rest, stdout: 'stopped\n', exitCode: 0, background: [] });
    await cluster.turn('terminal', 'terminal-3', { command: 'ls', cwd: '/no/such' });
    const wrong = await cluster.ended('terminal-3');
    assert.deepEqual([wrong.status?.phase, wrong.status?.error?.code], ['Failed', 'InvalidInput']);
    assert.equal(wrong.status?.error?.message, 'input.cwd /no/such does not exist');
  });
});
