import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { bound, setUp, TURN } from './support.ts';

const LONG = { ...TURN, timeoutMs: 600_000 };

/** Figures of `turn-1` as they came, by the seconds that its process had run. */
const told = (views: LinkView[]) => [
  ...new Set(views.flatMap(({ figures }) => (figures ? [Math.round(figures.runningMs / 1000)] : []))),
];

test('a turn is asked for its figures when it has run ten seconds, then every 30 s, and no more when it has ended', async () => {
  const views: LinkView[] = [];
  const { clock, pod, link } = await bound({ onChange: (view) => views.push(view) });
  await clock.advance(20_000);
  link.startTurn(LONG);
  await clock.advance(9_000);
  assert.deepEqual(told(views), []);
  await clock.advance(62_000);
  assert.deepEqual(told(views), [10, 40, 70]);
  const { turn, attempt, usage, at } = link.view.figures!;
  assert.deepEqual([turn, attempt, usage?.wallMs, at], ['turn-1', 1, 70_000, clock.now() - 1_000]);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.equal(link.view.figures, undefined);
  const asked = pod.asked;
  await clock.advance(29_000);
  assert.equal(pod.asked, asked);
});

test('a turn is asked for its figures, and one that is short is not', async () => {
  const views: LinkView[] = [];
  const { clock, pod, link } = await bound({ onChange: (view) => views.push(view) });
  link.startTurn(LONG);
  await clock.advance(45_000);
  assert.deepEqual(told(views), [10, 40]);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  const asked = pod.asked;
  link.startTurn({ ...TURN, turn: 'turn-2' });
  await clock.advance(5_000);
  pod.finish('done');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  await clock.advance(20_000);
  assert.equal(pod.asked, asked);
});

test('a runner that does not answer with figures is not silent before it would be without them', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(LONG);
  await clock.advance(10);
  pod.loses = 'ping';
  const began = clock.monotonic();
  await clock.advance(29_000);
  assert.deepEqual([link.view.silentSince, pod.asked >= 1], [undefined, true]);
  await clock.advance(6_000);
  const since = (link.view.silentSince ?? 0) - began;
  assert.ok(since >= 29_000 && since <= 30_000, `${since}`);
});

test('figures that were told before a successor came are not taken for those of now', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(LONG);
  await clock.advance(40_000);
  assert.ok(link.view.figures);
  link.close();
  const views: LinkView[] = [];
  setUp({ clock, pod, epoch: 6, onChange: (view) => views.push(view) });
  await clock.advance(31_000);
  assert.deepEqual(told(views), [40, 70]);
  const [first] = views.filter(({ figures }) => figures);
  assert.ok(first?.figures && first.figures.usage!.wallMs >= 40_000, JSON.stringify(first?.figures));
});
