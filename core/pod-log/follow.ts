/** Follows the log of one pod for as long as the pod exists, across lost connections. */
import { ApiError, isNotFound, isPodGone, TransportError } from '../kube/errors.ts';
import { mayPass } from '../kube/retry.ts';
import { type Clock, delay } from '../runtime.ts';
import { type LogApi, type LogPod, openLog } from './open.ts';
import { type LinePiece, LogPosition } from './position.ts';

/** Wait before the log of a pod that has just started is tried again, milliseconds. */
const RETRY_MS = 250;
/** Limit to which the waits grow while a pod has ended and is not gone yet, milliseconds. */
const MAX_RETRY_MS = 2_000;
/** Time without an answer from the cluster or the node after which following gives up, milliseconds. */
const PATIENCE_MS = 60_000;
/**
 * Age of a connection above which its loss is the end of a silent connection and not a failed attempt to connect,
 * milliseconds.
 */
const STOOD_MS = 15_000;

export interface FollowOptions {
  /** Time of the first line, RFC 3339; default: the whole log. */
  sinceTime?: string | undefined;
  signal: AbortSignal;
}

/** Yields the bytes of the log, each once, as `readPodLog` does with `follow`. */
export async function* followPodLog(
  api: LogApi,
  clock: Clock,
  pod: LogPod,
  options: FollowOptions,
): AsyncGenerator<Buffer> {
  for await (const pieces of readPodLog(api, clock, pod, { ...options, follow: true })) {
    yield Buffer.concat(pieces.map(({ bytes }) => bytes));
  }
}

/**
 * Yields the log, each piece of a line once. Without `follow` this ends with the present end of the log. With it, a log that
 * ends, as connections do, is opened again until the pod is gone. Rejects with the last error when the cluster stays away,
 * and with the signal's reason.
 */
export async function* readPodLog(
  api: LogApi,
  clock: Clock,
  pod: LogPod,
  { sinceTime, follow, signal }: FollowOptions & { follow: boolean },
): AsyncGenerator<LinePiece[]> {
  const position = new LogPosition();
  let pause = RETRY_MS;
  let wasAnswered = false;
  let lostAt: number | undefined;
  for (;;) {
    const openedAt = clock.monotonic();
    const from = position.reopen() ?? sinceTime;
    const options = {
      follow,
      timestamps: true,
      ...(from ? { sinceTime: from } : {}),
      signal,
    };
    try {
      for await (const chunk of openLog(api, pod, options)) {
        [wasAnswered, lostAt] = [true, undefined];
        const unread = position.push(chunk);
        if (unread.length === 0) continue;
        pause = RETRY_MS;
        yield unread;
      }
      if (!follow) return;
      [wasAnswered, lostAt] = [true, undefined];
    } catch (error) {
      signal.throwIfAborted();
      if (isPodGone(error)) return;
      const isUnstarted = error instanceof ApiError && error.code === 400;
      if (isUnstarted) pause = RETRY_MS;
      // The pod exists but its kubelet does not know it: it got its node a moment ago, or the kubelet restarted.
      if (isUnstarted || isNotFound(error)) [wasAnswered, lostAt] = [true, undefined];
      else {
        const now = clock.monotonic();
        const stood = error instanceof TransportError && now - openedAt > STOOD_MS;
        if (lostAt === undefined || stood) lostAt = now;
        if (!mayPass(error, wasAnswered) || now - lostAt > PATIENCE_MS) throw error;
      }
    }
    await delay(clock, pause, signal);
    pause = Math.min(2 * pause, MAX_RETRY_MS);
  }
}
