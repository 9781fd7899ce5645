import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { QueueController } from '../../../../controller/runtime/queue-controller.ts';
import { silentLogger } from '../../../../core/system.ts';
import { seededRandom } from '../../../support/random.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

/** A controller whose one reconcile, of `team/one`, lasts until it is told to end. */
class Held extends QueueController {
  readonly watches = { session: (key: string) => this.queue.add(key) };
  readonly done = Promise.withResolvers<undefined>();
  /** Signals of the reconciles that have begun. */
  readonly signals: AbortSignal[] = [];

  protected override reconcile(_key: string, signal: AbortSignal): Promise<undefined> {
    this.signals.push(signal);
    return this.done.promise;
  }
}

async function reconciling() {
  const clock = new VirtualClock();
  const leadership = new AbortController();
  const tools = { clock, random: seededRandom(1), log: silentLogger, signal: leadership.signal };
  const controller = new Held(tools, { name: 'held', workers: 1, backoff: { baseMs: 100, maxMs: 100 } });
  controller.watches.session('team/one');
  await settled();
  assert.equal(controller.signals.length, 0, 'nothing is reconciled before the start');
  controller.start();
  const [signal] = controller.signals;
  assert.ok(signal);
  return { clock, leadership, controller, signal };
}

describe('a controller with a queue', () => {
  test('ends the reconcile under way when the leadership ends', async () => {
    const { leadership, signal } = await reconciling();
    leadership.abort(new Error('the lease is lost'));
    assert.equal((signal.reason as Error).message, 'the lease is lost');
  });

  test('that stops lets the reconcile under way finish within the grace time, and begins no other', async () => {
    const { clock, controller, signal } = await reconciling();
    const stopped = controller.stop(5_000);
    await clock.advance(4_999);
    assert.equal(signal.aborted, false);
    controller.watches.session('team/one');
    controller.done.resolve(undefined);
    assert.equal(await stopped, true);
    assert.equal(controller.signals.length, 1);
  });

  test('ends the reconcile under way after the grace time of a stop, and says that it was cut off', async () => {
    const { clock, controller, signal } = await reconciling();
    const stopped = controller.stop(5_000);
    await clock.advance(5_000);
    assert.equal(signal.aborted, true);
    controller.done.resolve(undefined);
    assert.equal(await stopped, false);
  });
});
