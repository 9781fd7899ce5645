/** Numbers of what pods were kept from because it would have cost the controller too much. They only grow. */
export type PodCounters = ReturnType<typeof nothingKept>;

export const nothingKept = () => ({
  /** Logs of ended containers whose beginning was not read. */
  logsCut: 0,
  /** Messages that waited for room in the memory of all. */
  waitedForMemory: 0,
  /** Pauses in the reading of a pod's stdout. */
  pauses: 0,
});
