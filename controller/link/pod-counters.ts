/** Numbers of what pods were kept from because it would have cost the controller too much. They only grow. */
export interface PodCounters {
  /** Logs of ended containers whose beginning was not read. */
  logsCut: number;
  /** Messages that waited for room in the memory of all. */
  waitedForMemory: number;
  /** Pauses in the reading of a pod's stdout. */
  pauses: number;
}

export function nothingKept(): PodCounters {
  return { logsCut: 0, waitedForMemory: 0, pauses: 0 };
}
