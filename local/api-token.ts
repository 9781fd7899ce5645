/** Token of the HTTP API for programs of this machine, in a file that always has a valid one. */

import { readFileSync, rmSync } from 'node:fs';
import type { Clock, Logger } from '../core/runtime.ts';
import type { Home } from './home.ts';

/** Time for which a token is valid, seconds. */
export const TOKEN_SECONDS = 3600;
/** Age at which a token is replaced, milliseconds. A program that has just read it can use it for two thirds of its time. */
const RENEW_MS = (TOKEN_SECONDS * 1000) / 3;
/** Interval of the looks at the token's age, milliseconds. Timers stand still while the machine sleeps; the clock does not. */
const LOOK_MS = 5_000;

/**
 * Writes a token into the home's file and replaces it again and again. Throws where the first cannot be made or written.
 * Returns a function that ends that and removes the file.
 */
export function keepApiToken(
  { mint, home }: { mint: () => string; home: Pick<Home, 'apiToken' | 'write'> },
  { clock, logger }: { clock: Pick<Clock, 'now' | 'setTimer'>; logger: Logger },
): () => void {
  const path = home.apiToken;
  let token = '';
  let madeAt = 0;
  const renew = () => {
    const next = mint();
    home.write(path, `${next}\n`);
    token = next;
    madeAt = clock.now();
  };
  renew();
  let cancel = () => {};
  const look = () => {
    const age = clock.now() - madeAt;
    try {
      // The clock may have been set back.
      if (age < 0 || age >= RENEW_MS) renew();
    } catch (error) {
      logger.warn({ path, err: error }, 'token of the HTTP API could not be renewed, trying again');
    }
    cancel = clock.setTimer(LOOK_MS, look);
  };
  cancel = clock.setTimer(LOOK_MS, look);
  return () => {
    cancel();
    // After the folder was replaced the file can be another cluster's: then it stays.
    if (contentOf(path) === `${token}\n`) rmSync(path, { force: true });
  };
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
