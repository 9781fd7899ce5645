import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { bound, TURN } from './support.ts';

test('an earlier cancellation that came in vain says nothing of a later one', async () => {
  const { clock, link } = await bound();
  link.cancel('turn-0');
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'UnknownTurn');
  link.startTurn(TURN);
  await clock.advance(10);
  link.cancel(TURN.turn);
  assert.equal(link.view.refused, undefined);
  await clock.advance(10);
  assert.equal(link.view.refused, undefined);
});

test('a refusal of one cancellation says nothing of another turn, though both are sent again over the next attach', async () => {
  const unknown: string[][] = [];
  const onChange = ({ cancelSent }: LinkView) =>
    unknown.push([...(cancelSent ?? [])].flatMap(([turn, sent]) => (sent.unknown ? [turn] : [])));
  const { clock, pod, link } = await bound({ onChange });
  pod.loses = 'turn';
  link.startTurn({ ...TURN, turn: 'lost' });
  await clock.advance(10);
  pod.loses = 'cancel';
  link.cancel('lost');
  await clock.advance(10);
  pod.loses = undefined;
  link.startTurn({ ...TURN, index: 2 });
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
  pod.loses = 'cancel';
  link.cancel('turn-1');
  await clock.advance(10);
  pod.loses = undefined;
  pod.drop();
  await clock.advance(1000);
  assert.deepEqual([...new Set(unknown.flat())], ['lost']);
  assert.equal(link.view.delivery?.result.message.outcome, 'Cancelled');
});

test('neither the cancellation of a turn that the runner never had is sent again, nor that of one whose end is stored', async () => {
  const { clock, pod, link } = await bound();
  link.cancel('never');
  await clock.advance(10);
  link.startTurn(TURN);
  await clock.advance(10);
  link.cancel(TURN.turn);
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.deepEqual([...(link.view.cancelSent ?? []).keys()], ['never']);
  assert.ok(link.view.cancelSent?.get('never')?.unknown);
  const before = pod.cancelled;
  pod.drop();
  await clock.advance(1000);
  assert.equal(pod.cancelled, before);
});
