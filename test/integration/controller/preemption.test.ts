import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { countPods } from '../../support/pod-count.ts';

/** Counts its turns in its state, and works until the file is there whose path it is given. */
const COUNTER = pythonAgent(`
while not os.path.exists(request['input']): time.sleep(0.05)
path = os.path.join(state, 'count')
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
answer(count)
`);

describe('at capacity', () => {
  const cluster = installed({ BERTH_MAX_RUNNING: '2', ...ONE_LEADER }, { controller: true });

  test('the idle session is preempted for one that waits, and is woken with its state by its next turn', async () => {
    const pods = await countPods(cluster);
    const released = (name: string) => join(cluster.home, `${name}-released`);
    for (const name of ['busy', 'idle']) {
      await cluster.create(name, { agent: COUNTER });
      await cluster.turn(name, `${name}-1`, released(name));
      await cluster.turnUntil(`${name}-1`, 'running', ({ status }) => status?.phase === 'Running');
    }

    // The new session waits while both others work: no session is preempted before that was seen.
    await cluster.create('new', { agent: COUNTER });
    const { status } = await cluster.until(
      'new',
      'queued',
      (session) => session.status?.queue?.reason === 'AtCapacity',
    );
    assert.deepEqual(status?.queue?.holders?.map(({ name }) => name).sort(), ['default/busy', 'default/idle']);
    writeFileSync(released('idle'), '');
    assert.equal((await cluster.ended('idle-1')).status?.output, 1);
    const gone = await cluster.until('idle', 'suspended', (session) => session.status?.phase === 'Suspended');
    const suspended = gone.status?.conditions?.find(({ type }) => type === 'Suspended');
    assert.equal(suspended?.reason, 'Preempted');
    assert.match(String(suspended?.message), /It was preempted for default\/new\.$/);
    await cluster.event('idle', 'Preempted');
    await cluster.until('new', 'ready', (session) => session.status?.phase === 'Ready');

    await cluster.turn('idle', 'idle-2', released('idle'));
    assert.equal((await cluster.ended('idle-2')).status?.output, 2);
    const other = await cluster.until('new', 'suspended', (session) => session.status?.phase === 'Suspended');
    assert.equal(other.status?.conditions?.find(({ type }) => type === 'Suspended')?.reason, 'Preempted');
    const turn = await cluster.turnUntil('busy-1', 'running', ({ status }) => status?.phase === 'Running');
    assert.equal(turn.status?.attempt, 1, 'what runs is left alone');
    writeFileSync(released('busy'), '');
    assert.equal((await cluster.ended('busy-1')).status?.phase, 'Succeeded');
    assert.equal(await pods.stop(), 2);
  });
});
