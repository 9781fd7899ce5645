import type { ReadLines } from '../core/follow/pod-lines.ts';
import type { KubeApi } from '../core/kube/types.ts';
import type { LogLine } from '../core/pod-log/lines.ts';
import type { Clock } from '../core/runtime.ts';
import { SharedLog } from './shared-log.ts';

/** Time for which a log is read on after its last follower has gone, as it may come back; milliseconds. */
const LINGER_MS = 60_000;

interface Shared {
  log: SharedLog;
  followers: number;
  cancelStop: () => void;
}

export interface SharedLogsOptions {
  clock: Clock;
  /** Limit of the logs that are read at once, not below that of the followers. */
  most: number;
  /** Limit of what is kept of each, bytes. */
  bytes: number;
}

/** Logs of the pods that somebody follows: one stream each, however many follow. */
export class SharedLogs {
  readonly #options: SharedLogsOptions;
  /** Logs by the name of their pod, which no other pod ever has; those without followers in the order in which the last one left. */
  readonly #shared = new Map<string, Shared>();

  constructor(options: SharedLogsOptions) {
    this.#options = options;
  }

  /**
   * Returns a function that yields the lines of a pod's log from `start` on, live until the pod is gone. Rejects as the
   * shared stream does. All who follow a pod must give the same logs: those of the first are read.
   */
  readFrom(api: Pick<KubeApi, 'podLog'>): ReadLines {
    return (ref, start, signal) => this.#read(api, ref, start, signal);
  }

  async *#read(api: Pick<KubeApi, 'podLog'>, ...[ref, start, signal]: Parameters<ReadLines>): AsyncGenerator<LogLine> {
    const key = `${ref.namespace}/${ref.name}`;
    for (let isOver = false; !isOver; ) {
      const known = this.#shared.get(key);
      const shared = known ?? this.#open(key, api, ref);
      // A stream that was opened earlier may have been told that there is no pod before this one was made.
      isOver = !known;
      shared.cancelStop();
      shared.followers += 1;
      try {
        for await (const line of shared.log.follow(start, signal)) {
          isOver = true;
          yield line;
        }
      } finally {
        this.#release(key, shared);
      }
    }
  }

  async stop(): Promise<void> {
    const all = [...this.#shared];
    for (const [key, shared] of all) this.#end(key, shared);
    await Promise.all(all.map(([, { log }]) => log.ended));
  }

  #open(key: string, api: Pick<KubeApi, 'podLog'>, ref: { namespace: string; name: string }): Shared {
    // Followers are limited, those that may come back are not.
    const idle = [...this.#shared].find(([, { followers }]) => followers === 0);
    if (idle && this.#shared.size >= this.#options.most) this.#end(...idle);
    const log = new SharedLog({ ...this.#options, api, ref });
    const shared: Shared = { log, followers: 0, cancelStop: () => {} };
    this.#shared.set(key, shared);
    // A log that has ended is not one of a pod that is still to be created.
    void log.ended.then(() => this.#end(key, shared));
    return shared;
  }

  #release(key: string, shared: Shared): void {
    shared.followers -= 1;
    if (shared.followers > 0 || this.#shared.get(key) !== shared) return;
    this.#shared.delete(key);
    this.#shared.set(key, shared);
    shared.cancelStop = this.#options.clock.setTimer(LINGER_MS, () => this.#end(key, shared));
  }

  #end(key: string, shared: Shared): void {
    shared.cancelStop();
    shared.log.stop();
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }
}
