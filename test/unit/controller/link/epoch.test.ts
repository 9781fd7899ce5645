import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ASK_READY, controlText, readyText } from '../../../../core/frames/encode.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import { epochProof, frameKeys } from '../../../../core/frames/seal.ts';
import { seededRandom } from '../../../support/random.ts';
import { bound, KEY, setUp, TURN } from './support.ts';

test('a leader whose epoch a runner has seen surpassed is told the later one', async () => {
  const first = await bound({ epoch: 9 });
  first.link.close();
  const deposed = setUp({ pod: first.pod, clock: first.clock, epoch: 8 });
  await first.clock.advance(1000);
  assert.equal(deposed.later[0], 9);
});

test('an epoch that a pod names without a proof of this installation changes nothing', async () => {
  const { clock, pod, link, later } = await bound();
  const ready = (epoch: number, proof?: string) =>
    readyText({
      ...{ boot: link.boot ?? '', protocol: PROTOCOL_VERSION, runnerVersion: '1', podUID: 'pod-1', lastSeq: 0, epoch },
      ...(proof && { proof }),
    });
  const keys = frameKeys(KEY, { session: 'session-1', podUID: 'pod-1', boot: link.boot ?? '' });
  const { attempts } = pod;
  pod.print(ready(2 ** 31 - 2));
  pod.print(ready(900, epochProof(KEY, 'pod-2', 900)));
  pod.print(ready(900, epochProof(KEY, 'pod-1', 899)));
  for (const key of [keys.up, keys.down]) pod.print(ready(900, epochProof(key, 'pod-1', 900)));
  await clock.advance(100);
  assert.deepEqual([later, pod.attempts], [[], attempts]);
  pod.print(ready(900, epochProof(KEY, 'pod-1', 900)));
  assert.deepEqual(later, [900]);
});

test('the proof of an epoch serves with each master key of the installation', async () => {
  const other = { id: 'new', key: Buffer.alloc(32, 9) };
  const first = await bound({ epoch: 9 });
  first.link.close();
  const keys = (byId: [string, Buffer][]) => ({ current: other, byId: new Map(byId) });
  const kept = setUp({
    ...first,
    epoch: 8,
    keys: keys([
      ['k', KEY],
      [other.id, other.key],
    ]),
  });
  await first.clock.advance(1000);
  kept.link.close();
  const lost = setUp({ ...first, epoch: 8, keys: keys([[other.id, other.key]]) });
  await first.clock.advance(1000);
  assert.deepEqual([kept.later[0], lost.later], [9, []]);
});

test('a runner that refuses every line for an epoch without a proof is silent, and is attached no more often for it', async () => {
  const { clock, pod, link, later } = await bound();
  const key = frameKeys(KEY, { session: 'session-1', podUID: 'pod-1', boot: link.boot ?? '' }).down;
  const channel = { session: 'session-1', incarnation: 1, boot: link.boot ?? '', key, random: seededRandom() };
  for (const line of controlText(channel, { epoch: 900, n: 1 }, 'ping', {})) pod.runner.push(Buffer.from(line));
  await clock.advance(10);
  pod.attempts = 0;
  const from = clock.monotonic();
  link.startTurn(TURN);
  await clock.advance(45_000);
  const silentMs = clock.monotonic() - (link.view.silentSince ?? Number.POSITIVE_INFINITY);
  assert.deepEqual([later, pod.given], [[], []]);
  assert.ok(silentMs >= 30_000, `silent for ${silentMs} of ${clock.monotonic() - from} ms`);
  assert.ok(pod.attempts <= 6, `${pod.attempts} attempts`);
});

test('a runner whose `ready` has the controller attach again for a later epoch is not silent for what it owed before', async () => {
  const leader = { epoch: 9 };
  const { clock, pod, link } = await bound(leader);
  pod.deaf = true;
  link.startTurn(TURN);
  await clock.advance(1);
  const since = link.view.silentSince;
  assert.ok(since);
  leader.epoch = 8;
  pod.deaf = false;
  pod.runner.push(Buffer.from(ASK_READY));
  await clock.advance(1);
  assert.notEqual(link.view.silentSince, since);
});
