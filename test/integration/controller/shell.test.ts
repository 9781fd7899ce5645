import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const until = (condition: string) => `until ${condition}; do sleep 0.02; done`;
/** Script that leaves a process running and ends once that process is `sleep`, however late it starts. */
const LEAVE = `true && sleep 1000 & ${until('[ $(cat /proc/$!/comm) = sleep ]')}; echo $!; exit 3`;

describe('the driver Shell on the embedded cluster', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  test('a turn is a command, its output the result; what it leaves running serves the next turn', async () => {
    await cluster.create('terminal', { agent: { driver: 'Shell' } });
    await cluster.turn('terminal', 'terminal-1', { command: LEAVE });
    const { status } = await cluster.ended('terminal-1');
    const { stdout = '', background, ...rest } = (status?.output ?? {}) as { stdout?: string; background?: unknown };
    assert.deepEqual([status?.phase, status?.exitCode], ['Succeeded', 3]);
    assert.deepEqual(rest, { stderr: '', exitCode: 3, signal: null, shell: 'bash' });
    assert.deepEqual(background, [{ pid: Number(stdout), command: 'sleep 1000' }]);
    const stop = `kill ${stdout.trim()}; ${until(`[ ! -e /proc/${stdout.trim()} ]`)}; echo stopped`;
    await cluster.turn('terminal', 'terminal-2', { command: stop, cwd: '/' });
    const next = await cluster.ended('terminal-2');
    assert.deepEqual(next.status?.output, { ...rest, stdout: 'stopped\n', exitCode: 0, background: [] });
    await cluster.turn('terminal', 'terminal-3', { command: 'ls', cwd: '/no/such' });
    const wrong = await cluster.ended('terminal-3');
    assert.deepEqual([wrong.status?.phase, wrong.status?.error?.code], ['Failed', 'InvalidInput']);
    assert.equal(wrong.status?.error?.message, 'input.cwd /no/such does not exist');
    await cluster.turn('terminal', 'terminal-4', null);
    const { phase, error, startedAt } = (await cluster.ended('terminal-4')).status ?? {};
    assert.deepEqual([phase, error?.code, startedAt], ['Failed', 'InputMissing', undefined]);
    assert.match(error?.message ?? '', /^spec\.input: there is none, and the driver Shell needs an object/);
  });
});
