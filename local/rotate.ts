/** Logs of the cluster's programs, which keep their files open: a full one is copied and cut while the program writes on. */

import { closeSync, copyFileSync, openSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import type { Clock, Logger } from '../core/runtime.ts';

/** Size above which a log is copied, bytes. The copy has the older half of the kept text. */
const MAX_LOG = 10 * 1024 * 1024;
const LOOK_MS = 10_000;

/**
 * Copies a log that is larger than `maxBytes` to `PATH.1` and cuts it. Programs append to it, so their next line is its first. A line
 * written between both steps is lost. Returns true when the log was cut; throws when it cannot be.
 */
function rotateWhenLarge(path: string, maxBytes = MAX_LOG): boolean {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= maxBytes) return false;
  const copy = `${path}.1.new`;
  try {
    // The mode is set before there is content.
    closeSync(openSync(copy, 'w', 0o600));
    copyFileSync(path, copy);
    renameSync(copy, `${path}.1`);
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  truncateSync(path);
  return true;
}

/** Rotates the logs again and again; returns a function that ends that. */
export function keepRotated(
  paths: readonly string[],
  { clock, logger }: { clock: Pick<Clock, 'setTimer'>; logger: Logger },
  maxBytes = MAX_LOG,
): () => void {
  let cancel = () => {};
  const look = () => {
    for (const path of paths) {
      try {
        rotateWhenLarge(path, maxBytes);
      } catch (error) {
        logger.warn({ path, err: error }, 'log could not be rotated, trying again');
      }
    }
    cancel = clock.setTimer(LOOK_MS, look);
  };
  look();
  return () => cancel();
}
