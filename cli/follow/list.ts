import { isExpired } from '../../core/kube/errors.ts';
import { mayPass } from '../../core/kube/retry.ts';
import { type Clock, delay } from '../../core/runtime.ts';

/** Time without a useful answer from the cluster after which following gives up, milliseconds. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 500;

/** Something that is listed and changes. */
export interface Entry<T> {
  /** Key that distinguishes it from the others of the list. */
  key: string;
  /** Its resourceVersion. */
  version: string;
  value: T;
}

export interface FollowedList<T> {
  /** Reads the list as it is. */
  list(): Promise<{ entries: Entry<T>[]; resourceVersion: string }>;
  /** Gives every change after that version until the server ends the watch. */
  watch(resourceVersion: string): AsyncIterable<Entry<T>>;
}

/**
 * Yields everything that is listed, at once, and then every change. Survives lost connections and a restart of the API
 * server: changes since are yielded, deletions since are not. Rejects with the last error when the
 * cluster stays away, and with the signal's reason.
 */
export async function* followList<T>(
  { list, watch }: FollowedList<T>,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<T[]> {
  const versions = new Map<string, string>();
  const news = (entries: Entry<T>[]): T[] =>
    entries
      .filter(({ key, version }) => {
        const isNew = versions.get(key) !== version;
        versions.set(key, version);
        return isNew;
      })
      .map(({ value }) => value);
  let wasListed = false;
  let lostAt: number | undefined;
  for (;;) {
    try {
      const { entries, resourceVersion } = await list();
      const changed = news(entries);
      if (!wasListed || changed.length > 0) yield changed;
      wasListed = true;
      lostAt = undefined;
      for await (const entry of watch(resourceVersion)) {
        const [changed] = news([entry]);
        if (changed !== undefined) yield [changed];
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isExpired(error)) {
        lostAt ??= clock.monotonic();
        // A watch that was silent for too long ends with a TimeoutError.
        const passes = (error as Error).name === 'TimeoutError' || mayPass(error, wasListed);
        if (!wasListed || !passes || clock.monotonic() - lostAt > PATIENCE_MS) throw error;
      }
    }
    await delay(clock, RETRY_MS, signal);
  }
}
