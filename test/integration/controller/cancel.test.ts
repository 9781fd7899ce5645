import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

describe('a turn that is cancelled', () => {
  const cluster = installed();
  let scratch: string;
  let controller: ControllerProcess;
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'berth-cancel-'));
    controller = cluster.startController();
  });
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true });
  });

  const agent = () =>
    pythonAgent(`
with open('${scratch}/' + request['session']['name'], 'a') as f:
    f.write(request['turn']['name'] + chr(10))
time.sleep(float(request['input']))
answer('done')
`);
  const executions = (session: string): string[] => {
    const path = join(scratch, session);
    // The file is there a moment before its first line.
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  };

  test('while no controller was there is cancelled by the next one, running or queued', async () => {
    await cluster.create('absent', { agent: agent() });
    await cluster.turn('absent', 'absent-1', 120);
    await eventually(() => executions('absent').length === 1);
    await cluster.turn('absent', 'absent-2', 0);
    await controller.kill('SIGKILL');
    await cluster.cancel('absent-1');
    await cluster.cancel('absent-2');
    await cluster.turn('absent', 'absent-3', 0);
    controller = cluster.startController();
    for (const name of ['absent-1', 'absent-2']) assert.equal((await cluster.ended(name)).status?.phase, 'Cancelled');
    assert.equal((await cluster.ended('absent-3')).status?.output, 'done');
    assert.deepEqual(executions('absent'), ['absent-1', 'absent-3']);
  });

  test('by a controller that was killed before it heard of the end is cancelled once', async () => {
    await cluster.create('halfway', { agent: agent() });
    await cluster.turn('halfway', 'halfway-1', 120);
    await eventually(() => executions('halfway').length === 1);
    await cluster.cancel('halfway-1');
    await controller.kill('SIGKILL');
    controller = cluster.startController();
    assert.equal((await cluster.ended('halfway-1')).status?.phase, 'Cancelled');
    const { status } = await cluster.until('halfway', 'counted', (session) => session.status?.turns?.total === 1);
    assert.deepEqual(status?.turns, { total: 1, succeeded: 0, failed: 0 });
    await cluster.turn('halfway', 'halfway-2', 0);
    assert.equal((await cluster.ended('halfway-2')).status?.output, 'done');
  });

  test('just when its result comes ends once, as one or the other, and the next turn runs', async () => {
    const released = (turn: string) => join(scratch, `${turn}-may-end`);
    const waiting = pythonAgent(`
name = request['turn']['name']
with open('${scratch}/race', 'a') as f:
    f.write(name + chr(10))
while not os.path.exists(f'${scratch}/{name}-may-end'):
    time.sleep(0.002)
answer('done')
`);
    await cluster.create('race', { agent: waiting });
    await cluster.until('race', 'ready', ({ status }) => status?.phase === 'Ready');
    const ends: string[] = [];
    for (let index = 1; index <= 12; index++) {
      const name = `race-${index}`;
      await cluster.turn('race', name, null);
      await eventually(() => executions('race').includes(name));
      writeFileSync(released(name), '');
      // Each time a little later, by so many answers of the API server.
      for (let reads = 1; reads < index; reads++) await cluster.session('race');
      await cluster.cancel(name);
      const { status } = await cluster.ended(name);
      ends.push(status?.phase ?? '');
      if (status?.phase === 'Succeeded') assert.equal(status.output, 'done');
      else assert.equal(status?.error?.code, 'Cancelled', JSON.stringify(status));
    }
    writeFileSync(released('race-last'), '');
    await cluster.turn('race', 'race-last', null);
    assert.equal((await cluster.ended('race-last')).status?.output, 'done');
    const all = [...Array.from({ length: 12 }, (_, index) => `race-${index + 1}`), 'race-last'];
    assert.deepEqual(executions('race'), all);
    const { status } = await cluster.until('race', 'counted', (session) => session.status?.turns?.total === 13);
    assert.equal(status?.turns?.succeeded, 1 + ends.filter((phase) => phase === 'Succeeded').length);
  });
});
