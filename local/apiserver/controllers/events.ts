import type { Clock, Logger } from '../../../core/runtime.ts';
import { deleteObject } from '../registry/deletion.ts';
import type { Registry } from '../registry/registry.ts';

/** Lifetime of events, the API server's default; milliseconds. */
const keepMs = 3_600_000;
const intervalMs = 60_000;

/** Removes old events at intervals. Returns a function that stops it. */
export function eventSweeper(registry: Registry, clock: Clock, logger: Logger): () => void {
  let cancel = () => {};
  const sweep = () => {
    let failure: unknown;
    const type = registry.catalogue.byStorage('events');
    for (const event of registry.store.list('events')) {
      const { metadata } = event;
      const last = (event.lastTimestamp ?? event.eventTime ?? metadata.creationTimestamp) as string;
      if (!type || clock.now() - Date.parse(last) < keepMs) continue;
      try {
        deleteObject(registry, type, metadata.namespace, metadata.name, { dryRun: false });
      } catch (error) {
        // The next sweep finds the event again.
        failure = error;
      }
    }
    if (failure) logger.warn({ err: failure }, 'old events could not be removed, trying again');
    cancel = clock.setTimer(intervalMs, sweep);
  };
  sweep();
  return () => cancel();
}
