import type { Clock } from '../../../core/runtime.ts';
import { deleteObject } from '../registry/deletion.ts';
import type { Registry } from '../registry/registry.ts';

/** Lifetime of events, the API server's default; milliseconds. */
const keepMs = 3_600_000;
const intervalMs = 60_000;

/** Removes old events at intervals. Returns a function that stops it. */
export function eventSweeper(registry: Registry, clock: Clock): () => void {
  let cancel = () => {};
  const sweep = () => {
    const type = registry.catalogue.byStorage('events');
    for (const event of registry.store.list('events')) {
      const { metadata } = event;
      const last = (event.lastTimestamp ?? event.eventTime ?? metadata.creationTimestamp) as string;
      if (!type || clock.now() - Date.parse(last) < keepMs) continue;
      deleteObject(registry, type, metadata.namespace, metadata.name, { dryRun: false });
    }
    cancel = clock.setTimer(intervalMs, sweep);
  };
  sweep();
  return () => cancel();
}
