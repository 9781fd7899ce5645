/** Ends processes that a killed cluster left running. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Home } from './home.ts';
import { MARKER_ROOT } from './kubelet/markers.ts';
import { type Belonging, killBelonging, processTable } from './kubelet/processes.ts';

/** Environment variable of every program of a cluster, with the cluster's home. */
export const MARKER_HOME = 'BERTH_LOCAL_HOME';

/** A process does not end, or does not start; the text says why. */
export class LocalError extends Error {
  readonly code = 'LocalError';
}

/** Matches children of a cluster in this home: its programs and its pods. */
function belongingTo(home: Home): Belonging {
  return {
    leaders: [],
    marked: (environment) =>
      environment.get(MARKER_HOME) === home.path ||
      environment.get(MARKER_ROOT)?.startsWith(`${join(home.path, 'pods')}/`) === true,
  };
}

/** Time that a forked process may take to begin its program, milliseconds. */
const EXEC_MS = 10_000;
const LOOK_MS = 10;
/**
 * Limit of scans for a loading program, which takes one or two: other programs that start must not delay a start for
 * ever.
 */
const LOADING_LOOKS = 100;

/**
 * Ends programs and pods of this home; during that no other process may run or start a cluster in it. Rejects with a
 * `LocalError` unless all of them are certainly gone.
 *
 * A forked child that has not begun its program yet has the environment of its parent, so it has no marker. It still
 * holds its parent's presence: the search for marked processes begins when no process holds that any more.
 */
export async function endLeftovers(home: Home): Promise<void> {
  const { presence } = home;
  for (let waited = 0; presence.isHeld(); waited += LOOK_MS) {
    if (waited > EXEC_MS) throw new LocalError(`a process of an earlier cluster still holds ${home.path}/presence`);
    await sleep(LOOK_MS);
  }
  // Exec closes the files some microseconds before the new environment can be read.
  for (let looks = 0; processTable.isLoading() && looks < LOADING_LOOKS; looks++) await sleep(LOOK_MS);
  const left = await killBelonging(processTable, belongingTo(home));
  if (left.length > 0) throw new LocalError(`processes of an earlier cluster cannot be ended: pids ${left.join(', ')}`);
}
