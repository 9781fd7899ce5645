import type { Overrun } from './overrun.ts';

/** Part of the limit that must be left: below it a family is stopped, because at the limit the kernel kills; */
const LEFT_PART = 1 / 16;
/** Maximum of that rest, bytes. */
const MOST_LEFT = 64 * 1024 * 1024;

/** Memory use and limit of a pod. */
export interface MemoryNow {
  bytes: number;
  limit: number;
  /** Minimum time until the next reading, where readings are expensive; milliseconds. */
  restMs?: number;
}

/** Memory of the runner's own pod. */
export interface PodMemory {
  /** Returns undefined when there is no limit, or when it cannot be read at the moment. */
  read(): MemoryNow | undefined;
  /** Number of processes that the kernel has killed because memory ran out. Absent where the kernel knows no limit. */
  oomKills?(): number | undefined;
  /** Returns an overrun when the kernel has killed since then. Called only for a process that was killed. */
  killedSince?(oomKills: number | undefined): Overrun | undefined;
}

/** Returns an overrun when so little memory is left that the kernel of a real container is about to kill. */
export function overrunOfPod({ bytes, limit }: MemoryNow): Overrun | undefined {
  if (limit - bytes > Math.min(limit * LEFT_PART, MOST_LEFT)) return undefined;
  const message = `the pod used ${bytes} of the ${limit} bytes of memory that it may use (resources.limits.memory); the largest of its processes were stopped, so that the pod goes on`;
  return { code: 'MemoryLimit', message };
}
