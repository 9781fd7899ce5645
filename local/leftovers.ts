/** What a cluster whose own process was killed leaves running. */

import { join } from 'node:path';
import type { Home } from './home.ts';
import { MARKER_ROOT } from './kubelet/markers.ts';
import { type Belonging, killBelonging, processTable } from './kubelet/processes.ts';

/** In the environment of every program of a cluster: the home it belongs to. */
export const MARKER_HOME = 'BERTH_LOCAL_HOME';

/** Something that has to end does not, or something that has to start does not; the text says why. */
export class LocalError extends Error {
  readonly code = 'LocalError';
}

/** Children of a cluster in this home: its programs and its pods. */
function belongingTo(home: Home): Belonging {
  return {
    leaders: [],
    marked: (environment) =>
      environment.get(MARKER_HOME) === home.path ||
      environment.get(MARKER_ROOT)?.startsWith(`${join(home.path, 'pods')}/`) === true,
  };
}

/** Ends programs and pods of this home; no cluster may be running in it. Rejects with a `LocalError`. */
export async function endLeftovers(home: Home): Promise<void> {
  const left = await killBelonging(processTable, belongingTo(home));
  if (left.length > 0) throw new LocalError(`processes of an earlier cluster cannot be ended: pids ${left.join(', ')}`);
}
