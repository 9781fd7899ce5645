import { TransportError } from '../../../core/kube/errors.ts';
import type { KubeObject, Resource, Stored, WatchEvent, WatchOptions } from '../../../core/kube/types.ts';
import { parseVersion, selectorOf } from '../../../local/apiserver/registry/listing.ts';
import { watchObjects } from '../../../local/apiserver/registry/watching.ts';
import { Channel } from '../channel.ts';
import type { Dice } from '../random.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import type { FaultRates } from './faults.ts';
import type { Known } from './known.ts';
import type { SimServer } from './server.ts';

const BOOKMARK_MS = 60_000;

interface Surroundings {
  process: Process;
  scheduler: Scheduler;
  server: SimServer;
  dice: Dice;
  rates: () => FaultRates;
  known: Known;
}

type Item<T extends KubeObject> = WatchEvent<T> | { type: 'END'; error?: Error };

/**
 * Opens one watch connection. The watch never skips an event and never changes the order, as a real one. Events may be
 * late or repeated, and the connection may fall silent or break and lose the events under way.
 */
export async function* watchFaulty<T extends KubeObject>(
  { process, scheduler, server, dice, rates, known }: Surroundings,
  resource: Resource<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const { signal } = options;
  await process.sleep(dice.skewed(0.5, 20));
  signal.throwIfAborted();
  if (server.isDown) throw new TransportError('connection refused (simulated)');
  const refusal = server.refusal(options.namespace, `watch ${resource.plural}`);
  if (refusal) throw refusal;
  if (dice.chance(rates().refused)) throw new TransportError('watch refused (simulated)');

  const arrived: Item<T>[] = [];
  let wake = Promise.withResolvers<void>();
  const channel = new Channel<Item<T>>(scheduler, process, `watch ${resource.plural}`, (item) => {
    arrived.push(item);
    wake.resolve();
  });
  const type = server.type(resource);
  const selector = selectorOf(type, options.labelSelector ?? null, options.fieldSelector ?? null);
  const version = parseVersion(options.resourceVersion);
  const shows = (at: number) => known.shown(resource.plural, options.namespace, at, scheduler.now);
  shows(version ?? 0);
  let last: WatchEvent<T> | undefined;
  let broken = false;
  const stop = watchObjects(server.store, type, options.namespace, selector, version, (kind, object) => {
    if (broken) return;
    const event: WatchEvent<T> = { type: kind, object: object as unknown as Stored<T> };
    const now = rates();
    if (dice.chance(now.watchBroken)) {
      broken = true;
      channel.cut();
      const error = dice.chance(0.3) ? undefined : new TransportError('watch broken (simulated)');
      channel.send({ type: 'END', ...(error ? { error } : {}) }, dice.skewed(1, 200));
      return;
    }
    if (dice.chance(now.watchStalled)) channel.stall(dice.skewed(500, 150_000));
    const latency = dice.chance(now.slow) ? dice.skewed(20, 5000) : dice.skewed(0.3, 10);
    channel.send(event, latency);
    if (dice.chance(now.watchRepeated)) channel.send(dice.chance(0.7) || !last ? event : last, latency);
    last = event;
  });
  const notKilled = server.onKill(() => {
    broken = true;
    channel.cut();
    channel.send({ type: 'END', error: new TransportError('connection reset (simulated)') }, dice.skewed(0.3, 20));
  });
  const hasRights = server.onLostRights(options.namespace, () => {
    broken = true;
    channel.cut();
    channel.send({ type: 'END' }, 1);
  });
  const bookmark = () => {
    if (broken) return;
    channel.send({ type: 'BOOKMARK', resourceVersion: String(server.store.version) }, dice.skewed(0.3, 10));
    cancelBookmark = scheduler.after(BOOKMARK_MS, process, 'bookmark', bookmark);
  };
  let cancelBookmark = scheduler.after(BOOKMARK_MS, process, 'bookmark', bookmark);
  const cancelEnd = scheduler.after((options.timeoutSeconds ?? 1800) * 1000, process, 'watch ends', () =>
    channel.send({ type: 'END' }, 1),
  );
  const onAbort = () => wake.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  const close = () => {
    stop();
    notKilled();
    hasRights();
    channel.cut();
    cancelBookmark();
    cancelEnd();
  };
  process.onDeath(close);
  try {
    for (;;) {
      for (const item of arrived.splice(0)) {
        if (signal.aborted) throw signal.reason;
        if (item.type !== 'END') {
          shows(Number(item.type === 'BOOKMARK' ? item.resourceVersion : item.object.metadata.resourceVersion));
          yield item;
        } else if (item.error) throw item.error;
        else return;
      }
      if (signal.aborted) throw signal.reason;
      await wake.promise;
      wake = Promise.withResolvers();
    }
  } finally {
    close();
    signal.removeEventListener('abort', onAbort);
  }
}
