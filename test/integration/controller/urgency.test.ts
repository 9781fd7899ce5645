import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { installed } from '../../support/installed.ts';

const SUSPENDED = 30;

describe('a new leader', () => {
  // A controller with one worker reconciles one session after the other.
  const cluster = installed({ BERTH_WORKERS: '1', BERTH_LOG_LEVEL: 'debug' });

  test('reconciles the sessions that have pods before the others', async () => {
    const first = cluster.startController();
    // Lists are in the order of names, in which session z is the last.
    await cluster.create('z', { agent: { command: ['cat'], input: 'Text', result: 'Text' } });
    await cluster.turn('z', 'z-1', 'hello');
    await cluster.ended('z-1');
    const names = Array.from({ length: SUSPENDED }, (_, i) => `suspended-${i}`);
    for (const name of names) await cluster.create(name, { suspend: true });
    for (const name of names) await cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');
    await cluster.until('z', 'counts its turn', ({ status }) => status?.turns?.total === 1);
    await first.kill('SIGKILL');
    const second = cluster.startController();
    const reconciled = await eventually(
      () => {
        const found = [...second.log().matchAll(/"session":"default\/([^"]+)".*"msg":"session reconciled"/g)];
        const sessions = found.map(([, name]) => name);
        return new Set(sessions).size > SUSPENDED ? sessions : undefined;
      },
      { what: 'all sessions are reconciled' },
    );
    assert.equal(reconciled[0], 'z');
  });
});
