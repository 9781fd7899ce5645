import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LinkOptions } from '../../../../controller/link/options.ts';
import type { PodStream, StreamEnd } from '../../../../core/kube/types.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { bound, linkTo, runTurn, setUp, TURN } from './support.ts';

test('the first attach is tried 120 ms after the pod was scheduled', async () => {
  const { clock, link } = setUp();
  await clock.advance(119);
  assert.equal(link.view.phase, 'Opening');
  await clock.advance(2);
  assert.equal(link.view.phase, 'Unbound');
});

test('a pod that is being deleted is attached again at its changes, and otherwise seldom', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(20_000);
  link.podChanged({ scheduled: true, deleted: true });
  pod.unreachable = true;
  pod.drop();
  pod.attempts = 0;
  await clock.advance(1_900);
  assert.equal(pod.attempts, 1);
  link.podChanged({ scheduled: true, deleted: true });
  await clock.advance(10);
  assert.equal(pod.attempts, 2);
});

test('the pod of a pool, which nobody waits for, is tried every 200 ms, and that of a session every 25', async () => {
  const attempts = async (session: string) => {
    const { clock, pod } = setUp({ session });
    pod.unreachable = true;
    await clock.advance(1_119);
    return pod.attempts;
  };
  assert.deepEqual([await attempts(''), await attempts('session-1')], [5, 40]);
});

describe('an attach', () => {
  test('of an idle runner is closed after its linger, and nothing is asked of the runner until the next turn', async () => {
    const parts = await bound({ lingerMs: 90_000 });
    const { clock, pod, link } = parts;
    await runTurn(parts, 'turn-1');
    await clock.advance(89_000);
    assert.equal(link.isAttached, true);
    await clock.advance(1_000);
    assert.equal(link.isAttached, false);
    const { asked } = pod;
    await clock.advance(3_600_000);
    assert.deepEqual(
      [link.isAttached, pod.asked, link.view.silentSince, link.view.phase],
      [false, asked, undefined, 'Bound'],
    );
    link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(0);
    assert.deepEqual([pod.given, link.isAttached], [['turn-1', 'turn-2'], true]);
    pod.finish('y');
    await clock.advance(10);
    assert.equal(link.view.delivery?.result.message.output, 'y');
  });

  test('stays open while a turn runs and until its end is acknowledged', async () => {
    const { clock, pod, link } = await bound({ lingerMs: 1_000 });
    link.startTurn({ ...TURN, timeoutMs: 24 * 3_600_000 });
    await clock.advance(3_600_000);
    assert.equal(link.isAttached, true);
    pod.finish('x');
    await clock.advance(3_600_000);
    assert.equal(link.isAttached, true);
    link.acknowledge(link.view.delivery!.result.seq);
    // The linger counts from the answer to the next ping.
    await clock.advance(31_000);
    assert.equal(link.isAttached, false);
  });

  test('that was closed is opened for a suspension, which is answered over it', async () => {
    const parts = await bound({ lingerMs: 1_000 });
    await runTurn(parts, 'turn-1');
    await parts.clock.advance(60_000);
    assert.equal(parts.link.isAttached, false);
    parts.link.suspend({});
    await parts.clock.advance(100);
    assert.deepEqual([parts.link.view.suspended, parts.link.view.snapshot !== undefined], [true, true]);
    await parts.clock.advance(60_000);
    assert.equal(parts.link.isAttached, true);
  });

  test('that was closed keeps what is to be sent until an attempt succeeds', async () => {
    const parts = await bound({ lingerMs: 1_000 });
    const { clock, pod, link } = parts;
    await runTurn(parts, 'turn-1');
    await clock.advance(60_000);
    pod.unreachable = true;
    link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(5_000);
    link.cancel('turn-2');
    await clock.advance(30_000);
    assert.deepEqual([pod.given, link.view.silentSince], [['turn-1'], undefined]);
    assert.ok((link.view.unreachableMs ?? 0) > 20_000);
    pod.unreachable = false;
    await clock.advance(20_000);
    assert.deepEqual([pod.given, link.view.delivery?.result.message.outcome], [['turn-1', 'turn-2'], 'Cancelled']);
  });
});

test('an attach that opens and takes no text is tried as seldom as one that does not open', async () => {
  const clock = new VirtualClock();
  let attempts = 0;
  const attach = async (): Promise<PodStream> => {
    attempts++;
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    return {
      write: () => Promise.reject(new Error('the pipe is broken')),
      closeStdin: () => {},
      pause: () => {},
      resume: () => {},
      close: () => resolve({ by: 'local', message: 'closed' }),
      closed: promise,
    };
  };
  linkTo({ attach } as unknown as LinkOptions['api'], clock);
  await clock.advance(2_000);
  attempts = 0;
  await clock.advance(60_000);
  assert.ok(attempts > 0 && attempts <= 8, `${attempts}`);
});
