import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AttachLimit, type PendingAttach } from '../../../../controller/link/attach-limit.ts';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { bound, setUp, TURN } from './support.ts';

describe('an attach that waits for others of its node', () => {
  const NEVER = new AbortController().signal;
  const OTHER: PendingAttach = { priority: () => 'WaitedFor' };
  const hasRoom = (limit: AttachLimit) => limit.hasRoom('node-1', 'WaitedFor');
  /** A link to a node with one place. `taken`: another attach has it, and gives it back with what this resolves to. */
  async function crowded() {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const parts = await bound({ clock, limit });
    const taken = async () => (await limit.enter('node-1', { ...OTHER }, NEVER))!;
    return { ...parts, limit, taken };
  }

  test('is opened when one of them has its answer', async () => {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const leave = await limit.enter('node-1', OTHER, NEVER);
    const { pod, link } = setUp({ clock, limit });
    await clock.advance(10_000);
    assert.deepEqual([pod.attempts, link.view.phase], [0, 'Opening']);
    leave?.();
    await clock.advance(10);
    assert.deepEqual([pod.attempts, link.view.phase, hasRoom(limit)], [1, 'Unbound', true]);
  });

  test('leaves its own place when it is refused, cut off, unanswered or closed', async () => {
    const { clock, pod, link, limit } = await crowded();
    const places: boolean[] = [];
    const seen = async (ms: number) => {
      await clock.advance(ms);
      places.push(hasRoom(limit));
    };
    pod.unreachable = true;
    pod.drop();
    await seen(60_000);
    pod.unreachable = false;
    pod.deaf = true;
    link.podChanged({ scheduled: true, deleted: false, node: 'node-1' });
    await seen(1_000);
    await seen(4_000);
    while (hasRoom(limit)) await clock.advance(100);
    pod.drop();
    await seen(1);
    while (hasRoom(limit)) await clock.advance(100);
    link.close();
    await seen(0);
    assert.deepEqual(places, [true, false, true, true, true]);
  });

  test('shows that, and is silent and out of reach for no longer than it was before', async () => {
    const { clock, pod, link, limit, taken } = await crowded();
    pod.deaf = true;
    link.startTurn(TURN);
    await clock.advance(4_999);
    const leave = await taken();
    const silentMs = () => clock.monotonic() - (link.view.silentSince ?? 0);
    await clock.advance(2_000);
    const before = silentMs();
    await clock.advance(600_000);
    assert.deepEqual([link.view.queued, silentMs()], [true, before]);
    leave();
    await clock.advance(0);
    assert.deepEqual([link.view.queued, silentMs(), hasRoom(limit)], [undefined, before, false]);
    assert.ok(before >= 5_000 && before < 7_000, `${before} ms`);
  });

  test('is not older for it, nor are the binding and the cancellation that were sent before', async () => {
    const { clock, pod, link, taken } = await crowded();
    link.startTurn(TURN);
    link.cancel('turn-1');
    const { view } = link;
    const leave = await taken();
    pod.drop();
    await clock.advance(1_000);
    const from = clock.monotonic();
    await clock.advance(600_000);
    leave();
    await clock.advance(0);
    const later = link.view.openedAt - view.openedAt;
    assert.ok(later >= clock.monotonic() - from, `${later} ms`);
    assert.equal((link.view.bindSentAt ?? 0) - (view.bindSentAt ?? 0), later);
    const cancelledAt = ({ cancelSent }: LinkView) => cancelSent?.get('turn-1')?.at ?? 0;
    assert.equal(cancelledAt(link.view) - cancelledAt(view), later);
  });

  test('is then tried as often as a pod that has just started', async () => {
    const clock = new VirtualClock();
    const limit = new AttachLimit(1, clock);
    const leave = await limit.enter('node-1', OTHER, NEVER);
    const { pod } = setUp({ clock, limit });
    pod.unreachable = true;
    await clock.advance(10_000);
    leave?.();
    await clock.advance(500);
    assert.equal(pod.attempts, 21);
  });

  test('is not out of reach for the longer', async () => {
    const { clock, pod, link, taken } = await crowded();
    pod.unreachable = true;
    pod.drop();
    await clock.advance(3_000);
    const leave = await taken();
    await clock.advance(600_000);
    leave();
    await clock.advance(20_000);
    const { unreachableMs = 0 } = link.view;
    assert.ok(unreachableMs > 2_000 && unreachableMs < 30_000, `${unreachableMs} ms`);
  });
});
