import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { isNotFound } from '../../../core/kube/errors.ts';
import { blobs, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/** Writes as many bytes into its state and its output as it is asked for. */
const agent = pythonAgent(`
size = int(request['input'] or 0)
open(state + '/size', 'w').write('s' * size + request['turn']['name'])
answer('o' * size)
`);

describe('retention of sessions and turns', () => {
  const cluster = installed({ BERTH_GARBAGE_INTERVAL: '200ms' });
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  const gone = (name: string) =>
    eventually(
      () =>
        cluster.session(name).then(
          () => false,
          (error) => isNotFound(error),
        ),
      { what: `session ${name} gone` },
    );
  const turnNames = async (session: string) => {
    const { items } = await cluster.client.list(turns, {
      namespace: 'default',
      fieldSelector: `spec.session=${session}`,
    });
    return items.map(({ metadata }) => metadata.name).sort();
  };
  const suspended = (name: string) => cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended');

  test('a finished session is deleted after its time, with its turns, its pod and what it stored', async () => {
    await cluster.create('run', { agent, turns: 'One', input: 20_000, ttlAfterFinished: '1h' });
    await cluster.until('run', 'finished', ({ status }) => status?.phase === 'Finished');
    const stored = await cluster.client.list(blobs, { namespace: 'default', fieldSelector: 'spec.session=run' });
    assert.ok(stored.items.length >= 1);
    await cluster.patch('run', { ttlAfterFinished: '1s' });
    await gone('run');
    await eventually(async () => {
      const left = await cluster.client.list(blobs, { namespace: 'default', fieldSelector: 'spec.session=run' });
      return left.items.length + (await turnNames('run')).length + (await cluster.podsOf('run')).length === 0;
    });
    await cluster.event('run', 'Expired');
  });

  test('a session that was suspended for long is deleted, also by a controller that was not there', async () => {
    await cluster.create('asleep', { agent, suspendRequest: 'now', ttlAfterSuspended: '1h' });
    await suspended('asleep');
    await controller.kill('SIGKILL');
    await cluster.patch('asleep', { ttlAfterSuspended: '1s' });
    controller = cluster.startController();
    await gone('asleep');
  });

  test('a turn that comes at the very moment finds its session, or is told that there is none; it is never lost', async () => {
    for (const early of [40, 15, 0]) {
      const name = `moment-${early}`;
      await cluster.create(name, { agent, suspendRequest: 'now', ttlAfterSuspended: '1h' });
      const { status } = await suspended(name);
      const since = Date.parse(status?.conditions?.find(({ type }) => type === 'Suspended')?.lastTransitionTime ?? '');
      const ttl = Math.ceil((Date.now() - since) / 1000) + 1;
      await cluster.patch(name, { ttlAfterSuspended: `${ttl}s` });
      await eventually(() => Date.now() >= since + ttl * 1000 - early);
      await cluster.turn(name, `${name}-1`, 0);
      const outcome = await eventually(
        async () => {
          const turn = await cluster.client
            .get(turns, { namespace: 'default', name: `${name}-1` })
            .catch((error) => (isNotFound(error) ? undefined : Promise.reject(error)));
          // The turn was adopted, ran, and was deleted with its session.
          if (!turn) return 'gone';
          if (turn.status?.phase === 'Succeeded') return 'ran';
          const why = turn.status?.conditions?.find(({ type }) => type === 'Finished')?.reason;
          return why === 'SessionNotFound' ? 'told' : undefined;
        },
        { what: 'the turn ran or was told' },
      );
      assert.notEqual(outcome, 'gone');
    }
  });

  test('history keeps the newest turns, counts all, and goes on with the next index after a restart', async () => {
    await cluster.create('long', { agent, history: { turns: 3 } });
    for (let index = 1; index <= 7; index++) {
      await cluster.turn('long', `long-${index}`, 100);
      await cluster.ended(`long-${index}`);
    }
    const last = ['long-5', 'long-6', 'long-7'];
    await eventually(async () => (await turnNames('long')).join() === last.join(), { what: 'three turns left' });
    await controller.kill('SIGKILL');
    controller = cluster.startController();
    await cluster.turn('long', 'long-8', 100);
    assert.equal((await cluster.ended('long-8')).status?.index, 8);
    const { status } = await cluster.until('long', 'counted', (session) => session.status?.turns?.total === 8);
    assert.deepEqual(status?.turns, { total: 8, succeeded: 8, failed: 0 });
    await eventually(async () => (await turnNames('long')).length === 3, { what: 'three turns left' });
  });

  test('history is limited in bytes, too', async () => {
    await cluster.create('wide', { agent, history: { bytes: '40Ki' } });
    for (let index = 1; index <= 5; index++) {
      await cluster.turn('wide', `wide-${index}`, 12_000);
      await cluster.ended(`wide-${index}`);
    }
    await eventually(async () => (await turnNames('wide')).length <= 3, { what: 'at most three turns left' });
    assert.ok((await turnNames('wide')).includes('wide-5'));
    await cluster.until('wide', 'counted', ({ status }) => status?.turns?.total === 5);
  });

  test('a session is Outdated while its pod is of an older generation of its class', async () => {
    await cluster.createClass('edited', { agent, overrides: [] });
    await cluster.create('old', { class: 'edited' });
    const condition = async () =>
      (await cluster.session('old')).status?.conditions?.find(({ type }) => type === 'Outdated');
    await cluster.until('old', 'ready', ({ status }) => status?.phase === 'Ready');
    assert.equal(await condition(), undefined);
    await cluster.client.patch(sessionclasses, { name: 'edited' }, { spec: { timeouts: { turn: '5m' } } });
    await eventually(async () => (await condition())?.reason === 'ClassChanged', { what: 'Outdated' });
    await cluster.patch('old', { suspendRequest: 'x' });
    await suspended('old');
    await cluster.turn('old', 'old-1', 1);
    await cluster.ended('old-1');
    await eventually(async () => (await condition())?.status === 'False', { what: 'not Outdated any more' });
    await cluster.client.delete(sessions, { namespace: 'default', name: 'old' });
  });
});
