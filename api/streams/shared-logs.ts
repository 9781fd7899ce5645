import type { ReadLines } from '../../core/follow/pod-lines.ts';
import type { LogLine } from '../../core/pod-log/lines.ts';
import { findPod, type LogApi, type LogPod } from '../../core/pod-log/open.ts';
import type { Clock } from '../../core/runtime.ts';
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
  /** Logs by the UID of their pod; those without followers in the order in which the last one left. */
  readonly #shared = new Map<string, Shared>();

  constructor(options: SharedLogsOptions) {
    this.#options = options;
  }

  /**
   * Returns a function that yields the lines of a pod's log from `start` on, live until the pod is gone. Rejects as the
   * shared stream does. All who follow a pod must give the same logs: those of the first are read.
   */
  readFrom(api: LogApi): ReadLines {
    return (pod, start, signal) => this.#read(api, pod, start, signal);
  }

  async *#read(api: LogApi, ...[named, start, signal]: Parameters<ReadLines>): AsyncGenerator<LogLine> {
    const pod = await findPod(api, named, signal);
    if (!pod) return;
    const shared = this.#shared.get(pod.uid) ?? this.#open(api, pod);
    shared.cancelStop();
    shared.followers += 1;
    try {
      yield* shared.log.follow(start, signal);
    } finally {
      this.#release(pod.uid, shared);
    }
  }

  async stop(): Promise<void> {
    const all = [...this.#shared];
    for (const [key, shared] of all) this.#end(key, shared);
    await Promise.all(all.map(([, { log }]) => log.ended));
  }

  #open(api: LogApi, pod: LogPod): Shared {
    // Followers are limited, those that may come back are not.
    const idle = [...this.#shared].find(([, { followers }]) => followers === 0);
    if (idle && this.#shared.size >= this.#options.most) this.#end(...idle);
    const log = new SharedLog({ ...this.#options, api, pod });
    const shared: Shared = { log, followers: 0, cancelStop: () => {} };
    this.#shared.set(pod.uid, shared);
    // Whoever comes after an error reads anew.
    void log.ended.then(() => this.#end(pod.uid, shared));
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
