import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Link } from '../../../../controller/link/link.ts';
import { sealState } from '../../../../core/frames/seal.ts';
import { seededRandom } from '../../../support/random.ts';
import { BIND, KEY, setUp, TURN } from './support.ts';

/** A pod that was bound, and whose state was lost on the way to it. */
async function unrestored() {
  const parts = setUp();
  await parts.clock.advance(200);
  parts.pod.loses = 'restore';
  giveState(parts.link);
  parts.link.startTurn(TURN);
  await parts.clock.advance(10);
  assert.equal(parts.link.view.refused?.code, 'NotRestored');
  parts.pod.loses = undefined;
  return parts;
}

function giveState(link: Link): void {
  const digest = 'ab'.repeat(32);
  const sealed = sealState(KEY, Buffer.from('packed'), { session: 'session-1', keyId: 'k' }, seededRandom());
  const restores = { digest, incarnation: 1, seq: 9 };
  link.bind(
    { ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] }, restores },
    { state: { digest, keyId: 'k', sealed } },
  );
}

test('a state that was lost on its way is given again, and the turn that was refused for it then runs', async () => {
  const { clock, pod, link } = await unrestored();
  giveState(link);
  await clock.advance(10);
  assert.equal(link.view.active, undefined);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
  assert.equal(link.view.refused, undefined);
});

test('a runner that cannot unpack its environment says so, also after it has refused the turn for want of it', async () => {
  for (const code of ['EnvironmentMismatch', 'EnvironmentFailed'] as const) {
    const { clock, pod, link } = setUp();
    await clock.advance(200);
    const error = new Error('another Python');
    pod.unpackError = code === 'EnvironmentMismatch' ? Object.assign(error, { code }) : error;
    const digest = 'cd'.repeat(32);
    const sealed = sealState(KEY, Buffer.from('packed'), { session: 'build-1', keyId: 'k' }, seededRandom());
    const environment = { digest, session: 'build-1', keyId: 'k', key: KEY.toString('base64') };
    const agent = { ...BIND.agent, command: ['agent'], args: [], env: [] };
    link.bind({ ...BIND, agent, environment }, { environment: { digest, sealed } });
    link.startTurn(TURN);
    await clock.advance(10);
    assert.deepEqual([link.view.refused?.code, pod.given], [code, []]);
  }
});

test('a runner without its state that was asked to suspend is asked again once it has it', async () => {
  const { clock, pod, link } = await unrestored();
  link.suspend({});
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'NotRestored');
  giveState(link);
  await clock.advance(10);
  assert.ok(link.view.snapshot);
  assert.deepEqual(pod.given, []);
});

test('a successor with a newer master key gives a lost state again under the keys the runner has', async () => {
  const { clock, pod, link } = await unrestored();
  link.close();
  const newer = Buffer.alloc(32, 8);
  const keys = {
    current: { id: 'n', key: newer },
    byId: new Map([
      ['n', newer],
      ['k', KEY],
    ]),
  };
  const successor = setUp({ clock, pod, keys, epoch: 6 });
  await clock.advance(60_000);
  assert.equal(successor.link.view.phase, 'Bound');
  giveState(successor.link);
  successor.link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a successor does not give a state again that a runner has had since it asked for it', async () => {
  const { clock, pod, link } = await unrestored();
  giveState(link);
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  link.close();
  const successor = setUp({ clock, pod, epoch: 6 });
  await clock.advance(10_000);
  assert.deepEqual([successor.link.view.started?.turn, successor.link.view.refused], ['turn-1', undefined]);
});

test('the files of the agent follow the binding, and a turn waits for all of them', async () => {
  const { clock, pod, link } = await setUp();
  await clock.advance(200);
  pod.loses = 'files';
  const agent = { ...BIND.agent, command: ['agent'], args: [], env: [] };
  const bind = () =>
    link.bind(
      { ...BIND, agent, files: { due: true } },
      {
        files: [Buffer.from('a'), Buffer.from('b')],
      },
    );
  bind();
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, pod.given, pod.files], ['NotRestored', [], []]);
  pod.loses = undefined;
  bind();
  await clock.advance(10);
  assert.deepEqual(pod.files, ['a', 'b']);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});
