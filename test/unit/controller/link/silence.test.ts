import assert from 'node:assert/strict';
import { test } from 'vitest';
import { bound, TURN } from './support.ts';

test('an answer is waited for from when the lines before it are written: a large one may take long', async () => {
  const { clock, pod, link } = await bound();
  pod.writeMs = 4_000;
  // Three lines, the last of which is answered.
  link.acknowledge(0);
  link.acknowledge(0);
  link.startTurn(TURN);
  await clock.advance(11_000);
  pod.writeMs = 0;
  await clock.advance(1_010);
  assert.deepEqual([pod.given, link.view.started?.turn], [['turn-1'], 'turn-1']);
});

test('a runner that owes an answer is asked again over a new attach, and has longer to answer over each', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  // Until the first ping.
  while (link.view.silentSince === undefined) await clock.advance(100);
  const opened: number[] = [link.view.silentSince];
  for (let before = pod.attempts; opened.length < 5; await clock.advance(25)) {
    if (pod.attempts > before) opened.push(clock.monotonic());
    before = pod.attempts;
  }
  const seconds = opened.slice(1).map((at, i) => Math.round((at - (opened[i] ?? 0)) / 1000));
  assert.deepEqual(seconds, [5, 10, 15, 15]);
  pod.deaf = false;
  await clock.advance(16_000);
  assert.equal(link.view.silentSince, undefined);
  pod.deaf = true;
  link.startTurn(TURN);
  const { attempts } = pod;
  await clock.advance(5_100);
  assert.equal(pod.attempts, attempts + 1, 'the first attach of another silence has the shortest time');
});

test('a runner is silent for as long as an attach was open over which it owed an answer', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  link.startTurn(TURN);
  const silentMs = () => clock.monotonic() - (link.view.silentSince ?? Number.NEGATIVE_INFINITY);
  await clock.advance(4_990);
  pod.unreachable = true;
  await clock.advance(600_000);
  assert.equal(silentMs(), 5_000);
  pod.unreachable = false;
  link.podChanged({ scheduled: true, deleted: false });
  await clock.advance(4_000);
  assert.ok(link.isAttached);
  assert.ok(silentMs() > 8_900 && silentMs() <= 9_000, `${silentMs()} ms`);
  await clock.advance(12_000);
  assert.ok(silentMs() > 20_800 && silentMs() <= 21_000, `${silentMs()} ms`);
});

test('a pod that nobody can attach to is unreachable for as long as that is tried, until it answers again', async () => {
  const { clock, pod, link, answers } = await bound();
  assert.equal(link.view.unreachableMs, undefined);
  pod.unreachable = true;
  pod.drop();
  await clock.advance(60_000);
  const after = link.view.unreachableMs ?? 0;
  assert.ok(after > 40_000 && after <= 60_000, `${after} ms by then`);
  assert.equal(link.view.othersAnswer, false);
  // Opened and not answered is no better.
  pod.unreachable = false;
  pod.deaf = true;
  await clock.advance(30_000);
  assert.ok((link.view.unreachableMs ?? 0) > after);
  answers.at = clock.monotonic();
  await clock.advance(20_000);
  assert.equal(link.view.othersAnswer, true);
  pod.deaf = false;
  await clock.advance(30_000);
  assert.equal(link.view.unreachableMs, undefined);
});
